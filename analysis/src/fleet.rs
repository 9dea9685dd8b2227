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
use std::collections::BTreeMap;

/// Findings of the hosts so far.
pub(crate) struct Fleet<'a> {
    classes: &'a Classes,
    findings: Findings,
    by_class: BTreeMap<SizeClass, Pooled>,
    all: Option<Pooled>,
    fleetwide: Option<Fleetwide>,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(classes: &'a Classes) -> Self {
        Self {
            classes,
            findings: Findings::default(),
            by_class: BTreeMap::new(),
            all: None,
            fleetwide: None,
        }
    }

    /// Adds one host. Hosts come in the order of their ids.
    pub(crate) fn add(&mut self, host: HostFindings) {
        if let (Some(pooled), Some(summary)) = (host.pooled, host.records.hosts.first()) {
            let class = self.classes.of(summary.physical_bytes);
            match self.by_class.get_mut(&class) {
                Some(class) => class.merge(&pooled),
                None => {
                    self.by_class.insert(class, pooled.clone());
                }
            }
            match &mut self.all {
                Some(all) => all.merge(&pooled),
                None => self.all = Some(pooled),
            }
        }
        match (&mut self.fleetwide, host.fleetwide) {
            (Some(all), Some(one)) => all.merge(&one),
            (None, one) => self.fleetwide = one,
            (Some(_), None) => {}
        }
        self.findings.append(host.records);
    }

    /// All findings; `None` if no host had a sample.
    pub(crate) fn finish(self, parameters: Parameters) -> Option<Findings> {
        let mut findings = self.findings;
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
