//! Forecasts to be learnt before a plan can be run, of each dataset's time before its begin.

use super::Plan;
use crate::dodo::{Recruitment, ZoneName};
use gleaner_policy::idle::IdleRule;

/// Facts that a forecast table depends on, beside its dataset and the begin.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecastInputs {
    /// Rule that says when a host is idle: regions of idle hosts end with that.
    pub idle: IdleRule,
    /// Time zone whose hours of the week count.
    pub time_zone: ZoneName,
}

impl ForecastInputs {
    /// Facts for this recruitment; `None` where it wants no forecast.
    #[must_use]
    pub fn of(recruitment: &Recruitment) -> Option<Self> {
        recruitment.wants_forecast().then(|| Self {
            idle: recruitment.idle_rule(),
            time_zone: recruitment.time_zone.clone(),
        })
    }
}

impl Plan {
    /// Forecasts that must be learnt ([`Cluster::learnt`](super::Cluster::learnt)) before it is run: datasets by their
    /// place, each with every way of learning that a case of it needs.
    #[must_use]
    pub fn forecasts(&self) -> Vec<(usize, ForecastInputs)> {
        let mut wanted = Vec::new();
        for case in &self.cases {
            let by = ForecastInputs::of(&case.scenario.recruitment).map(|by| (case.dataset, by));
            wanted.extend(by.filter(|by| !wanted.contains(by)));
        }
        wanted
    }
}
