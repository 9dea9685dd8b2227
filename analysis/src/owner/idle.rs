//! Idle periods as findings; [`gleaner_hosts::derived`] derives them.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::reads::ReadSet;
use gleaner_hosts::derived::IdlePeriod;
use gleaner_schemas::findings::{self, Findings};

/// Idle periods of each host.
pub(crate) struct IdlePeriods;

impl HostMeasure for IdlePeriods {
    const OUTPUTS: &'static [MeasureOutput] =
        &[MeasureOutput::of::<findings::IdlePeriod>(ReadSet::FEW)];

    fn write(host: &mut HostHistory<'_>, _: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        let record = |period: &IdlePeriod| findings::IdlePeriod {
            host_id: host.id().to_owned(),
            from_time_ms: period.from_ms,
            to_time_ms: period.to_ms,
            duration_s: (period.to_ms - period.from_ms) as f64 / 1000.0,
            is_start_censored: period.is_start_censored,
            is_end_censored: period.end.is_none(),
        };
        let periods = host.idleness.periods.iter();
        findings.idle_periods.extend(periods.map(record));
        Ok(())
    }
}
