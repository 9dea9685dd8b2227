//! Cost of tracing to a host.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::HostTrace;
use crate::trace::reads::ReadSet;
use gleaner_schemas::findings::{AgentCost, Findings};

/// Cost of tracing, by host.
pub(crate) struct AgentCosts;

impl HostMeasure for AgentCosts {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<AgentCost>(ReadSet::SAMPLES)];

    fn write(host: &mut HostHistory<'_>, _: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        findings.agent_cost.extend(of_host(&host.trace));
        Ok(())
    }
}

/// Cost over all samples; `None` if no sample has its cost.
fn of_host(trace: &HostTrace<'_>) -> Option<AgentCost> {
    let known = |values: &[Option<i64>]| values.iter().copied().flatten().collect::<Vec<_>>();
    let cpu_us = known(&trace.samples.agent_cpu_us);
    let sum_us: f64 = cpu_us.iter().map(|&us| us as f64).sum();
    let mean_cpu_ms = sum_us / cpu_us.len() as f64 / 1000.0;
    Some(AgentCost {
        host_id: trace.host().to_owned(),
        max_cpu_ms: *cpu_us.iter().max()? as f64 / 1000.0,
        mean_cpu_ms,
        cpu_share: (trace.intervals.last()).map(|interval| mean_cpu_ms / interval as f64),
        max_rss_bytes: known(&trace.samples.agent_rss_bytes).into_iter().max()?,
    })
}
