//! What is to be learnt before a plan can be run, of each dataset's time before its begin.

use super::{Cluster, Plan, SweepError};
use crate::dodo::{Recruitment, ZoneName};
use crate::hosts::Foresight;
use gleaner_policy::forecast::table::Table;
use gleaner_policy::idle::IdleRule;
use std::sync::Arc;

/// What a forecast table depends on, beside its dataset and the begin. Who learns one is told this.
#[derive(Clone, Debug, PartialEq)]
pub struct LearntBy {
    /// When a host is idle: regions of idle hosts end with that.
    pub idle: IdleRule,
    /// Whose hours of the week count.
    pub time_zone: ZoneName,
}

impl LearntBy {
    /// What this recruitment takes; `None` where it wants no forecast.
    #[must_use]
    pub fn of(recruitment: &Recruitment) -> Option<Self> {
        recruitment.wants_forecast().then(|| Self {
            idle: recruitment.idle_rule(),
            time_zone: recruitment.time_zone.clone(),
        })
    }
}

impl Plan {
    /// What must be learnt ([`Cluster::learnt`]) before it is run: datasets by their place, each with every way of learning that a
    /// case of it needs.
    #[must_use]
    pub fn forecasts(&self) -> Vec<(usize, LearntBy)> {
        let mut wanted = Vec::new();
        for case in &self.cases {
            let by = LearntBy::of(&case.scenario.recruitment).map(|by| (case.dataset, by));
            wanted.extend(by.filter(|by| !wanted.contains(by)));
        }
        wanted
    }
}

impl Cluster {
    /// Takes in what was learnt, of the time before [`Cluster::from_ms`] alone.
    pub fn learnt(&mut self, by: LearntBy, table: Table) {
        self.tables.push((by, Arc::new(table)));
    }

    /// What hosts are expected to keep, where the recruitment asks for it.
    pub(super) fn foresight(
        &self,
        recruitment: &Recruitment,
    ) -> Result<Option<Foresight>, SweepError> {
        let Some(wanted) = LearntBy::of(recruitment) else {
            return Ok(None);
        };
        match self.tables.iter().find(|(by, _)| *by == wanted) {
            Some((_, table)) => Ok(recruitment.foresight(table)),
            None => Err(SweepError::NotLearnt {
                name: self.name.clone(),
            }),
        }
    }
}
