//! Cost of tracing to the hosts.

use crate::page::table::{Cell, Table, largest_first, numbers, words as words_column};
use crate::view::View;
use crate::wording::{bytes, share, stored_bytes};
use gleaner_schemas::findings::AgentCost;

/// Number of hosts that the page shows: those with the highest cost.
const ROWS_SHOWN: usize = 10;

pub(super) fn words(view: &View) -> Vec<String> {
    let costs = &view.findings.agent_cost;
    let worst_cpu = costs
        .iter()
        .max_by(|a, b| a.mean_cpu_ms.total_cmp(&b.mean_cpu_ms));
    let worst_memory = costs.iter().max_by_key(|c| c.max_rss_bytes);
    let (Some(worst_cpu), Some(worst_memory)) = (worst_cpu, worst_memory) else {
        return Vec::new();
    };
    let mean =
        |take: fn(&AgentCost) -> f64| costs.iter().map(take).sum::<f64>() / costs.len() as f64;
    let of_cpu = |c: &AgentCost| {
        c.cpu_share
            .map(|s| format!(" ({} of one CPU)", share(s)))
            .unwrap_or_default()
    };
    if costs.len() == 1 {
        return vec![format!(
            "The agent used {:.1}\u{a0}ms of CPU time per sample on average{}, {:.1}\u{a0}ms at most, and {} of memory at most.",
            worst_cpu.mean_cpu_ms,
            of_cpu(worst_cpu),
            worst_cpu.max_cpu_ms,
            stored_bytes(worst_cpu.max_rss_bytes)
        )];
    }
    vec![format!(
        "On average over the hosts, the agent used {:.1}\u{a0}ms of CPU time per sample; most on {}: {:.1}\u{a0}ms{}. Its highest memory use \
         was {} on average over the hosts; most: {} on {}.",
        mean(|c| c.mean_cpu_ms),
        view.host_name(&worst_cpu.host_id),
        worst_cpu.mean_cpu_ms,
        of_cpu(worst_cpu),
        bytes(mean(|c| c.max_rss_bytes as f64)),
        stored_bytes(worst_memory.max_rss_bytes),
        view.host_name(&worst_memory.host_id),
    )]
}

/// Table of the cost of tracing by host, if there are several hosts.
pub(super) fn table(view: &View) -> Option<Table> {
    if view.only_host().is_some() {
        return None;
    }
    let sorted = largest_first(&view.findings.agent_cost, |c| c.mean_cpu_ms);
    let rows = sorted.iter().map(|c| {
        vec![
            view.host_cell(&c.host_id),
            Cell::ms(c.mean_cpu_ms),
            Cell::ms(c.max_cpu_ms),
            Cell::or_absent(c.cpu_share, Cell::share),
            Cell::bytes(c.max_rss_bytes as f64),
        ]
    });
    let mut table = Table::new(
        "agent-cost".into(),
        "The hosts on which the agent used most CPU time",
        vec![
            words_column("host"),
            numbers("mean CPU time per sample"),
            numbers("most"),
            numbers("share of one CPU"),
            numbers("highest memory use"),
        ],
    );
    table.rows_shown = ROWS_SHOWN;
    table.with_rows(rows.collect())
}
