//! Page of a sweep of global memory: each figure has a line per policy over the first swept number, and a table
//! beside it.

use crate::tables::percent;
use anyhow::{Context, bail};
use gleaner_reports::{ComparedUnit, FigureLine, LineAxis, LineCell, LinePage, LineSection};
use gleaner_schemas::units::Bytes;
use gleaner_simulator::gms::{MEASURES, ScenarioFile};
use gleaner_simulator::swept::{Spread, SweptRow};

/// Most lines that a section's sentence names.
const MOST_NAMED: usize = 8;

/// A figure of the page.
struct PlottedMeasure {
    /// Key of the measure.
    measure: &'static str,
    id: &'static str,
    title: &'static str,
    figure: &'static str,
    y: LineAxis,
}

const PLOTTED: [PlottedMeasure; 5] = [
    PlottedMeasure {
        measure: "speedup",
        id: "speedup",
        title: "How much faster are the programs?",
        figure: "Speedup of the programs",
        y: LineAxis {
            label: "speedup",
            unit: ComparedUnit::Number,
            is_log: false,
        },
    },
    PlottedMeasure {
        measure: "source_share",
        id: "source-reads",
        title: "How many reads go to disk or server?",
        figure: "Share of the counted reads that disk or server answered",
        y: LineAxis {
            label: "reads from disk or server",
            unit: ComparedUnit::Share,
            is_log: false,
        },
    },
    PlottedMeasure {
        measure: "network_bytes",
        id: "network",
        title: "What does the network carry?",
        figure: "Bytes of all messages in the whole run",
        y: LineAxis {
            label: "messages",
            unit: ComparedUnit::Bytes,
            is_log: false,
        },
    },
    PlottedMeasure {
        measure: "epoch_bytes",
        id: "epochs",
        title: "What do epochs cost?",
        figure: "Bytes of the epochs’ messages in the whole run",
        y: LineAxis {
            label: "epochs’ messages",
            unit: ComparedUnit::Bytes,
            is_log: false,
        },
    },
    PlottedMeasure {
        measure: "owner_cpu_share",
        id: "owners",
        title: "What do owners lose?",
        figure: "Share of the CPU that global memory used on hosts in use",
        y: LineAxis {
            label: "CPU of hosts in use",
            unit: ComparedUnit::Share,
            is_log: false,
        },
    },
];

/// Setting on the horizontal axes, and the lines' rows.
struct Lines<'a> {
    x: LineAxis,
    /// Names of the lines, in the order of the rows.
    names: Vec<String>,
    /// For each row: the line, the value on the horizontal axis, and the row.
    rows: Vec<(usize, f64, &'a SweptRow)>,
}

/// Checks that the sweep has a setting for the horizontal axes. This comes before the runs, which may take hours.
pub(super) fn check(file: &ScenarioFile) -> anyhow::Result<()> {
    let cases = file.cases()?;
    let values: Vec<&[String]> = cases.iter().map(|case| &case.values[..]).collect();
    match axis_at(&file.keys(), &values) {
        Some(_) => Ok(()),
        None => bail!(
            "--page needs a swept setting with several numbers, such as --sweep idle_nodes=20,100"
        ),
    }
}

pub(super) fn html(name: &str, file: &ScenarioFile, rows: &[SweptRow]) -> anyhow::Result<String> {
    let keys = file.keys();
    let values: Vec<&[String]> = rows.iter().map(|row| &row.settings[..]).collect();
    let at = axis_at(&keys, &values).context("no swept setting has several numbers")?;
    let key = keys.get(at).map_or("", String::as_str);
    let lines = lines(key, at, rows);
    let sections: Vec<LineSection> = PLOTTED
        .iter()
        .filter_map(|plotted| section(plotted, &lines))
        .collect();
    let lead = sections.first().map(|section| section.answer.clone());
    let seeds = match file.seeds.len() {
        1 => "One seed".to_owned(),
        many => format!("Medians of {many} seeds"),
    };
    let mut about = vec![
        format!("{}.", file.about.trim_end_matches('.')),
        format!("{seeds} of each case. The horizontal axes show {key}."),
    ];
    if !file.datasets.is_empty() {
        about.push(
            "Nodes with idle memory are recorded hosts, which lend only memory that their owners do not use: no page \
             of an owner is displaced. More nodes than recorded hosts are repetitions with later begins, which are \
             synthetic."
                .to_owned(),
        );
    }
    let page = LinePage {
        title: "Global memory, simulated".to_owned(),
        subject: name.to_owned(),
        period: format!("{} cases", rows.len()),
        question: "What does the memory of other nodes gain, and what does it cost?".to_owned(),
        lead: lead.unwrap_or_default(),
        about,
        sections,
    };
    page.html().context("cannot write the page")
}

