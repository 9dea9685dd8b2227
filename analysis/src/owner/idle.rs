//! Idle periods as findings; [`gleaner_hosts::derived`] finds them.

use crate::trace::HostTrace;
use gleaner_hosts::derived::IdlePeriod;
use gleaner_schemas::findings;

/// One host's, as findings.
pub(crate) fn records(trace: &HostTrace<'_>) -> Vec<findings::IdlePeriod> {
    let record = |period: &IdlePeriod| findings::IdlePeriod {
        host: trace.host().to_owned(),
        from_time_ms: period.from_ms,
        to_time_ms: period.to_ms,
        duration_s: (period.to_ms - period.from_ms) as f64 / 1000.0,
        start_censored: period.start_cut,
        end_censored: period.end.is_none(),
    };
    trace.idleness.periods.iter().map(record).collect()
}
