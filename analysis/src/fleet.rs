//! All hosts together: records one after the other, and figures pooled by class of memory size.
//!
//! A fleet holds sums, buckets and lengths of periods, but no samples: its memory grows with the findings,
//! not with the samples read.

use crate::host::HostFindings;
use crate::measures::{Fleetwide, Pooled};
use crate::quality::missing;
use crate::sizes::{Classes, SizeClass};
use gleaner_schemas::findings::{
    AvailabilityPeriods, FINDINGS_VERSION, FindingList, Findings, Parameters, Scope,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Findings of the hosts so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Fleet {
    /// Records of single hosts.
    pub(crate) findings: Findings,
    by_class: BTreeMap<SizeClass, Pooled>,
    all: Option<Pooled>,
    fleetwide: Option<Fleetwide>,
}

impl Fleet {
    /// Adds one host. Hosts come in the order of their ids.
    pub(crate) fn add(&mut self, host: HostFindings, classes: &Classes) {
        if let (Some(pooled), Some(summary)) = (host.pooled, host.records.hosts.first()) {
            self.add_to_class(classes.of(summary.physical_bytes), &pooled);
            self.add_to_all(pooled);
        }
        self.add_fleetwide(host.fleetwide);
        self.findings.append(host.records);
    }

    /// Adds the hosts of `next`, all of which follow this fleet's hosts in the order of ids.
    pub(crate) fn merge(&mut self, next: Self) {
        for (class, pooled) in &next.by_class {
            self.add_to_class(*class, pooled);
        }
        if let Some(all) = next.all {
            self.add_to_all(all);
        }
        self.add_fleetwide(next.fleetwide);
        self.findings.append(next.findings);
    }

    fn add_to_class(&mut self, class: SizeClass, pooled: &Pooled) {
        match self.by_class.get_mut(&class) {
            Some(mine) => mine.merge(pooled),
            None => {
                self.by_class.insert(class, pooled.clone());
            }
        }
    }

    fn add_to_all(&mut self, pooled: Pooled) {
        match &mut self.all {
            Some(all) => all.merge(&pooled),
            None => self.all = Some(pooled),
        }
    }

    fn add_fleetwide(&mut self, fleetwide: Option<Fleetwide>) {
        match (&mut self.fleetwide, fleetwide) {
            (Some(mine), Some(fleetwide)) => mine.merge(&fleetwide),
            (None, fleetwide) => self.fleetwide = fleetwide,
            (Some(_), None) => {}
        }
    }

    /// All findings; `None` if no host had a sample.
    pub(crate) fn finish(self, parameters: Parameters) -> Option<Findings> {
        let mut findings = self.findings;
        // The hosts of a plan by groups come in the order of the groups.
        findings.sort_by_host();
        let all = self.all?;
        for (class, pooled) in &self.by_class {
            pooled.write(&class.to_string(), &parameters, &mut findings);
        }
        all.write("all", &parameters, &mut findings);
        if let Some(fleetwide) = &self.fleetwide {
            fleetwide.write("all", &parameters, &mut findings);
        }
        let idle = |p: &AvailabilityPeriods| p.scope == Scope::Idle;
        if parameters.wants(&[AvailabilityPeriods::KEY])
            && !findings.availability_periods.iter().any(idle)
        {
            findings.missing_measures.push(missing::no_idle_scope());
        }
        findings.findings_version = FINDINGS_VERSION;
        findings.parameters = parameters;
        Some(findings)
    }
}
