//! Page that plots the benefit of each row against its cost.

use super::Results;
use anyhow::Context;
use gleaner_reports::{ComparedGroup, ComparedMeasure, ComparedRow, ComparedUnit, Comparison};
use gleaner_simulator::event::DAY;
use gleaner_simulator::sweep::{MEASURES, Row, SimulatedTime, Unit};
use jiff::Timestamp;

/// Measures for the vertical axis, in order of preference: the first that is known for every row is used, so
/// that no row is missing. The gain may be unknown for recorded clients, which begin without data; the
/// speedup is unknown for clients that have not ended.
const BENEFITS: [&str; 3] = ["gain_share", "speedup", "hit_share"];
/// Measures for the horizontal axis, one figure for each.
const COSTS: [&str; 2] = ["reclaims_per_host_day", "mean_memory_context_bytes"];

pub(super) fn html(results: &Results<'_>) -> anyhow::Result<String> {
    let plan = &results.summary.plan;
    let keys = ["program".to_owned()].into_iter().chain(plan.keys.clone());
    let days = plan.length_ns as f64 / DAY as f64;
    let seeds = match plan.seeds.len() {
        1 => "One seed".to_owned(),
        many => format!("The median of {many} seeds"),
    };
    let comparison = Comparison {
        title: "Lending, simulated".to_owned(),
        subject: results.summary.scenario.clone(),
        period: format!("{} days", (days * 100.0).round() / 100.0),
        about: vec![
            format!("{}.", results.summary.about.trim_end_matches('.')),
            format!(
                "{seeds} of each case. The simulation assumes that lending does not change the owners’ behaviour. The cost of a return is a memory size; the owners’ delay is an upper estimate from it."
            ),
        ],
        keys: keys.collect(),
        measures: MEASURES.iter().map(measure).collect(),
        benefit: benefit(results.rows),
        costs: COSTS.into_iter().filter_map(place).collect(),
        groups: results
            .summary
            .datasets()
            .enumerate()
            .map(|(at, (name, time))| group(results, at, name, time))
            .collect(),
    };
    comparison.html().context("cannot write the page")
}

fn place(key: &str) -> Option<usize> {
    MEASURES.iter().position(|measure| measure.key == key)
}

/// Index of the measure for the vertical axis. Rows without any known value are ignored in the choice.
fn benefit(rows: &[Row]) -> usize {
    let is_known = |at: usize| {
        let mut known = rows
            .iter()
            .filter(|row| row.values.iter().any(Option::is_some));
        known.all(|row| row.values.get(at).is_some_and(Option::is_some))
    };
    let mut places = BENEFITS.into_iter().filter_map(place);
    places.find(|at| is_known(*at)).unwrap_or(0)
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

fn group(results: &Results<'_>, at: usize, name: &str, span: SimulatedTime) -> ComparedGroup {
    let time = |ms| {
        let time = Timestamp::from_millisecond(ms);
        time.map_or_else(
            |_| format!("{ms} ms"),
            |t| t.strftime("%-d %B %Y, %H:%M").to_string(),
        )
    };
    let rows = results.rows.iter().filter(|row| row.dataset == at);
    ComparedGroup {
        name: format!("Dataset {name}"),
        about: format!(
            "From {} to {} (UTC).",
            time(span.from_ms),
            time(span.until_ms)
        ),
        rows: rows.map(compared).collect(),
    }
}

fn compared(row: &Row) -> ComparedRow {
    let program = [row.program.to_string()].into_iter();
    let values = row.values.iter();
    ComparedRow {
        settings: program.chain(row.settings.iter().cloned()).collect(),
        values: values
            .map(|value| value.map(|v| [v.median, v.low, v.high]))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_simulator::sweep::Workload;
    use gleaner_simulator::swept::Spread;

    fn row(known: &[&str]) -> Row {
        let one = Spread {
            median: 1.0,
            low: 1.0,
            high: 1.0,
        };
        let value = |m: &gleaner_simulator::sweep::Measure| known.contains(&m.key).then_some(one);
        Row {
            dataset: 0,
            program: Workload::Streams,
            settings: Vec::new(),
            values: MEASURES.iter().map(value).collect(),
            by_seed: Vec::new(),
            clients: Vec::new(),
        }
    }

    #[test]
    fn what_is_up_is_known_of_every_row() {
        let all = row(&["gain_share", "speedup", "hit_share"]);
        let no_gain = row(&["speedup", "hit_share"]);
        let none_ended = row(&["hit_share"]);
        let too_short = row(&[]);
        for (rows, key) in [
            (vec![all.clone(), too_short.clone()], "gain_share"),
            (vec![all.clone(), no_gain.clone(), too_short], "speedup"),
            (vec![all, no_gain, none_ended], "hit_share"),
            (vec![], "gain_share"),
        ] {
            assert_eq!(MEASURES[benefit(&rows)].key, key);
        }
    }
}