/// Place of the first setting whose values are numbers, at least two of them different.
fn axis_at(keys: &[String], values: &[&[String]]) -> Option<usize> {
    let is_axis = |at: &usize| {
        let texts = values.iter().filter_map(|row| row.get(*at));
        let numbers: Vec<f64> = texts.filter_map(|text| text.parse().ok()).collect();
        let differs = numbers.iter().any(|number| Some(number) != numbers.first());
        differs && numbers.len() == values.len()
    };
    (0..keys.len()).find(is_axis)
}

fn axis(key: &str) -> LineAxis {
    let (label, unit, is_log) = match key {
        "idle_nodes" => ("nodes with idle memory", ComparedUnit::Number, true),
        "idle_frames" => ("idle frames", ComparedUnit::Number, false),
        "client_frames" => ("frames of a client", ComparedUnit::Number, false),
        "frame_bytes" => ("size of a frame", ComparedUnit::Bytes, false),
        "recorded.lent_share" => ("share of the quota", ComparedUnit::Share, false),
        _ => ("value of the setting", ComparedUnit::Number, false),
    };
    LineAxis {
        label,
        unit,
        is_log,
    }
}

/// A line for each combination of the other settings. Settings with one value are not named.
fn lines<'a>(key: &str, at: usize, rows: &'a [SweptRow]) -> Lines<'a> {
    let mut lines = Lines {
        x: axis(key),
        names: Vec::new(),
        rows: Vec::new(),
    };
    let differs = |at: usize| {
        let first = rows.first().and_then(|row| row.settings.get(at));
        rows.iter().any(|row| row.settings.get(at) != first)
    };
    for row in rows {
        let others = row.settings.iter().enumerate();
        let others = others.filter(|(other, _)| *other != at && differs(*other));
        let others: Vec<&str> = others.map(|(_, value)| value.as_str()).collect();
        let name = match others[..] {
            [] => "all cases".to_owned(),
            _ => others.join(", "),
        };
        let place = lines.names.iter().position(|known| *known == name);
        let place = place.unwrap_or(lines.names.len());
        if place == lines.names.len() {
            lines.names.push(name);
        }
        let x = row.settings.get(at).and_then(|value| value.parse().ok());
        lines.rows.push((place, x.unwrap_or(0.0), row));
    }
    lines
}

/// Figure and table of a measure; `None` if no row has the measure.
fn section(plotted: &PlottedMeasure, lines: &Lines<'_>) -> Option<LineSection> {
    let at = MEASURES
        .iter()
        .position(|measure| measure.key == plotted.measure)?;
    let figure_lines = lines.names.iter().enumerate().map(|(place, name)| {
        let of_line = lines.rows.iter().filter(|(line, ..)| *line == place);
        let points = of_line.filter_map(|(_, x, row)| Some((*x, value(row, at)?.median)));
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        FigureLine {
            label: name.clone(),
            points,
        }
    });
    let figure_lines: Vec<FigureLine> = figure_lines.collect();
    let most_x = figure_lines.iter().filter_map(|line| line.points.last());
    let most_x = most_x.map(|point| point.0).max_by(f64::total_cmp)?;
    let cells = |(line, x, row): &(usize, f64, &SweptRow)| {
        let y = |of: fn(&Spread) -> f64| {
            let known = value(row, at);
            known.map_or(LineCell::Absent, |v| {
                LineCell::Value(plotted.y.unit, of(&v))
            })
        };
        vec![
            LineCell::Text(lines.names.get(*line).cloned().unwrap_or_default()),
            LineCell::Value(lines.x.unit, *x),
            y(|v| v.median),
            y(|v| v.low),
            y(|v| v.high),
        ]
    };
    Some(LineSection {
        id: plotted.id,
        title: plotted.title,
        answer: answer(plotted, lines, &figure_lines, most_x),
        figure: plotted.figure,
        x: lines.x,
        y: plotted.y,
        columns: vec![
            "case",
            lines.x.label,
            plotted.y.label,
            "lowest of the seeds",
            "highest of the seeds",
        ],
        rows: lines.rows.iter().map(cells).collect(),
        lines: figure_lines,
        mark: None,
    })
}

