//! One pass over one host. What comes out is small whatever the host's trace, and merges with the
//! other hosts' (`fleet.rs`).

use crate::availability::{dips, over_time, sizes::Classes, usage, worst_dips};
use crate::cluster::{self, Cluster};
use crate::consumers::{files, processes::Processes};
use crate::error::Result;
use crate::measure::{Fleetwide, Measure, Pooled};
use crate::owner::{idle, quota};
use crate::quality::{cost, missing, sight};
use crate::trace::HostTrace;
use crate::trace::calendar::Calendar;
use crate::trace::span::Span;
use gleaner_dataset::Dataset;
use gleaner_hosts::recorded::Gap;
use gleaner_schemas::findings::{self, Findings, HostSummary, Parameters};

/// Names of processes, and files, that are listed for each host.
const MOST_LISTED: usize = 15;
/// Names of processes that are listed for each dip.
const MOST_IN_DIP: usize = 5;

/// What every host's pass needs to know.
pub(crate) struct Pass<'a> {
    pub(crate) parameters: &'a Parameters,
    pub(crate) classes: &'a Classes,
    pub(crate) calendar: &'a Calendar,
    /// Most points over time of one host.
    pub(crate) points_count: usize,
}

/// What one host adds to the findings.
#[derive(Debug, Default)]
pub(crate) struct HostFindings {
    /// The host's own records; what is pooled over hosts stays empty here.
    pub(crate) records: Findings,
    /// What is pooled; `None` for a host without samples.
    pub(crate) pooled: Option<Pooled>,
    /// What is pooled over all hosts alone; `None` as well.
    pub(crate) fleetwide: Option<Fleetwide>,
    /// Its part in the hosts together; `None` for a host without samples.
    pub(crate) cluster: Option<Cluster>,
}

impl Pass<'_> {
    /// Reads and analyses one host.
    pub(crate) fn host(&self, dataset: &Dataset, host: &str) -> Result<HostFindings> {
        let parameters = self.parameters;
        let Some(mut trace) = HostTrace::read(dataset, host, parameters, self.calendar)? else {
            let mut nothing = HostFindings::default();
            let missing = missing::no_samples(host, Span::of(parameters));
            nothing.records.not_measured.push(missing);
            return Ok(nothing);
        };
        let wants = |key| parameters.wants(&[key]);
        let summary = self.summary(&trace);
        let size_class = summary.size_class.clone();
        let processes = Processes::of_host(&trace)?;
        let mut records = Findings {
            hosts: vec![summary],
            dips: dips::of_host(&trace, parameters),
            idle_periods: idle::records(&trace),
            top_processes: processes.top(MOST_LISTED),
            top_files: files::of_host(&trace, MOST_LISTED)?,
            gaps: trace.gaps.iter().map(|gap| gap_record(host, gap)).collect(),
            residuals: usage::residual(&trace).into_iter().collect(),
            agent_cost: cost::of_host(&trace).into_iter().collect(),
            ..Findings::default()
        };
        if parameters.wants(&["worst_dips", "dip_processes"]) {
            let dips = worst_dips::of_host(&trace, parameters);
            let moments = dips.iter().map(|dip| dip.sample).collect();
            records.dip_processes = processes.at(&moments, MOST_IN_DIP)?;
            records.worst_dips = dips.into_iter().map(|dip| dip.record).collect();
        }
        if wants("absences") {
            records.absences = sight::absences(&mut trace)?;
        }
        if parameters.wants(&["activity_sources", "quotas"]) {
            records.activity_sources = sight::activity_sources(&mut trace)?;
        }
        if wants("memory_over_time") {
            records.memory_over_time = over_time::of_host(&trace, self.points_count);
        }
        records.quotas = quota::at_last_sample(&trace, parameters, &records.activity_sources)
            .into_iter()
            .collect();
        let pooled = Pooled::of_host(&trace, parameters)?;
        if let Some(usage) = pooled.usage.as_ref().filter(|_| wants("memory_by_host")) {
            records.memory_by_host = usage.records(host);
        }
        let (reclaims, contexts) = (&pooled.reclaims, &pooled.memory_context);
        if let Some(reclaim) = reclaims
            .as_ref()
            .and_then(|r| r.record(Some(host), &size_class))
        {
            records.reclaims.push(reclaim);
        }
        if let Some(contexts) = contexts {
            (records.memory_context).extend(contexts.records(Some(host), &size_class));
        }
        records.not_measured = missing::of_host(&trace, &records, parameters);
        Ok(HostFindings {
            fleetwide: Some(Fleetwide::of_host(&trace, parameters)?),
            pooled: Some(pooled),
            cluster: if parameters.wants(&cluster::KEYS) {
                Some(Cluster::of_host(&trace, parameters)?)
            } else {
                None
            },
            records,
        })
    }

    fn summary(&self, trace: &HostTrace<'_>) -> HostSummary {
        let (samples, inventory) = (&trace.samples, &trace.inventory);
        let time = || samples.time_ms.iter().copied();
        let from_time_ms = time().min().unwrap_or(0);
        let to_time_ms = time().max().unwrap_or(0);
        let span_ms = to_time_ms.saturating_sub(from_time_ms);
        let physical_bytes = samples.physical_bytes.last().copied().unwrap_or(0);
        let share = trace.idleness.share();
        HostSummary {
            host: trace.host().to_owned(),
            host_name: (inventory.host_name.clone()).unwrap_or_else(|| trace.host().to_owned()),
            size_class: self.classes.of(physical_bytes).to_string(),
            physical_bytes,
            cpus_count: inventory.cpus_count,
            kernel_release: inventory.kernel_release.clone(),
            sample_interval_s: trace.intervals.last().map(|ms| ms as f64 / 1000.0),
            samples_count: samples.len() as i64,
            from_time_ms,
            to_time_ms,
            // One sample lacks nothing between its ends; a clock set back covers some time twice.
            coverage_share: if span_ms > 0 {
                (trace.covered_ms() as f64 / span_ms as f64).min(1.0)
            } else {
                1.0
            },
            idle_share: share.filter(|_| trace.idle_can_be_told()),
            source: inventory.source.clone(),
        }
    }
}

fn gap_record(host: &str, gap: &Gap) -> findings::Gap {
    findings::Gap {
        host: host.to_owned(),
        from_time_ms: gap.from_ms,
        to_time_ms: gap.to_ms,
        // A clock set back leaves no time out.
        duration_s: gap.to_ms.saturating_sub(gap.from_ms).max(0) as f64 / 1000.0,
        cause: gap.cause.clone(),
    }
}
