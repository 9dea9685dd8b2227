//! Our values of Anemone's figures, from the results of the benches.

use super::reading::Reading;
use crate::error::{FidelityError, Result};
use gleaner_traces::published::{Figure, PublishedWork};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Link on which borrowed memory is compared.
const GIGABIT: &str = "1 Gbit/s";
/// Link of the disk, which is on the client's host.
const NO_LINK: &str = "none";
/// Bytes of a page.
const PAGE_BYTES: f64 = 4096.0;

/// Results of the benches; each bench writes one of these keys.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Measured {
    /// Distributions by bench/latency.py.
    latency: Option<Latency>,
    /// Runs of programs by bench/programs.py.
    programs: Option<Vec<ProgramRun>>,
    /// Windows of the clerk by bench/window.py.
    window: Option<Windows>,
    /// Bytes on the wire by bench/control.py.
    control: Option<Control>,
}

#[derive(Clone, Debug, Deserialize)]
struct Latency {
    rows: Vec<LatencyRow>,
}

#[derive(Clone, Debug, Deserialize)]
struct LatencyRow {
    path: String,
    link: String,
    access: String,
    rw: String,
    mean_us: f64,
    sd_us: f64,
    p50_us: f64,
    share_below_100_us: f64,
    share_5_to_10_ms: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct ProgramRun {
    set: String,
    program: String,
    processes: u32,
    way: String,
    seconds: f64,
    outcome: String,
    is_quick: bool,
}

#[derive(Clone, Debug, Deserialize)]
struct Windows {
    rows: Vec<WindowRow>,
}

#[derive(Clone, Debug, Deserialize)]
struct WindowRow {
    /// Requests in flight at each server; 0: adaptive.
    window: u32,
    goodput_mib_per_s: f64,
    retransmissions_per_1000_pages: f64,
    quicksort_s: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Control {
    arithmetic_bytes: Arithmetic,
    rows: Vec<ControlRow>,
}

#[derive(Clone, Debug, Deserialize)]
struct Arithmetic {
    page_in: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct ControlRow {
    page_in_percent: f64,
    heads_percent: f64,
}

impl Measured {
    /// Reads the results of several benches; a later file replaces the same bench's results of an earlier one.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut all = Self::default();
        for path in paths {
            let text = std::fs::read_to_string(path).map_err(|source| FidelityError::Measured {
                path: path.clone(),
                source,
            })?;
            let file: Self =
                serde_json::from_str(&text).map_err(|source| FidelityError::MeasuredJson {
                    path: path.clone(),
                    source,
                })?;
            if file.is_empty() {
                return Err(FidelityError::MeasuredNothing { path: path.clone() });
            }
            all = Self {
                latency: file.latency.or(all.latency),
                programs: file.programs.or(all.programs),
                window: file.window.or(all.window),
                control: file.control.or(all.control),
            };
        }
        Ok(all)
    }

    const fn is_empty(&self) -> bool {
        self.latency.is_none()
            && self.programs.is_none()
            && self.window.is_none()
            && self.control.is_none()
    }
}

impl Latency {
    fn row(&self, path: &str, link: &str, access: &str, rw: &str) -> Option<&LatencyRow> {
        let place = (path, link, access, rw);
        let is_there = |r: &&LatencyRow| (&*r.path, &*r.link, &*r.access, &*r.rw) == place;
        self.rows.iter().find(is_there)
    }

    /// Accesses through the page cache.
    fn cached(&self, path: &str, rw: &str) -> Option<&LatencyRow> {
        let link = if path == "disk" { NO_LINK } else { GIGABIT };
        self.row(path, link, "cached", rw)
    }

    fn value(&self, row: &str, column: &str) -> Option<f64> {
        let page_in = || self.row("clerk", GIGABIT, "swap", "randread");
        let by_nbd = |path| self.row(path, GIGABIT, "nbd", "randread");
        let disk_over_clerk =
            |rw| Some(self.cached("disk", rw)?.p50_us / self.cached("clerk", rw)?.p50_us);
        match (row, column) {
            ("page-in", "mean") => Some(page_in()?.mean_us),
            ("page-in", "standard deviation") => Some(page_in()?.sd_us),
            ("disk", _) => self.disk_ms(),
            ("central engine", "mean of a page-in") => Some(by_nbd("relay")?.mean_us),
            ("central engine", _) => Some(by_nbd("relay")?.p50_us / by_nbd("memoryd")?.p50_us),
            ("random reads", "share of 5 to 10 ms on disk") => {
                let disk = self.row("disk", NO_LINK, "direct", "randread")?;
                Some(disk.share_5_to_10_ms * 100.0)
            }
            ("random reads", _) => Some(self.row("clerk", GIGABIT, "direct", "randread")?.p50_us),
            ("sequential reads", "share below 100 us on borrowed memory") => {
                Some(self.cached("clerk", "read")?.share_below_100_us * 100.0)
            }
            ("sequential reads", _) => disk_over_clerk("read"),
            ("random writes", "median on borrowed memory") => {
                Some(self.cached("clerk", "randwrite")?.p50_us)
            }
            ("random writes", _) => disk_over_clerk("randwrite"),
            _ => None,
        }
    }

