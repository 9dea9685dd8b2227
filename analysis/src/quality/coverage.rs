//! The hosts, and the share of its time that each covers with samples.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::reads::ReadSet;
use gleaner_hosts::recorded::Gap;
use gleaner_schemas::findings::{self, Findings, HostSummary};

/// Summary of each host.
pub(crate) struct Summaries;

impl HostMeasure for Summaries {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<HostSummary>(ReadSet::FEW)];

    fn write(host: &mut HostHistory<'_>, pass: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        findings.hosts.push(summary(host, pass));
        Ok(())
    }
}

fn summary(host: &HostHistory<'_>, pass: &Pass<'_>) -> HostSummary {
    let (samples, inventory) = (&host.trace.samples, &host.trace.inventory);
    let time = || samples.time_ms.iter().copied();
    let from_time_ms = time().min().unwrap_or(0);
    let to_time_ms = time().max().unwrap_or(0);
    let span_ms = to_time_ms.saturating_sub(from_time_ms);
    let physical_bytes = samples.physical_bytes.last().copied().unwrap_or(0);
    let share = host.idleness.share();
    HostSummary {
        host_id: host.id().to_owned(),
        host_name: (inventory.host_name.clone()).unwrap_or_else(|| host.id().to_owned()),
        size_class: pass.classes.of(physical_bytes).to_string(),
        physical_bytes,
        cpus_count: inventory.cpus_count,
        kernel_release: inventory.kernel_release.clone(),
        sample_interval_s: host.trace.intervals.last().map(|ms| ms as f64 / 1000.0),
        samples_count: samples.len() as i64,
        from_time_ms,
        to_time_ms,
        // A single sample spans no time. After a clock was set back, some time is covered twice.
        coverage_share: if span_ms > 0 {
            (host.trace.covered_ms() as f64 / span_ms as f64).min(1.0)
        } else {
            1.0
        },
        idle_share: share.filter(|_| host.can_show_idle()),
        source: inventory.source.clone(),
    }
}

/// Times without samples.
pub(crate) struct Gaps;

impl HostMeasure for Gaps {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<findings::Gap>(ReadSet::FEW)];

    fn write(host: &mut HostHistory<'_>, _: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        let gaps = host.trace.gaps.iter();
        findings.gaps.extend(gaps.map(|gap| record(host.id(), gap)));
        Ok(())
    }
}

fn record(host: &str, gap: &Gap) -> findings::Gap {
    findings::Gap {
        host_id: host.to_owned(),
        from_time_ms: gap.from_ms,
        to_time_ms: gap.to_ms,
        // A gap from a clock set back skips no time.
        duration_s: gap.to_ms.saturating_sub(gap.from_ms).max(0) as f64 / 1000.0,
        cause: gap.cause.clone(),
    }
}
