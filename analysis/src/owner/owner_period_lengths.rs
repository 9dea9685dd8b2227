//! Lengths of the owners' absences and presences, pooled over hosts.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::statistics::Length;
use crate::statistics::distribution::Distribution;
use crate::statistics::kaplan_meier::Curve;
use crate::trace::reads::ReadSet;
use gleaner_schemas::findings::{Findings, OwnerPeriodLengths, OwnerState, Parameters};
use serde::{Deserialize, Serialize};

/// The only number of a cause: it means that the end was seen.
const ENDED: usize = 0;

/// Lengths of absences and presences.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Lengths {
    idle: Vec<Length>,
    busy: Vec<Length>,
}

impl Measure for Lengths {
    const OUTPUTS: &'static [MeasureOutput] =
        &[MeasureOutput::of::<OwnerPeriodLengths>(ReadSet::FEW).on_returns()];

    fn of_host(host: &HostHistory<'_>, _: &Parameters) -> Result<Self> {
        if !host.can_show_idle() {
            return Ok(Self::default());
        }
        let length = |from_ms: i64, to_ms: i64, cut: bool| Length {
            ms: to_ms.saturating_sub(from_ms),
            cause: (!cut).then_some(ENDED),
        };
        let idle = host.idleness.periods.iter();
        let busy = host.busy_periods.iter();
        let mut found = Self {
            idle: idle
                .map(|p| length(p.from_ms, p.to_ms, p.is_start_censored || p.end.is_none()))
                .collect(),
            busy: busy
                .map(|p| length(p.from_ms, p.to_ms, p.is_start_censored || p.is_end_censored))
                .collect(),
        };
        for lengths in [&mut found.idle, &mut found.busy] {
            // A length of 0 without an end was not observed at all.
            lengths.retain(|l| l.ms > 0 || l.cause.is_some());
        }
        Ok(found)
    }

    fn merge(&mut self, other: &Self) {
        self.idle.extend_from_slice(&other.idle);
        self.busy.extend_from_slice(&other.busy);
    }

    fn write(&self, size_class: &str, _: &Parameters, findings: &mut Findings) {
        let states = [
            (OwnerState::Idle, &self.idle),
            (OwnerState::Busy, &self.busy),
        ];
        let records = states.map(|(state, lengths)| record(size_class, state, lengths));
        findings
            .owner_period_lengths
            .extend(records.into_iter().flatten());
    }
}

/// Finding for one state; `None` without lengths.
fn record(size_class: &str, state: OwnerState, lengths: &[Length]) -> Option<OwnerPeriodLengths> {
    let mut lengths = lengths.to_vec();
    lengths.sort_unstable();
    let whole = Distribution::of(
        lengths
            .iter()
            .filter(|l| l.cause.is_some())
            .map(|l| (l.ms, 0)),
    );
    let seconds = |ms: f64| ms / 1000.0;
    Some(OwnerPeriodLengths {
        size_class: size_class.to_owned(),
        state,
        periods_count: lengths.len() as i64,
        censored_count: lengths.len() as i64 - whole.count,
        mean_s: whole.mean().map(seconds),
        median_s: whole.median().map(seconds),
        p90_s: whole.quantile(0.9).map(seconds),
        p99_s: whole.quantile(0.99).map(seconds),
        max_s: (whole.count > 0).then(|| seconds(whole.max as f64)),
        restricted_mean_s: Some(seconds(
            Curve::of(&lengths).restricted_mean(i64::MAX)?.mean_ms,
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_cut_lengths_in_one_record() {
        let lengths = |all: &[(i64, bool)]| -> Vec<Length> {
            let length = |&(s, cut): &(i64, bool)| Length {
                ms: s * 1000,
                cause: (!cut).then_some(ENDED),
            };
            all.iter().map(length).collect()
        };
        // The whole lengths are 10, 20 and 60. Kaplan-Meier: at 10, one of 4 ends (3/4); at 20, one of 3
        // (1/2); 30 is censored; at 60 the last ends.
        let some = lengths(&[(60, false), (10, false), (30, true), (20, false)]);
        let r = record("all", OwnerState::Busy, &some).unwrap();
        assert_eq!((r.periods_count, r.censored_count), (4, 1));
        assert_eq!((r.mean_s, r.median_s), (Some(30.0), Some(20.0)));
        assert_eq!(
            (r.p90_s, r.p99_s, r.max_s),
            (Some(60.0), Some(60.0), Some(60.0))
        );
        assert_eq!(r.restricted_mean_s, Some(10.0 + 7.5 + 40.0 * 0.5));
        // Censored lengths alone give only a lower limit.
        let r = record("all", OwnerState::Idle, &lengths(&[(30, true)])).unwrap();
        assert_eq!(
            (r.periods_count, r.censored_count, r.mean_s, r.max_s),
            (1, 1, None, None)
        );
        assert_eq!(r.restricted_mean_s, Some(30.0));
        assert_eq!(record("all", OwnerState::Idle, &[]), None);
    }
}
