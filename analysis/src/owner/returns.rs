//! Returns: an idle period that the owner or the load ended, after which whatever was lent is reclaimed.

use crate::error::Result;
use crate::measure::Measure;
use crate::owner::idle::Idleness;
use crate::trace::HostTrace;
use gleaner_schemas::findings::{Findings, Parameters, Reclaims};
use std::ops::{Range, RangeInclusive};

/// One return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Return {
    pub(crate) at_ms: i64,
    /// The idle period's last sample.
    pub(crate) last_idle: usize,
    /// Samples in the window after the return; where the first comes too late for it, that one stands
    /// for it. A gap ends the window.
    pub(crate) window: RangeInclusive<usize>,
}

/// One host's, in order: idle periods of at least `idle_after_ms` that were seen to end.
pub(crate) fn of_host(
    time_ms: &[i64],
    segments: &[Range<usize>],
    idleness: &Idleness,
    idle_after_ms: i64,
    window_ms: i64,
) -> Vec<Return> {
    let ended = idleness.periods.iter().filter(|p| {
        // Memory is lent once the rule holds, and only then is there something to take back.
        p.end.is_some() && p.to_ms.saturating_sub(p.from_ms) >= idle_after_ms
    });
    ended
        .filter_map(|period| {
            let first = period.samples.end;
            let last_idle = first.checked_sub(1)?;
            Some(Return {
                at_ms: period.to_ms,
                last_idle,
                window: window(time_ms, segments, first, period.to_ms, window_ms)?,
            })
        })
        .collect()
}

/// The samples from `first` on that lie at most `window_ms` after `from_ms`, and at least `first`. `None`
/// where a gap lies before `first`.
pub(crate) fn window(
    time_ms: &[i64],
    segments: &[Range<usize>],
    first: usize,
    from_ms: i64,
    window_ms: i64,
) -> Option<RangeInclusive<usize>> {
    let segment = segments.get(segments.partition_point(|s| s.end <= first))?;
    if first <= segment.start {
        return None;
    }
    let until_ms = from_ms.saturating_add(window_ms);
    let inside = time_ms[first..segment.end].partition_point(|&t| t <= until_ms);
    Some(first..=first + inside.saturating_sub(1))
}

/// How often what was lent would be taken back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count {
    /// Hosts that can tell.
    hosts: i64,
    returns: i64,
    observed_ms: i64,
}

impl Count {
    /// As a finding, of one host or pooled; `None` where nothing could be told.
    pub(crate) fn record(&self, host: Option<&str>, size_class: &str) -> Option<Reclaims> {
        let observed_days = self.observed_ms as f64 / 86_400_000.0;
        (self.observed_ms > 0).then(|| Reclaims {
            host: host.map(str::to_owned),
            size_class: size_class.to_owned(),
            hosts_count: self.hosts,
            reclaims: self.returns,
            observed_days,
            reclaims_per_day: self.returns as f64 / observed_days,
        })
    }
}

impl Measure for Count {
    fn of_host(trace: &HostTrace<'_>, _: &Parameters) -> Result<Self> {
        if !trace.idle_can_be_told() {
            return Ok(Self::default());
        }
        Ok(Self {
            hosts: 1,
            returns: trace.returns.len() as i64,
            observed_ms: trace.idleness.seen_ms,
        })
    }

    fn merge(&mut self, other: &Self) {
        self.hosts += other.hosts;
        self.returns += other.returns;
        self.observed_ms = self.observed_ms.saturating_add(other.observed_ms);
    }

    fn write(&self, size_class: &str, _: &Parameters, findings: &mut Findings) {
        findings.reclaims.extend(self.record(None, size_class));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::samples::Samples;
    use gleaner_policy::idle::IdleRule;

    const S: i64 = 1000;

    #[test]
    fn owner_and_load_end_what_was_lent_and_cuts_do_not() {
        // (second, owner idle for, load)
        let rows = [
            (0, 600, 0.1),
            (300, 900, 0.1), // idle since 0, as far as seen
            (390, 10, 0.1),  // back at 380
            (480, 100, 0.1),
            (570, 190, 0.1),
            (660, 280, 0.1),
            (750, 370, 0.1), // idle since 380: the visit had no length
            (840, 460, 0.9), // the load rises
            (930, 550, 0.1),
            (1320, 940, 0.1), // idle since 930, until the gap
            (9000, 0, 0.1),
        ];
        let samples = Samples {
            time_ms: rows.iter().map(|r| r.0 * S).collect(),
            owner_idle_ms: rows.iter().map(|r| Some(r.1 * S)).collect(),
            load5: rows.iter().map(|r| Some(r.2)).collect(),
            ..Default::default()
        };
        let segments = [0..10, 10..11];
        let rule = IdleRule::default();
        let idleness = Idleness::of(&samples, &segments, &rule);
        let returns = of_host(
            &samples.time_ms,
            &segments,
            &idleness,
            rule.idle_after_ms,
            200 * S,
        );
        let found: Vec<_> = returns
            .into_iter()
            .map(|r| (r.at_ms / S, r.last_idle, r.window))
            .collect();
        assert_eq!(found, [(380, 1, 2..=4), (840, 6, 7..=8)]);
    }

    #[test]
    fn the_window_reaches_to_the_gap_and_holds_one_sample_at_least() {
        let time = [0, 10, 20, 30, 500, 900];
        let of =
            |first, from_ms, window_ms| window(&time, &[0..5, 5..6], first, from_ms, window_ms);
        assert_eq!(of(1, 5, 15), Some(1..=2));
        assert_eq!(of(1, 5, 16), Some(1..=2));
        assert_eq!(of(1, 5, 0), Some(1..=1));
        assert_eq!(of(4, 31, 200), Some(4..=4), "too late, and stands for it");
        assert_eq!(of(3, 25, i64::MAX), Some(3..=4), "the gap ends it");
        assert_eq!(of(5, 890, 200), None, "nothing is known across a gap");
        assert_eq!(of(6, 0, 200), None);
    }
}
