//! One pass over one host. What comes out is small whatever the host's trace, and merges with the
//! other hosts' (`fleet.rs`).

use crate::distribution::Distribution;
use crate::error::Result;
use crate::idle::Idleness;
use crate::intervals::Intervals;
use crate::inventory::{Inventory, recorded_gaps};
use crate::periods::{Periods, Window};
use crate::reader::HostReader;
use crate::samples::Samples;
use crate::segments::{Gap, covered_ms, segments};
use crate::sizes::SizeClass;
use crate::{cost, dips, files, missing, over_time, processes, quota, sight, usage};
use gleaner_dataset::Dataset;
use gleaner_policy::idle::IdleRule;
use gleaner_schemas::findings::{self, Findings, HostSummary, Parameters};
use std::ops::Range;

/// Names of processes, and files, that are listed for each host.
const MOST_LISTED: usize = 15;

/// What one host adds to the findings.
#[derive(Debug, Default)]
pub(crate) struct HostFindings {
    /// The host's own records; what is pooled over hosts stays empty here.
    pub(crate) records: Findings,
    /// What is pooled; `None` for a host without samples.
    pub(crate) pooled: Option<Pooled>,
}

/// One host's part in the figures of its class.
#[derive(Debug)]
pub(crate) struct Pooled {
    pub(crate) size_class: SizeClass,
    /// One for each of [`usage::names`].
    pub(crate) usage: Vec<Distribution>,
    /// One a region size, scope `all`.
    pub(crate) all_periods: Vec<Periods>,
    /// The same of scope `idle`; `None` where idleness cannot be told.
    pub(crate) idle_periods: Option<Vec<Periods>>,
}

/// Reads and analyses one host.
pub(crate) fn analyze_host(
    dataset: &Dataset,
    host: &str,
    parameters: &Parameters,
) -> Result<HostFindings> {
    let mut reader = HostReader::new(dataset, host);
    let samples = Samples::read(&mut reader, parameters.headroom_share)?;
    let Some(last) = samples.len().checked_sub(1) else {
        let mut nothing = HostFindings::default();
        nothing.records.not_measured.push(missing::no_samples(host));
        return Ok(nothing);
    };
    let inventory = Inventory::read(&mut reader)?;
    let intervals = Intervals::new(inventory.intervals.clone(), &samples.time_ms);
    let (segments, gaps) = segments(&samples, recorded_gaps(&mut reader)?, &intervals);
    let rule = IdleRule {
        idle_after_ms: (parameters.idle_after_s * 1000.0) as i64,
        load_limit: parameters.load_limit,
    };
    let idleness = Idleness::of(&samples, &segments, &rule);
    let usage = usage::of_host(&samples);
    let size_class = SizeClass::of(samples.physical_bytes[last]);
    let covered = || segments.iter().map(|s| covered_ms(&samples, s));
    let longest_run_ms = covered().max().unwrap_or(0);
    let idle_can_be_told = !idleness.is_unknown() && longest_run_ms >= rule.idle_after_ms;

    let mut records = Findings {
        hosts: vec![HostSummary {
            size_class: size_class.to_string(),
            sample_interval_s: intervals.last().map(|ms| ms as f64 / 1000.0),
            idle_share: idleness.share().filter(|_| idle_can_be_told),
            ..summary(host, inventory, &samples, &segments)
        }],
        memory_over_time: over_time::of_host(host, &samples, &segments, &idleness.by_sample()),
        dips: dips::of_host(host, &samples, &parameters.dip_threshold_bytes),
        idle_periods: idle_periods(host, &idleness),
        top_processes: processes::of_host(&mut reader, MOST_LISTED)?,
        top_files: files::of_host(&mut reader, &samples, &segments, MOST_LISTED)?,
        gaps: gaps.into_iter().map(|gap| gap_record(host, gap)).collect(),
        absences: sight::absences(&mut reader, &samples, &segments)?,
        activity_sources: sight::activity_sources(&mut reader, &samples, &segments)?,
        residuals: usage::residual(host, &samples).into_iter().collect(),
        agent_cost: cost::of_host(host, &samples, intervals.last())
            .into_iter()
            .collect(),
        ..Findings::default()
    };
    records.quotas.extend(quota::at_last_sample(
        host,
        &samples,
        idleness.verdicts[last],
        parameters,
        &records.activity_sources,
    ));
    let usage_seen = usage::names()
        .into_iter()
        .zip(usage.iter().map(|d| d.count > 0));
    records.not_measured = missing::of_host(
        host,
        &records,
        parameters,
        &idleness,
        longest_run_ms,
        usage_seen,
    );

    let of_segments: Vec<Window> = segments
        .iter()
        .filter_map(|s| Window::of_segment(&samples.time_ms, s))
        .collect();
    let of_idleness: Vec<Window> = idleness.periods.iter().map(Window::of_idle).collect();
    let all_covered_ms = covered().sum();
    let periods = |windows: &[Window]| {
        parameters
            .region_bytes
            .iter()
            .map(|&region_bytes| {
                Periods::of(
                    &samples.time_ms,
                    &samples.available_bytes,
                    windows,
                    region_bytes,
                    parameters.minimum_period_s * 1000.0,
                    all_covered_ms,
                )
            })
            .collect::<Vec<_>>()
    };
    Ok(HostFindings {
        pooled: Some(Pooled {
            size_class,
            usage,
            all_periods: periods(&of_segments),
            idle_periods: idle_can_be_told.then(|| periods(&of_idleness)),
        }),
        records,
    })
}

fn summary(
    host: &str,
    inventory: Inventory,
    samples: &Samples,
    segments: &[Range<usize>],
) -> HostSummary {
    let time = || samples.time_ms.iter().copied();
    let from_time_ms = time().min().unwrap_or(0);
    let to_time_ms = time().max().unwrap_or(0);
    let covered_ms: i64 = segments.iter().map(|s| covered_ms(samples, s)).sum();
    let span_ms = to_time_ms - from_time_ms;
    HostSummary {
        host: host.to_owned(),
        host_name: inventory.host_name.unwrap_or_else(|| host.to_owned()),
        physical_bytes: samples.physical_bytes.last().copied().unwrap_or(0),
        cpus_count: inventory.cpus_count,
        kernel_release: inventory.kernel_release,
        samples_count: samples.len() as i64,
        from_time_ms,
        to_time_ms,
        // One sample lacks nothing between its ends; a clock set back covers some time twice.
        coverage_share: if span_ms > 0 {
            (covered_ms as f64 / span_ms as f64).min(1.0)
        } else {
            1.0
        },
        ..HostSummary::default()
    }
}

fn idle_periods(host: &str, idleness: &Idleness) -> Vec<findings::IdlePeriod> {
    let record = |period: &crate::idle::IdlePeriod| findings::IdlePeriod {
        host: host.to_owned(),
        from_time_ms: period.from_ms,
        to_time_ms: period.to_ms,
        duration_s: (period.to_ms - period.from_ms) as f64 / 1000.0,
        start_censored: period.start_cut,
        end_censored: period.end_cut,
    };
    idleness.periods.iter().map(record).collect()
}

fn gap_record(host: &str, gap: Gap) -> findings::Gap {
    findings::Gap {
        host: host.to_owned(),
        from_time_ms: gap.from_ms,
        to_time_ms: gap.to_ms,
        // A clock set back leaves no time out.
        duration_s: gap.to_ms.saturating_sub(gap.from_ms).max(0) as f64 / 1000.0,
        cause: gap.cause,
    }
}
