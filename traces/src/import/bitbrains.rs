//! GWA-T-12: virtual machines of Bitbrains' data centre, as the Grid Workloads Archive published them: one CSV a
//! machine, a row every 300 s.
//!
//! ```text
//! Timestamp [ms];⇥CPU cores;⇥…;⇥Memory capacity provisioned [KB];⇥Memory usage [KB];⇥…
//! 1372629804;⇥1;⇥…;⇥4194304.0;⇥131419.73333333334;⇥…
//! ```
//!
//! Memory usage is what the hypervisor saw in active use, estimated from a few pages: less than the machine's own
//! kernel would say. What is computed as available is an **upper bound**. CPU use is no load average, and there
//! is no word of owners, processes or files: all that is absent.

use super::files::{Line, Lines, MachineFile, of_folder};
use super::{Filled, ImportError, Importer, Listed, Reading, Readings, Source};
use gleaner_schemas::units::kib_to_bytes;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The columns of either trace.
const FILLS: &[Filled<'static>] = &[
    Filled::INTERVAL_MS,
    Filled::FILES_WHOLE,
    Filled::new(
        "samples",
        "physical_bytes",
        "Memory capacity provisioned [KB], of 1024 bytes",
    ),
    Filled::new(
        "samples",
        "available_bytes",
        "Memory capacity provisioned less Memory usage [KB]; an upper bound",
    ),
    Filled::new("hosts", "host_name", "the file's name"),
    Filled::new("hosts", "cpus_count", "CPU cores"),
    Filled::new(
        "hosts",
        "physical_bytes",
        "Memory capacity provisioned [KB], of 1024 bytes",
    ),
    Filled::SOURCE,
];

/// 500 machines of a mixed kind, on slower storage.
pub const RND: Source<'static> = Source {
    name: "GWA-T-12 Bitbrains rnd",
    host_prefix: "bitbrains-rnd",
    available: "Available memory is an upper bound: use is what the hypervisor saw in active use.",
    fills: FILLS,
    columns: &[],
};

/// 1,250 machines on fast storage.
pub const FAST_STORAGE: Source<'static> = Source {
    name: "GWA-T-12 Bitbrains fastStorage",
    host_prefix: "bitbrains-fast",
    ..RND
};

const TIME: &str = "Timestamp [ms]";
const CPUS: &str = "CPU cores";
const CAPACITY: &str = "Memory capacity provisioned [KB]";
const USAGE: &str = "Memory usage [KB]";
/// Columns that a file must have.
const NEEDED: [&str; 4] = [TIME, CPUS, CAPACITY, USAGE];

/// Times below are in seconds, and above in ms: the border is in the year 5138, or in 1973.
const SECONDS_BELOW: f64 = 1e11;
/// 2000-01-01 and 2100-01-01: a row of another time was not recorded by a hypervisor.
const TIMES_MS: std::ops::Range<f64> = 946_684_800_000.0..4_102_444_800_000.0;
/// A machine with more is a mistake: 1 PiB.
const MEMORY_KIB: f64 = (1_u64 << 40) as f64;

/// Where the columns stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Of each of the needed columns.
    places: [usize; NEEDED.len()],
    count: usize,
}

/// A row that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it says.
    pub reading: Reading,
    /// Whether its time is in seconds, whatever the header says.
    pub in_seconds: bool,
}

impl Columns {
    /// From the header.
    ///
    /// # Errors
    /// What is there instead, in words.
    pub fn of_header(line: &str) -> Result<Self, String> {
        let names: Vec<&str> = fields(line.trim_start_matches('\u{feff}')).collect();
        let place = |needed: &&str| names.iter().position(|name| name == needed);
        let missing: Vec<&str> = NEEDED
            .into_iter()
            .filter(|needed| place(needed).is_none())
            .collect();
        match NEEDED.each_ref().map(place) {
            [Some(time), Some(cpus), Some(capacity), Some(usage)] => Ok(Self {
                places: [time, cpus, capacity, usage],
                count: names.len(),
            }),
            _ if missing.len() == NEEDED.len() => Err(format!("{:?} is no header", cut(line))),
            _ => Err(format!("there is no column {}", missing.join(", "))),
        }
    }

