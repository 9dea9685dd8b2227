//! Quota of one host at its last sample, and its reason in words.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::reads::ReadSet;
use crate::trace::samples::Samples;
use gleaner_hosts::derived::{Figures, unsigned};
use gleaner_policy::accounting::Categories;
use gleaner_policy::idle::Verdict;
use gleaner_policy::quota::{Limits, Mode, Reason, quota};
use gleaner_schemas::findings::{ActivitySource, Findings, Parameters, Quota};
use gleaner_schemas::units::{Seconds, stored};

/// Quota of each host at its last sample.
pub(crate) struct LastQuotas;

impl HostMeasure for LastQuotas {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<Quota>(ReadSet::SAMPLES)];

    fn write(host: &mut HostHistory<'_>, pass: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        if let Some(&verdict) = host.idleness.verdicts.last() {
            let samples = &host.trace.samples;
            let sources = &findings.activity_sources;
            let quota = of_last(host.id(), samples, verdict, pass.parameters, sources);
            findings.quotas.extend(quota);
        }
        Ok(())
    }
}

/// Quota at the last sample; `None` if the trace lacks the categories. `sources` are the sources of the
/// owner's activity: if idleness is unknown, the reason names them.
fn of_last(
    host: &str,
    samples: &Samples,
    verdict: Verdict,
    parameters: &Parameters,
    sources: &[ActivitySource],
) -> Option<Quota> {
    let last = samples.len().checked_sub(1)?;
    let harvestable_bytes = samples.harvestable_bytes[last];
    let limits = Limits {
        mode: Mode::Gentle,
        headroom_share: parameters.headroom_share,
        ..Limits::default()
    };
    let found = quota(
        &categories(samples, last)?,
        samples.mem_available(last, parameters.headroom_share),
        verdict,
        &limits,
    );
    let reason = match (found.reason, verdict) {
        (Reason::HarvestableUnknown, _) => {
            "the kernel does not say what could be taken without harm (MemAvailable is missing)"
                .to_owned()
        }
        (_, Verdict::Idle { since_ms }) => format!("idle since {}", clock(since_ms)),
        (_, Verdict::Waiting { at_ms }) => waiting(samples, last, at_ms, parameters),
        (_, Verdict::Loaded) => format!(
            "busy: the 5-minute load is {:.2}, and would have to be below {:.2}",
            samples.load5[last].unwrap_or(f64::NAN),
            parameters.load_limit
        ),
        (_, Verdict::Unknown) => unseen(samples, last, sources),
    };
    Some(Quota {
        host_id: host.to_owned(),
        time_ms: samples.time_ms[last],
        quota_bytes: stored(found.quota_bytes),
        paper_quota_bytes: stored(found.paper_quota_bytes),
        harvestable_bytes,
        reason,
    })
}

/// Categories of one sample; `None` in a trace that has only physical and available memory.
pub(crate) fn categories(samples: &Samples, at: usize) -> Option<Categories> {
    let figures = Figures::of(
        unsigned(samples.physical_bytes[at]),
        |category| samples.category(category, at).map(unsigned),
        samples.category_correction_bytes[at],
    );
    figures.complete()
}

/// Reason in words: the owner was active recently, or a low load has not been observed for long enough.
fn waiting(samples: &Samples, last: usize, at_ms: i64, parameters: &Parameters) -> String {
    let now = samples.time_ms[last];
    let since_ms = at_ms.saturating_sub((parameters.idle_after_s * 1000.0) as i64);
    let owner_idle_ms = samples.owner_idle_ms[last].unwrap_or(0);
    let why = if now.saturating_sub(owner_idle_ms) >= since_ms {
        format!(
            "the owner was active {} ago",
            Seconds::from_ms(owner_idle_ms)
        )
    } else {
        let calm_ms = now.saturating_sub(since_ms);
        format!(
            "seen with a low load for only {}",
            Seconds::from_ms(calm_ms)
        )
    };
    format!("not idle yet: {why}; could be lent at {}", clock(at_ms))
}