/// Figure number `at` of a row.
fn value(row: &SweptRow, at: usize) -> Option<Spread> {
    row.values.get(at).copied().flatten()
}

/// The lines' values at the largest value of the horizontal axis, in a sentence.
fn answer(
    plotted: &PlottedMeasure,
    lines: &Lines<'_>,
    figure_lines: &[FigureLine],
    most_x: f64,
) -> String {
    let last = figure_lines.iter().filter_map(|line| {
        let point = line.points.last().filter(|point| point.0 >= most_x)?;
        Some(format!("{} {}", line.label, words(plotted.y.unit, point.1)))
    });
    let said: Vec<String> = last.take(MOST_NAMED).collect();
    let end = match lines.x.unit {
        ComparedUnit::Number => most_x.to_string(),
        unit => words(unit, most_x),
    };
    let (label, x_label) = (plotted.y.label, lines.x.label);
    format!("At {end} ({x_label}), {label}: {}.", said.join("; "))
}

fn words(unit: ComparedUnit, value: f64) -> String {
    match unit {
        ComparedUnit::Number => format!("{value:.2}"),
        ComparedUnit::Share => percent(value),
        ComparedUnit::Bytes => Bytes(value).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "system = 'gms'\n[sweep]\nidle_frames = [0, 4000]\npolicy = ['gms', 'hash']";

    fn row(settings: [&str; 2], speedup: f64) -> SweptRow {
        let one = Spread {
            median: speedup,
            low: speedup,
            high: speedup + 1.0,
        };
        SweptRow {
            settings: settings.map(str::to_owned).to_vec(),
            values: MEASURES
                .iter()
                .map(|measure| (measure.key == "speedup").then_some(one))
                .collect(),
        }
    }

    #[test]
    fn a_line_for_each_policy_and_a_table_with_every_row() {
        let rows = [
            row(["0", "gms"], 1.0),
            row(["0", "hash"], 1.25),
            row(["4000", "gms"], 3.5),
            row(["4000", "hash"], 2.0),
        ];
        let all = lines("idle_frames", 0, &rows);
        assert_eq!(all.names, ["gms", "hash"]);
        let speedups = section(&PLOTTED[0], &all).unwrap();
        assert_eq!(speedups.lines[0].points, [(0.0, 1.0), (4000.0, 3.5)]);
        assert_eq!(speedups.rows.len(), 4);
        assert_eq!(
            speedups.answer,
            "At 4000 (idle frames), speedup: gms 3.50; hash 2.00."
        );
        assert!(section(&PLOTTED[4], &all).is_none(), "no row has owners");
    }

    #[test]
    fn the_axis_is_the_first_setting_with_several_numbers() {
        let keys = ["policy", "seed", "idle_frames"].map(str::to_owned);
        let rows = [["gms", "1", "0"], ["gms", "1", "50"]].map(|row| row.map(str::to_owned));
        let values: Vec<&[String]> = rows.iter().map(|row| &row[..]).collect();
        assert_eq!(axis_at(&keys, &values), Some(2));
        assert_eq!(axis_at(&keys, &values[..1]), None);
    }

    #[test]
    fn the_page_is_the_same_each_time_and_words_stay_words() {
        let file = ScenarioFile::parse(FILE).unwrap();
        check(&file).unwrap();
        let rows = [row(["0", "gms"], 1.0), row(["4000", "hash <b>"], 2.0)];
        let page = html("mine", &file, &rows).unwrap();
        assert_eq!(page, html("mine", &file, &rows).unwrap());
        assert!(page.contains("hash &#60;b&#62;") && !page.contains("hash <b>"));
        let fixed = ScenarioFile::parse("system = 'gms'").unwrap();
        assert!(check(&fixed).is_err());
    }
}