    /// Reads a row.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn row(&self, line: &str) -> Result<Row, String> {
        let texts: Vec<&str> = fields(line).collect();
        if texts.len() != self.count {
            return Err(format!("{} columns instead of {}", texts.len(), self.count));
        }
        let mut numbers = [0.0; NEEDED.len()];
        for ((number, place), name) in numbers.iter_mut().zip(self.places).zip(NEEDED) {
            let text = texts.get(place).copied().unwrap_or_default();
            let parsed = text
                .parse()
                .ok()
                .filter(|n: &f64| n.is_finite() && *n >= 0.0);
            *number = parsed.ok_or_else(|| format!("{name} is {:?}", cut(text)))?;
        }
        let [time, cpus, capacity, usage] = numbers;
        let in_seconds = time < SECONDS_BELOW;
        let time_ms = if in_seconds { time * 1000.0 } else { time }.round();
        if !TIMES_MS.contains(&time_ms) {
            return Err(format!(
                "{TIME} is {time}, which is no time from 2000 to 2100"
            ));
        }
        for (name, kib) in [(CAPACITY, capacity), (USAGE, usage)] {
            if kib > MEMORY_KIB {
                return Err(format!("{name} is {kib}, more than any machine has"));
            }
        }
        // Whole and within the bounds above.
        let reading = Reading {
            time_ms: time_ms as i64,
            physical_bytes: bytes(capacity),
            available_bytes: bytes(capacity) - bytes(usage),
            cpus_count: cpus.round().min(1e6) as i64,
            booted_ms: 0,
        };
        Ok(Row {
            reading,
            in_seconds,
        })
    }
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(';').map(str::trim)
}

/// A mean over an interval has parts of a KiB, which are whole bytes to a byte or so.
fn bytes(kib: f64) -> i64 {
    (kib * kib_to_bytes(1) as f64).round() as i64
}

/// As much of a text as fits a message.
fn cut(text: &str) -> String {
    const CHARACTERS: usize = 40;
    let mut cut: String = text.chars().take(CHARACTERS).collect();
    if text.chars().nth(CHARACTERS).is_some() {
        cut.push('…');
    }
    cut
}

/// The machines' files in a folder.
#[derive(Debug)]
pub struct Bitbrains {
    folder: PathBuf,
    source: Source<'static>,
    files: HashMap<String, PathBuf>,
}

impl Bitbrains {
    /// Of `folder`, as `source` ([`RND`] or [`FAST_STORAGE`]).
    #[must_use]
    pub fn new(folder: &Path, source: Source<'static>) -> Self {
        Self {
            folder: folder.to_owned(),
            source,
            files: HashMap::new(),
        }
    }
}

impl Importer for Bitbrains {
    fn source(&self) -> Source<'_> {
        self.source
    }

    fn origin(&self) -> String {
        self.folder.display().to_string()
    }

    fn machines(&mut self) -> Result<Listed, ImportError> {
        let (files, passed_over) = of_folder(&self.folder)?;
        for file in &files {
            header(&file.path)?;
        }
        let machines = files.iter().map(|file| file.machine.clone()).collect();
        let places = files
            .into_iter()
            .map(|MachineFile { machine, path }| (machine, path));
        self.files = places.collect();
        Ok(Listed {
            machines,
            passed_over,
        })
    }

    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError> {
        let Some(path) = self.files.get(machine) else {
            return Ok(());
        };
        let Some((columns, mut lines)) = header(path)? else {
            return Ok(());
        };
        let failed = || ImportError::io("read", path);
        while let Some((number, line)) = lines.next().map_err(failed())? {
            let row = match line {
                Line::Text(text) if text.trim().is_empty() => continue,
                Line::Text(text) => columns.row(text),
                Line::Unreadable(why) => Err(why.to_owned()),
            };
            match row {
                Ok(row) => {
                    readings.mended.in_seconds_count += u64::from(row.in_seconds);
                    readings.push(row.reading, &[]);
                }
                Err(why) => readings.unreadable(format_args!("line {number}"), why),
            }
        }
        Ok(())
    }
}

/// The columns of a machine's file, and its lines after the header; `None` where the file is empty.
fn header(path: &Path) -> Result<Option<(Columns, Lines<std::fs::File>)>, ImportError> {
    let mut lines = Lines::open(path).map_err(ImportError::io("open", path))?;
    let first = lines.next().map_err(ImportError::io("read", path))?;
    let columns = match first {
        None => return Ok(None),
        Some((_, Line::Text(line))) => Columns::of_header(line),
        Some((_, Line::Unreadable(why))) => Err(format!("the line is {why}")),
    };
    let columns = columns.map_err(|found| ImportError::Header {
        path: path.to_owned(),
        found,
        expected: NEEDED.join(", "),
    })?;
    Ok(Some((columns, lines)))
}
