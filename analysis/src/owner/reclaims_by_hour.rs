//! Returns by hour of the week, in the fleet's time zone, with the idle time in which they could occur.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::trace::calendar::{Calendar, HOURS_OF_WEEK, weekday_and_hour};
use crate::trace::reads::ReadSet;
use crate::trace::time_by_hour::{HourSplitter, TimeByHour};
use gleaner_schemas::findings::{self, Findings, Parameters};
use serde::{Deserialize, Serialize};

/// Reclaims on hosts whose owners' absences are known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReclaimsByHour {
    /// Returns in each hour of the week.
    returns: Vec<i64>,
    idle: TimeByHour,
}

impl Measure for ReclaimsByHour {
    const OUTPUTS: &'static [MeasureOutput] =
        &[MeasureOutput::of::<findings::ReclaimsByHour>(ReadSet::SAMPLES).on_returns()];

    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
        let mut found = Self {
            returns: vec![0; HOURS_OF_WEEK],
            idle: TimeByHour::default(),
        };
        if !host.can_show_idle() {
            return Ok(found);
        }
        let calendar = Calendar::new(&parameters.time_zone)?;
        let at_ms: Vec<i64> = host.returns.iter().map(|back| back.at_ms).collect();
        for hour in calendar.hours_of_week(&at_ms) {
            found.returns[usize::from(hour)] += 1;
        }
        let mut hours = HourSplitter::new(&calendar);
        for period in &host.idleness.periods {
            hours.add(period.from_ms, period.to_ms, &mut found.idle);
        }
        Ok(found)
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.returns.iter_mut().zip(&other.returns) {
            *mine += theirs;
        }
        self.idle.merge(&other.idle);
    }

    fn write(&self, size_class: &str, _: &Parameters, findings: &mut Findings) {
        let hours = self.returns.iter().enumerate();
        let record = |(at, &returns): (usize, &i64)| {
            let (weekday, hour) = weekday_and_hour(at);
            let idle_ms = self.idle.ms(at);
            (returns > 0 || idle_ms > 0).then(|| findings::ReclaimsByHour {
                size_class: size_class.to_owned(),
                weekday,
                hour,
                returns_count: returns,
                idle_hours_s: idle_ms as f64 / 1000.0,
                per_idle_hour: (idle_ms > 0)
                    .then(|| returns as f64 / (idle_ms as f64 / 3_600_000.0)),
            })
        };
        findings.reclaims_by_hour.extend(hours.filter_map(record));
    }
}
