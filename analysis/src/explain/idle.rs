//! Verdict of the idle rule on one sample, and its reason.

use crate::derived::HostHistory;
use gleaner_policy::idle::Verdict;
use gleaner_schemas::findings::ExplainedIdle;
use gleaner_schemas::units::Seconds;

pub(super) fn of(host: &HostHistory<'_>, at: usize) -> ExplainedIdle {
    let samples = &host.trace.samples;
    let (owner_idle_ms, load5) = (samples.owner_idle_ms[at], samples.load5[at]);
    let now = samples.time_ms[at];
    let limit = host.rule.load_limit;
    let (verdict, reason) = match host.idleness.verdicts[at] {
        Verdict::Idle { since_ms } => (
            "idle",
            format!(
                "no activity and a load below {limit:.2} for {}",
                Seconds::from_ms(now.saturating_sub(since_ms))
            ),
        ),
        Verdict::Waiting { at_ms } => (
            "waiting",
            format!(
                "calm, but not for {} yet: {} more are needed",
                Seconds::from_ms(host.rule.idle_after_ms),
                Seconds::from_ms(at_ms.saturating_sub(now))
            ),
        ),
        Verdict::Loaded => (
            "loaded",
            format!(
                "the 5-minute load is {:.2}, and would have to be below {limit:.2}",
                load5.unwrap_or(f64::NAN)
            ),
        ),
        Verdict::Unknown => (
            "unknown",
            match (owner_idle_ms, load5) {
                (None, _) => "no source could tell when the owner was last active".to_owned(),
                (_, None) => "the load is not known".to_owned(),
                _ => "activity and load cannot be told".to_owned(),
            },
        ),
    };
    let periods = &host.idleness.periods;
    let period = periods.iter().find(|p| p.samples.contains(&at));
    ExplainedIdle {
        verdict: verdict.to_owned(),
        reason,
        owner_idle_s: owner_idle_ms.map(|ms| ms as f64 / 1000.0),
        load5,
        idle_after_s: host.rule.idle_after_ms as f64 / 1000.0,
        load_limit: limit,
        from_time_ms: period.map(|p| p.from_ms),
        to_time_ms: period.map(|p| p.to_ms),
    }
}