    /// Mean of random reads on the modelled disk by NBD, in ms.
    fn disk_ms(&self) -> Option<f64> {
        Some(self.row("disk", NO_LINK, "nbd", "randread")?.mean_us / 1000.0)
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*values.get(values.len() / 2 - 1)?, upper))
}

/// Median time of the runs that ended well, in seconds. Trials (`--quick`) do not count.
fn seconds(
    runs: &[ProgramRun],
    set: &str,
    program: &str,
    processes: u32,
    way: &str,
) -> Option<f64> {
    let place = (set, program, processes, way);
    let is_there = |r: &&ProgramRun| {
        (&*r.set, &*r.program, r.processes, &*r.way) == place && r.outcome == "done" && !r.is_quick
    };
    median(
        runs.iter()
            .filter(is_there)
            .map(|run| run.seconds)
            .collect(),
    )
}

/// Time on the disk over time on borrowed memory.
fn factor(runs: &[ProgramRun], set: &str, program: &str, processes: u32) -> Option<f64> {
    let time = |way| seconds(runs, set, program, processes, way);
    Some(time("disk")? / time("borrowed")?)
}

fn single(runs: &[ProgramRun], row: &str) -> Option<f64> {
    let factor = |program| factor(runs, "single", program, 1);
    match row {
        "POV-Ray, 3.4 GB" => factor("POV-Ray, 218 MiB"),
        "quicksort, 5 GB" => factor("std::sort, 320 MiB"),
        "NS-2, 1 GB" => factor("ns-2, 64 MiB"),
        "nearest neighbours, 1.5 GB" => factor("nearest neighbours, 96 MiB"),
        "POV-Ray" => Some(factor("POV-Ray, 218 MiB")? / factor("POV-Ray, 54 MiB")?),
        _ => None,
    }
}

/// Smallest factor of the four programs; absent if one was not measured.
fn smallest_factor(runs: &[ProgramRun]) -> Option<f64> {
    let factors = [
        single(runs, "POV-Ray, 3.4 GB")?,
        single(runs, "quicksort, 5 GB")?,
        single(runs, "NS-2, 1 GB")?,
        single(runs, "nearest neighbours, 1.5 GB")?,
    ];
    factors.into_iter().min_by(f64::total_cmp)
}

fn at_once(runs: &[ProgramRun], row: &str, column: &str) -> Option<f64> {
    const SET: &str = "concurrent";
    let program = if row == "quicksort" { "std::sort" } else { row };
    let counts: BTreeSet<u32> = runs
        .iter()
        .filter(|r| r.set == SET && r.program == program && !r.is_quick)
        .map(|r| r.processes)
        .collect();
    let over_linear = |processes: u32, way| {
        let one = seconds(runs, SET, program, 1, way)?;
        Some(seconds(runs, SET, program, processes, way)? / (one * f64::from(processes)))
    };
    match column {
        "time of most processes on disk, over linear" => over_linear(*counts.last()?, "disk"),
        "time on borrowed memory, largest over linear" => counts
            .iter()
            .filter_map(|&processes| over_linear(processes, "borrowed"))
            .max_by(f64::total_cmp),
        "disk over borrowed memory with 12 to 18 processes" => counts
            .range(12..=18)
            .filter_map(|&processes| factor(runs, SET, program, processes))
            .max_by(f64::total_cmp),
        _ => None,
    }
}

impl Windows {
    fn value(&self, row: &str, column: &str) -> Option<f64> {
        let fixed = || self.rows.iter().filter(|row| row.window > 0);
        let smallest = fixed().min_by_key(|row| row.window)?;
        let largest = fixed().max_by_key(|row| row.window)?;
        let best = fixed().max_by(|a, b| a.goodput_mib_per_s.total_cmp(&b.goodput_mib_per_s))?;
        match (row, column) {
            (_, "retransmissions added") => Some(
                largest.retransmissions_per_1000_pages - smallest.retransmissions_per_1000_pages,
            ),
            ("best window over the smallest", "goodput") => {
                Some(best.goodput_mib_per_s / smallest.goodput_mib_per_s)
            }
            (_, "goodput") => Some(largest.goodput_mib_per_s / best.goodput_mib_per_s),
            (_, "completion time of quicksort") => {
                let shortest_s = fixed()
                    .filter_map(|row| row.quicksort_s)
                    .min_by(f64::total_cmp)?;
                Some(largest.quicksort_s? / shortest_s)
            }
            _ => None,
        }
    }
}

impl Control {
    fn value(&self, row: &str) -> Option<f64> {
        let largest =
            |share: fn(&ControlRow) -> f64| self.rows.iter().map(share).max_by(f64::total_cmp);
        match row {
            "heads of messages" => largest(|row| row.heads_percent),
            "bytes on the wire, a page-in" => largest(|row| row.page_in_percent),
            _ => None,
        }
    }
}

/// Quotient of the disk's and the central engine's page-in, as both are printed.
fn engine_over_disk(published: &PublishedWork) -> Option<f64> {
    let disk_ms = published.get("Text, earlier system", "disk", "mean of page faults")?;
    let engine_us = published.get("Text, latency", "central engine", "mean of a page-in")?;
    Some(disk_ms.paper * 1000.0 / engine_us.paper)
}

/// Our value of a figure, in the figure's unit; absent if the bench's result lacks it.
pub(super) fn ours(figure: &Figure, measured: &Measured, published: &PublishedWork) -> Option<f64> {
    let (row, column) = (&*figure.row, &*figure.column);
    match (&*figure.item, row) {
        ("Text, latency", _) => measured.latency.as_ref()?.value(row, column),
        ("Text, programs", _) => single(measured.programs.as_deref()?, row),
        ("Text, programs at once", _) => at_once(measured.programs.as_deref()?, row, column),
        ("Text, window", _) => measured.window.as_ref()?.value(row, column),
        ("Text, control traffic", _) => measured.control.as_ref()?.value(row),
        ("Text, earlier system", "disk") => measured.latency.as_ref()?.disk_ms(),
        ("Text, earlier system", "central engine") => engine_over_disk(published),
        ("Text, earlier system", _) => smallest_factor(measured.programs.as_deref()?),
        _ => None,
    }
}

/// Note of a figure without a value: the bench to run.
pub(super) fn missing(figure: &Figure) -> String {
    let bench = match (&*figure.item, &*figure.row) {
        ("Text, programs", _) | ("Text, earlier system", "single programs") => {
            "bench/programs.py --sets single"
        }
        ("Text, programs at once", _) => "bench/programs.py --sets concurrent",
        ("Text, window", _) => "bench/window.py",
        ("Text, control traffic", _) => "bench/control.py",
        _ => "bench/latency.py",
    };
    format!("{}; not measured: run {bench}", figure.note)
}

/// Both readings of each contradiction.
pub(super) fn readings(published: &PublishedWork, measured: &Measured) -> Vec<Reading> {
    const FASTER: &str = "central engine, times as fast as the disk";
    const DISK: &str = "disk, ms";
    const SMALLEST: &str = "smallest factor of single programs";
    const CONTROL: &str = "control traffic of a page, B";
    let paper = |item, row, column| published.get(item, row, column).map(|figure| figure.paper);
    let earlier = |row, column| paper("Text, earlier system", row, column);
    let control = paper(
        "Text, control traffic",
        "heads of messages",
        "share of page bytes",
    );
    let factors = published
        .figures
        .iter()
        .filter(|f| f.item == "Text, programs");
    let factors = factors.filter(|f| f.column == "disk over borrowed memory");
    let arithmetic = measured
        .control
        .as_ref()
        .map(|c| c.arithmetic_bytes.page_in);
    let rows = [
        (
            FASTER,
            "as printed",
            earlier("central engine", "times as fast as the disk"),
        ),
        (FASTER, "9.2 ms over 500 us", engine_over_disk(published)),
        (
            DISK,
            "page faults of programs (background)",
            earlier("disk", "mean of page faults"),
        ),
        (
            DISK,
            "results",
            paper("Text, latency", "disk", "mean of random reads"),
        ),
        (
            SMALLEST,
            "as printed",
            earlier("single programs", "smallest factor"),
        ),
        (
            SMALLEST,
            "of the four printed",
            factors.map(|f| f.paper).min_by(f64::total_cmp),
        ),
        (
            CONTROL,
            "as printed",
            control.map(|share| share / 100.0 * PAGE_BYTES),
        ),
        (
            CONTROL,
            "all frames of a page-in by NBD over TCP, by arithmetic",
            arithmetic,
        ),
    ];
    let reading = |(quantity, reading, value): (_, &str, Option<f64>)| {
        Some(Reading {
            quantity,
            reading: reading.to_owned(),
            value: value?,
        })
    };
    rows.into_iter().filter_map(reading).collect()
}

#[cfg(test)]
mod tests;
