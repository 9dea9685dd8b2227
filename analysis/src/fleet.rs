//! All hosts together: records one after the other, figures pooled by class of memory size.
//!
//! A fleet holds sums, buckets and lengths of periods, no samples: memory grows with what is found,
//! not with what was read.

use crate::availability::sizes::{Classes, SizeClass};
use crate::cluster::Cluster;
use crate::host::HostFindings;
use crate::measure::{Fleetwide, Measure, Pooled};
use crate::quality::missing;
use gleaner_schemas::findings::{FINDINGS_VERSION, Findings, Parameters, Scope};
use std::collections::BTreeMap;

/// What was found in the hosts so far.
pub(crate) struct Fleet<'a> {
    classes: &'a Classes,
    findings: Findings,
    by_class: BTreeMap<SizeClass, Pooled>,
    all: Option<Pooled>,
    fleetwide: Option<Fleetwide>,
    cluster: Option<Cluster>,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(classes: &'a Classes) -> Self {
        Self {
            classes,
            findings: Findings::default(),
            by_class: BTreeMap::new(),
            all: None,
            fleetwide: None,
            cluster: None,
        }
    }

    /// Takes one host in. Hosts come in the order of their ids.
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
        if let Some(one) = host.cluster {
            match &mut self.cluster {
                Some(cluster) => cluster.merge(&one),
                None => self.cluster = Some(one),
            }
        }
        let (to, from) = (&mut self.findings, host.records);
        to.hosts.extend(from.hosts);
        to.memory_over_time.extend(from.memory_over_time);
        to.dips.extend(from.dips);
        to.memory_by_host.extend(from.memory_by_host);
        to.worst_dips.extend(from.worst_dips);
        to.dip_processes.extend(from.dip_processes);
        to.idle_periods.extend(from.idle_periods);
        to.reclaims.extend(from.reclaims);
        to.memory_context.extend(from.memory_context);
        to.quotas.extend(from.quotas);
        to.top_processes.extend(from.top_processes);
        to.top_files.extend(from.top_files);
        to.gaps.extend(from.gaps);
        to.absences.extend(from.absences);
        to.activity_sources.extend(from.activity_sources);
        to.residuals.extend(from.residuals);
        to.agent_cost.extend(from.agent_cost);
        to.not_measured.extend(from.not_measured);
    }

    /// Everything found, or `None` when no host had a sample.
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
        if let Some(cluster) = &self.cluster {
            cluster.write("all", &parameters, &mut findings);
        }
        let idle = |p: &gleaner_schemas::findings::AvailabilityPeriods| p.scope == Scope::Idle;
        if parameters.wants(&["availability_periods"])
            && !findings.availability_periods.iter().any(idle)
        {
            findings.not_measured.push(missing::no_idle_scope());
        }
        findings.findings_version = FINDINGS_VERSION;
        findings.parameters = parameters;
        Some(findings)
    }
}
