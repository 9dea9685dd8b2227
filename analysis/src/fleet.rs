//! All hosts together: records one after the other, figures pooled by memory-size class.
//!
//! A fleet holds sums, buckets and lengths of periods, no samples: memory grows with what is found,
//! not with what was read.

use crate::distribution::Distribution;
use crate::host::{HostFindings, Pooled};
use crate::periods::Periods;
use crate::sizes::SizeClass;
use crate::{missing, usage};
use gleaner_schemas::SCHEMA_VERSION;
use gleaner_schemas::findings::{Findings, Parameters, Scope};
use std::collections::BTreeMap;

/// What was found in the hosts so far.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    findings: Findings,
    classes: BTreeMap<SizeClass, Totals>,
    all: Totals,
}

/// Figures of the hosts of one class.
#[derive(Debug, Default)]
struct Totals {
    usage: Vec<Distribution>,
    all_periods: Vec<Periods>,
    /// Empty as long as no host can tell when it was idle.
    idle_periods: Vec<Periods>,
}

impl Fleet {
    /// Takes one host in. Records come in the order of the hosts; the pooled figures do not depend
    /// on it.
    pub(crate) fn add(&mut self, host: HostFindings) {
        if let Some(pooled) = &host.pooled {
            self.classes
                .entry(pooled.size_class)
                .or_default()
                .add(pooled);
            self.all.add(pooled);
        }
        let (to, from) = (&mut self.findings, host.records);
        to.hosts.extend(from.hosts);
        to.memory_over_time.extend(from.memory_over_time);
        to.dips.extend(from.dips);
        to.idle_periods.extend(from.idle_periods);
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
        if findings.hosts.is_empty() {
            return None;
        }
        let classes = self
            .classes
            .into_iter()
            .map(|(class, t)| (class.to_string(), t));
        for (name, totals) in classes.chain([("all".to_owned(), self.all)]) {
            totals.write(&name, &parameters, &mut findings);
        }
        if !findings
            .availability_periods
            .iter()
            .any(|p| p.scope == Scope::Idle)
        {
            findings.not_measured.push(missing::no_idle_scope());
        }
        findings.schema_version = SCHEMA_VERSION;
        findings.parameters = parameters;
        Some(findings)
    }
}

impl Totals {
    fn add(&mut self, host: &Pooled) {
        merge(&mut self.usage, &host.usage, Distribution::merge);
        merge(&mut self.all_periods, &host.all_periods, Periods::merge);
        if let Some(periods) = &host.idle_periods {
            merge(&mut self.idle_periods, periods, Periods::merge);
        }
    }

    fn write(&self, size_class: &str, parameters: &Parameters, to: &mut Findings) {
        let usage = usage::names().into_iter().zip(&self.usage);
        to.memory_usage
            .extend(usage.filter_map(|(name, all)| usage::finding(size_class, name, all)));
        for (scope, periods) in [
            (Scope::All, &self.all_periods),
            (Scope::Idle, &self.idle_periods),
        ] {
            let by_region = parameters.region_bytes.iter().zip(periods);
            to.availability_periods.extend(
                by_region
                    .map(|(&bytes, periods)| periods.finding(size_class.to_owned(), scope, bytes)),
            );
        }
    }
}

/// Merges part by part; the first host's parts are taken as they are.
fn merge<T: Clone>(mine: &mut Vec<T>, other: &[T], merge_one: impl Fn(&mut T, &T)) {
    if mine.is_empty() {
        mine.extend_from_slice(other);
    } else {
        for (to, from) in mine.iter_mut().zip(other) {
            merge_one(to, from);
        }
    }
}
