//! What tracing cost a host.

use crate::samples::Samples;
use gleaner_schemas::findings::AgentCost;

/// Over all samples; `None` without any. `interval_ms` is the time between samples, where known.
pub(crate) fn of_host(
    host: &str,
    samples: &Samples,
    interval_ms: Option<i64>,
) -> Option<AgentCost> {
    let cpu_us = &samples.agent_cpu_us;
    let sum_us: f64 = cpu_us.iter().map(|&us| us as f64).sum();
    let mean_cpu_ms = sum_us / cpu_us.len() as f64 / 1000.0;
    Some(AgentCost {
        host: host.to_owned(),
        max_cpu_ms: *cpu_us.iter().max()? as f64 / 1000.0,
        mean_cpu_ms,
        cpu_share: interval_ms.map(|interval| mean_cpu_ms / interval as f64),
        max_rss_bytes: *samples.agent_rss_bytes.iter().max()?,
    })
}
