//! Rows as a page of benefit against cost.

use super::Results;
use anyhow::Context;
use gleaner_reports::{Compared, ComparedGroup, ComparedMeasure, ComparedUnit, Comparison};
use gleaner_simulator::event::DAY;
use gleaner_simulator::sweep::{Cluster, MEASURES, Row, Unit};
use jiff::Timestamp;

/// What is up in figures.
const BENEFIT: &str = "gain_share";
/// What is along, a figure each.
const COSTS: [&str; 2] = ["reclaims_per_host_day", "mean_memory_context_bytes"];

pub(super) fn html(results: &Results<'_>) -> anyhow::Result<String> {
    let plan = results.plan;
    let place = |key: &str| MEASURES.iter().position(|m| m.key == key);
    let keys = ["program".to_owned()].into_iter().chain(plan.keys.clone());
    let days = plan.length_ns as f64 / DAY as f64;
    let seeds = match plan.seeds.len() {
        1 => "One seed".to_owned(),
        many => format!("The median of {many} seeds"),
    };
    let comparison = Comparison {
        title: "Lending, simulated".to_owned(),
        subject: results.name.to_owned(),
        period: format!("{} days", (days * 100.0).round() / 100.0),
        about: vec![
            format!("{}.", results.file.about.trim_end_matches('.')),
            format!(
                "{seeds} of each case. Owners are taken to behave the same whatever is lent; what a return costs is a footprint; owners' delay is estimated from it, at most."
            ),
        ],
        keys: keys.collect(),
        measures: MEASURES.iter().map(measure).collect(),
        benefit: place(BENEFIT).unwrap_or(0),
        costs: COSTS.into_iter().filter_map(place).collect(),
        groups: results
            .clusters
            .iter()
            .enumerate()
            .map(|(at, cluster)| group(results, at, cluster))
            .collect(),
    };
    comparison.html().context("cannot write the page")
}

fn measure(measure: &gleaner_simulator::sweep::Measure) -> ComparedMeasure {
    ComparedMeasure {
        label: measure.label,
        unit: match measure.unit {
            Unit::Number => ComparedUnit::Number,
            Unit::Share => ComparedUnit::Share,
            Unit::Bytes => ComparedUnit::Bytes,
        },
        meaning: measure.meaning,
    }
}

fn group(results: &Results<'_>, at: usize, cluster: &Cluster) -> ComparedGroup {
    let time = |ms| {
        let time = Timestamp::from_millisecond(ms);
        time.map_or_else(
            |_| format!("{ms} ms"),
            |t| t.strftime("%-d %B %Y, %H:%M").to_string(),
        )
    };
    let rows = results.rows.iter().filter(|row| row.dataset == at);
    ComparedGroup {
        name: format!("Dataset {}", cluster.name),
        about: format!(
            "From {} to {} (UTC).",
            time(cluster.from_ms),
            time(cluster.until_ms)
        ),
        rows: rows.map(compared).collect(),
    }
}

fn compared(row: &Row) -> Compared {
    let program = [row.program.to_string()].into_iter();
    let values = row.values.iter();
    Compared {
        settings: program.chain(row.settings.iter().cloned()).collect(),
        values: values
            .map(|value| value.map(|v| [v.median, v.low, v.high]))
            .collect(),
    }
}
