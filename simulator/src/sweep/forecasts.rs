//! Lists the forecasts that must be learnt before a plan can run, from the time before the begin of each
//! dataset's simulation.

use super::Plan;
use crate::dodo::{Recruitment, ZoneName};
use gleaner_policy::idle::IdleRule;

/// Inputs of a forecast table, in addition to its dataset and the begin.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecastInputs {
    /// Idle rule, which decides when regions of idle hosts end.
    pub idle: IdleRule,
    /// Time zone for the hours of the week.
    pub time_zone: ZoneName,
}

impl ForecastInputs {
    /// Inputs for this recruitment; `None` if it needs no forecast.
    #[must_use]
    pub fn of(recruitment: &Recruitment) -> Option<Self> {
        recruitment.wants_forecast().then(|| Self {
            idle: recruitment.idle_rule(),
            time_zone: recruitment.time_zone.clone(),
        })
    }
}

impl Plan {
    /// Forecasts that must be learnt ([`Cluster::learnt`](super::Cluster::learnt)) before these runs of the
    /// plan. Each element is a dataset's index with one set of inputs that a run on this dataset needs.
    #[must_use]
    pub fn forecasts(&self, runs: &[usize]) -> Vec<(usize, ForecastInputs)> {
        let mut wanted = Vec::new();
        for at in self.cases_of(runs) {
            let case = &self.cases[at];
            let by = ForecastInputs::of(&case.scenario.recruitment).map(|by| (case.dataset, by));
            wanted.extend(by.filter(|by| !wanted.contains(by)));
        }
        wanted
    }
}