fn unseen(samples: &Samples, last: usize, sources: &[ActivitySource]) -> String {
    if samples.owner_idle_ms[last].is_some() {
        return "the load of this host cannot be read".to_owned();
    }
    let blind: Vec<String> = sources
        .iter()
        .filter(|s| s.state != "ok")
        .map(|s| format!("{} {}", s.source, s.state))
        .collect();
    let why = if blind.is_empty() {
        "no source was recorded".to_owned()
    } else {
        blind.join(", ")
    };
    format!("the owner's activity cannot be seen on this host: {why}")
}

/// Time of day, UTC.
fn clock(time_ms: i64) -> String {
    let second = time_ms.div_euclid(1000).rem_euclid(86_400);
    format!(
        "{:02}:{:02}:{:02} UTC",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::samples::Samples;
    use gleaner_schemas::findings::Category;

    const AT: i64 = 50_400_000; // 14:00:00 UTC

    fn host(owner_idle_ms: Option<i64>, load5: Option<f64>) -> Samples {
        let mut categories = vec![vec![Some(0)]; Category::ALL.len()];
        categories[Category::Available as usize] = vec![Some(600)];
        Samples {
            time_ms: vec![AT],
            physical_bytes: vec![1000],
            categories,
            category_correction_bytes: vec![Some(0)],
            harvestable_bytes: vec![Some(400)],
            load5: vec![load5],
            owner_idle_ms: vec![owner_idle_ms],
            ..Default::default()
        }
    }

    fn activity_sentence(
        samples: &Samples,
        verdict: Verdict,
        sources: &[ActivitySource],
    ) -> (i64, String) {
        let q = of_last("h", samples, verdict, &Parameters::default(), sources).unwrap();
        assert_eq!((q.paper_quota_bytes, q.time_ms), (450, AT));
        (q.quota_bytes, q.reason)
    }

    #[test]
    fn each_reason_in_words() {
        let blind = [ActivitySource {
            host_id: "h".into(),
            source: "input".into(),
            state: "denied".into(),
            samples_count: 1,
        }];
        let seen = host(Some(12_000), Some(0.1));
        let mut no_mem_available = host(Some(400_000), Some(0.1));
        no_mem_available.harvestable_bytes = vec![None];
        let idle = Verdict::Idle {
            since_ms: AT - 400_000,
        };
        let cases = [
            (
                activity_sentence(&host(Some(400_000), Some(0.1)), idle, &[]),
                400,
                "idle since 13:53:20 UTC",
            ),
            (
                activity_sentence(
                    &seen,
                    Verdict::Waiting {
                        at_ms: AT + 288_000,
                    },
                    &[],
                ),
                0,
                "not idle yet: the owner was active 12 s ago; could be lent at 14:04:48 UTC",
            ),
            (
                activity_sentence(
                    &host(Some(900_000), Some(0.1)),
                    Verdict::Waiting {
                        at_ms: AT + 240_000,
                    },
                    &[],
                ),
                0,
                "not idle yet: seen with a low load for only 1 min; could be lent at 14:04:00 UTC",
            ),
            (
                activity_sentence(&host(Some(1), Some(0.52)), Verdict::Loaded, &[]),
                0,
                "busy: the 5-minute load is 0.52, and would have to be below 0.30",
            ),
            (
                activity_sentence(&host(None, Some(0.1)), Verdict::Unknown, &blind),
                0,
                "the owner's activity cannot be seen on this host: input denied",
            ),
            (
                activity_sentence(&host(Some(1), None), Verdict::Unknown, &[]),
                0,
                "the load of this host cannot be read",
            ),
            (
                activity_sentence(&no_mem_available, idle, &[]),
                0,
                "the kernel does not say what could be taken without harm (MemAvailable is missing)",
            ),
        ];
        for ((bytes, reason), expected_bytes, expected) in cases {
            assert_eq!((bytes, reason.as_str()), (expected_bytes, expected));
        }
    }
}
