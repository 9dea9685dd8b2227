//! Page of a curve: fault rate over memory, working sets over time, and slowdown over memory.

use super::shown::{ShareRow, SlowdownLine, about, length, rows, working_sets};
use anyhow::Context;
use gleaner_reports::{ComparedUnit, FigureLine, LineAxis, LineCell, LinePage, LineSection};
use gleaner_schemas::curve::Curve;
use gleaner_schemas::units::{Bytes, thousands};

/// Slowdown from which on Verghese and Rosenblum call remote memory unacceptable.
const UNACCEPTABLE: f64 = 2.0;
/// Largest slowdown in the figure; the paper's figures end at four.
const MOST_SLOWDOWN: f64 = 4.0;
/// Local memory in the table of slowdowns, in percent of the footprint.
const TABLE_PERCENT: [f64; 4] = [25.0, 50.0, 75.0, 90.0];

/// Renders the page; without `slowdowns`, it has no section of them.
pub(super) fn html(curve: &Curve, slowdowns: &[SlowdownLine]) -> anyhow::Result<String> {
    let mut sections = vec![faults(curve), sets(curve)];
    if !slowdowns.is_empty() {
        sections.push(slower(curve, slowdowns));
    }
    let footprint_bytes = curve.footprint_pages.saturating_mul(curve.page_bytes);
    let page = LinePage {
        title: "Memory of a program".to_owned(),
        subject: curve.program.clone(),
        period: format!(
            "{:.2} s of CPU, {}",
            curve.native_cpu_s,
            Bytes::from(footprint_bytes)
        ),
        question: "What would the program lose with less local memory?".to_owned(),
        lead: lead(curve, slowdowns),
        about: vec![about(curve)],
        sections,
    };
    page.html().context("cannot write the page")
}

fn lead(curve: &Curve, slowdowns: &[SlowdownLine]) -> String {
    let half = at_percent(curve, 50.0);
    let slower = slowdowns
        .iter()
        .filter_map(|(_, points)| near(points, half));
    let range = slower.fold(None, |range: Option<(f64, f64)>, slowdown| {
        let (low, high) = range.unwrap_or((slowdown, slowdown));
        Some((low.min(slowdown), high.max(slowdown)))
    });
    match range {
        Some((low, high)) => format!(
            "With half of its memory local, the program would take {low:.2} to {high:.2} times as long."
        ),
        None => faults_with_half(curve),
    }
}

fn faults_with_half(curve: &Curve) -> String {
    let half = rows(curve).into_iter().find(|row| row.percent == 50);
    half.map_or_else(String::new, |row| {
        let (rate, memory) = (
            thousands(row.reuse_per_s.round() as u64),
            Bytes::from(row.memory_bytes),
        );
        format!(
            "With half of its memory ({memory}), the program faults {rate} times per CPU second."
        )
    })
}

fn at_percent(curve: &Curve, percent: f64) -> f64 {
    curve.footprint_pages as f64 * curve.page_bytes as f64 * percent / 100.0
}

/// Value of the point whose memory is nearest, if it is within a fiftieth.
fn near(points: &[(f64, f64)], memory_bytes: f64) -> Option<f64> {
    let distance = |point: &&(f64, f64)| (point.0 - memory_bytes).abs();
    let nearest = points
        .iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let nearest = nearest.filter(|point| distance(point) <= memory_bytes / 50.0);
    nearest.map(|point| point.1)
}

fn faults(curve: &Curve) -> LineSection {
    let per_s = |count: u64| count as f64 / curve.native_cpu_s.max(1e-9);
    let bytes = |pages: u64| pages as f64 * curve.page_bytes as f64;
    let line = |label: &str, count: fn(&gleaner_schemas::curve::FaultPoint) -> u64| FigureLine {
        label: label.to_owned(),
        points: curve
            .faults
            .iter()
            .map(|point| (bytes(point.memory_pages), per_s(count(point))))
            .collect(),
    };
    let row = |row: ShareRow| {
        let number = |value| LineCell::Value(ComparedUnit::Number, value);
        vec![
            LineCell::Value(ComparedUnit::Bytes, row.memory_bytes as f64),
            LineCell::Value(ComparedUnit::Share, f64::from(row.percent) / 100.0),
            number(row.reuse),
            number(row.reuse_per_s),
            number(row.write_backs),
        ]
    };
    LineSection {
        id: "faults",
        title: "How often would it fault?",
        answer: faults_with_half(curve),
        figure: "Faults and write-backs per CPU second, over local memory",
        x: LineAxis {
            label: "local memory",
            unit: ComparedUnit::Bytes,
            is_log: false,
        },
        y: LineAxis {
            label: "per CPU second",
            unit: ComparedUnit::Number,
            is_log: true,
        },
        lines: vec![
            line("faults", |point| point.reuse_count),
            line("write-backs", |point| point.write_backs_count),
        ],
        mark: None,
        columns: vec![
            "local memory",
            "of footprint",
            "faults",
            "faults per CPU second",
            "write-backs",
        ],
        rows: rows(curve).into_iter().map(row).collect(),
    }
}

fn sets(curve: &Curve) -> LineSection {
    let bytes = |pages: u64| pages as f64 * curve.page_bytes as f64;
    let mut names: Vec<Option<u64>> = curve.windows.iter().map(|set| set.window_ms).collect();
    names.sort_unstable();
    names.dedup();
    let line = |window_ms: &Option<u64>| {
        let sets = curve
            .windows
            .iter()
            .filter(|set| set.window_ms == *window_ms);
        FigureLine {
            label: window_ms.map_or_else(
                || "since the begin".to_owned(),
                |ms| format!("in {}", length(ms)),
            ),
            points: sets
                .map(|set| (set.time_ms / 1000.0, bytes(set.pages)))
                .collect(),
        }
    };
    let sizes = working_sets(curve);
    let row = |(name, sets): &(String, Vec<gleaner_schemas::curve::WorkingSet>)| {
        let pages = |at: usize| sets.get(at).map_or(0, |set| set.pages);
        let cell = |pages: u64| LineCell::Value(ComparedUnit::Bytes, bytes(pages));
        vec![
            LineCell::Text(name.clone()),
            cell(pages(sets.len() / 2)),
            cell(pages(sets.len().saturating_sub(1))),
        ]
    };
    let largest = sizes.first().and_then(|(name, sets)| {
        let pages = sets.last()?.pages;
        Some(format!(
            "In {name} it uses at most {}.",
            Bytes(bytes(pages))
        ))
    });
    LineSection {
        id: "working-sets",
        title: "How much memory does it use at a time?",
        answer: largest.unwrap_or_default(),
        figure: "Memory used in windows of CPU time",
        x: LineAxis {
            label: "CPU time, s",
            unit: ComparedUnit::Number,
            is_log: false,
        },
        y: LineAxis {
            label: "memory used",
            unit: ComparedUnit::Bytes,
            is_log: false,
        },
        lines: names.iter().map(line).collect(),
        mark: None,
        columns: vec!["window", "median", "largest"],
        rows: sizes.iter().map(row).collect(),
    }
}

fn slower(curve: &Curve, slowdowns: &[SlowdownLine]) -> LineSection {
    let line = |(label, points): &SlowdownLine| FigureLine {
        label: label.clone(),
        points: points
            .iter()
            .copied()
            .filter(|(_, slowdown)| *slowdown <= MOST_SLOWDOWN)
            .collect(),
    };
    let row = |(label, points): &SlowdownLine| {
        let cells = TABLE_PERCENT.map(|percent| {
            let slowdown = near(points, at_percent(curve, percent));
            slowdown.map_or(LineCell::Absent, |value| {
                LineCell::Value(ComparedUnit::Number, value)
            })
        });
        [LineCell::Text(label.clone())]
            .into_iter()
            .chain(cells)
            .collect::<Vec<LineCell>>()
    };
    LineSection {
        id: "slowdown",
        title: "How much longer would it take?",
        answer: lead(curve, slowdowns),
        figure: "Duration as a multiple of that with local memory alone, over local memory",
        x: LineAxis {
            label: "local memory",
            unit: ComparedUnit::Bytes,
            is_log: false,
        },
        y: LineAxis {
            label: "times as long",
            unit: ComparedUnit::Number,
            is_log: false,
        },
        lines: slowdowns.iter().map(line).collect(),
        mark: Some((
            UNACCEPTABLE,
            "unacceptable above, by Verghese and Rosenblum",
        )),
        columns: vec![
            "technology",
            "25 % local",
            "50 % local",
            "75 % local",
            "90 % local",
        ],
        rows: slowdowns.iter().map(row).collect(),
    }
}
