//! The Grid Workloads Archive's traces of virtual machines: a folder of CSV files, one per machine, with a
//! row every 300 s.
//!
//! The traces write times and numbers differently ([`Dialect`]); their memory columns have the same names.
//!
//! A mapping of [`super::csv`] cannot express these traces. A mapping has one time format for all rows, but
//! Bitbrains mixes seconds and milliseconds, which are counted here. A mapping rejects `2,0` as a number of
//! CPUs. And it generates the texts of [`fills`] from column names.

use super::files::{Line, Lines, MachineFile, cut, of_folder};
use super::readings::{MEMORY_BYTES, TIMES_MS};
use super::{ColumnOrigin, ImportError, Importer, MachineList, Reading, Readings, Source};
use gleaner_schemas::units::kib_to_bytes;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const CPUS: &str = "CPU cores";
const CAPACITY: &str = "Memory capacity provisioned [KB]";
const USAGE: &str = "Memory usage [KB]";

/// Columns that each of these traces fills. `available` is the description of how available memory is computed.
pub(super) const fn fills(available: &'static str) -> [ColumnOrigin<'static>; 8] {
    const PROVISIONED: &str = "Memory capacity provisioned [KB], of 1024 bytes";
    [
        ColumnOrigin::INTERVAL_MS,
        ColumnOrigin::FILES_WHOLE,
        ColumnOrigin::new("samples", "physical_bytes", PROVISIONED),
        ColumnOrigin::new("samples", "available_bytes", available),
        ColumnOrigin::new("hosts", "host_name", "the file's name"),
        ColumnOrigin::new("hosts", "cpus_count", CPUS),
        ColumnOrigin::new("hosts", "physical_bytes", PROVISIONED),
        ColumnOrigin::SOURCE,
    ]
}

/// Formats of times and numbers in a trace.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Name of the time column.
    pub time: &'static str,
    /// Reads a time; `None` if it is malformed.
    pub time_of: fn(&str) -> Option<Time>,
    /// Reads a number; `None` if it is malformed.
    pub number_of: fn(&str) -> Option<f64>,
}

/// A time in a file's row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// Time in ms since 1970-01-01 UTC, a whole number.
    pub ms: f64,
    /// True if the file gives this time in seconds, although the header says ms.
    pub in_seconds: bool,
}

impl Dialect {
    /// Columns that every file must have.
    fn needed(&self) -> [&'static str; 4] {
        [self.time, CPUS, CAPACITY, USAGE]
    }
}

/// Positions of the columns in a file.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    dialect: &'static Dialect,
    /// Position of each needed column.
    places: [usize; 4],
    count: usize,
}

/// A row that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Reading that the row contains.
    pub reading: Reading,
    /// True if the file gives the row's time in seconds, although the header says ms.
    pub in_seconds: bool,
}

impl Columns {
    /// Reads the header.
    ///
    /// # Errors
    /// Description of the text found instead.
    pub fn of_header(line: &str, dialect: &'static Dialect) -> Result<Self, String> {
        let names: Vec<&str> = fields(line.trim_start_matches('\u{feff}')).collect();
        let place = |needed: &&str| names.iter().position(|name| name == needed);
        let needed = dialect.needed();
        let missing: Vec<&str> = needed
            .into_iter()
            .filter(|needed| place(needed).is_none())
            .collect();
        match needed.each_ref().map(place) {
            [Some(time), Some(cpus), Some(capacity), Some(usage)] => Ok(Self {
                dialect,
                places: [time, cpus, capacity, usage],
                count: names.len(),
            }),
            _ if missing.len() == needed.len() => Err(format!("{:?} is no header", cut(line))),
            _ => Err(format!("there is no column {}", missing.join(", "))),
        }
    }

    /// Reads a row.
    ///
    /// # Errors
    /// Description of the fault.
    pub fn row(&self, line: &str) -> Result<Row, String> {
        let texts: Vec<&str> = fields(line).collect();
        if texts.len() != self.count {
            return Err(format!("{} columns instead of {}", texts.len(), self.count));
        }
        let [time, cpus, capacity, usage] = self
            .places
            .map(|place| texts.get(place).copied().unwrap_or_default());
        let number = |name: &str, text: &str| {
            let number = (self.dialect.number_of)(text);
            let number = number.filter(|n| n.is_finite() && *n >= 0.0);
            number.ok_or_else(|| format!("{name} is {:?}", cut(text)))
        };
        let not = |why: &str| format!("{} is {}{why}", self.dialect.time, cut(time));
        let read = (self.dialect.time_of)(time);
        let read = read.ok_or_else(|| format!("{} is {:?}", self.dialect.time, cut(time)))?;
        if !(TIMES_MS.start as f64..TIMES_MS.end as f64).contains(&read.ms) {
            return Err(not(", which is no time from 2000 to 2100"));
        }
        let cpus = number(CPUS, cpus)?;
        let capacity_bytes = bytes(number(CAPACITY, capacity)?);
        let used_bytes = bytes(number(USAGE, usage)?);
        for (name, text, bytes) in [
            (CAPACITY, capacity, capacity_bytes),
            (USAGE, usage, used_bytes),
        ] {
            if bytes > MEMORY_BYTES {
                return Err(format!(
                    "{name} is {}, more than any machine has",
                    cut(text)
                ));
            }
        }
        let reading = Reading {
            time_ms: read.ms as i64, // whole and within the bounds above
            physical_bytes: capacity_bytes,
            available_bytes: capacity_bytes - used_bytes,
            cpus_count: cpus.round().min(1e6) as i64,
            booted_ms: 0,
        };
        Ok(Row {
            reading,
            in_seconds: read.in_seconds,
        })
    }
}

/// Fields of a line. No field contains a separator: quotes can simply be removed.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(';').map(|field| field.trim().trim_matches('"'))
}

/// Converts KiB to whole bytes. The traces' values are means over an interval, with fractions of a KiB.
fn bytes(kib: f64) -> i64 {
    (kib * kib_to_bytes(1) as f64).round() as i64
}

/// Importer of a folder with one file per machine.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    source: Source<'static>,
    dialect: &'static Dialect,
    files: HashMap<String, PathBuf>,
}

impl Archive {
    pub(super) fn new(folder: &Path, source: Source<'static>, dialect: &'static Dialect) -> Self {
        Self {
            folder: folder.to_owned(),
            source,
            dialect,
            files: HashMap::new(),
        }
    }
}

impl Importer for Archive {
    fn source(&self) -> Source<'_> {
        self.source
    }

    fn origin(&self) -> String {
        self.folder.display().to_string()
    }

    fn machines(&mut self) -> Result<MachineList, ImportError> {
        let (files, skipped_entries) = of_folder(&self.folder)?;
        for file in &files {
            header(&file.path, self.dialect)?;
        }
        let machines = files.iter().map(|file| file.machine.clone()).collect();
        let places = files
            .into_iter()
            .map(|MachineFile { machine, path }| (machine, path));
        self.files = places.collect();
        Ok(MachineList {
            machines,
            skipped_entries,
            unusable_parts: Vec::new(),
        })
    }

    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError> {
        let Some(path) = self.files.get(machine) else {
            return Ok(());
        };
        let Some((columns, mut lines)) = header(path, self.dialect)? else {
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
                    readings.repairs.times_in_seconds_count += u64::from(row.in_seconds);
                    readings.push(row.reading, &[]);
                }
                Err(why) => readings.unreadable(format_args!("line {number}"), why),
            }
        }
        Ok(())
    }
}

/// Column positions of a machine's file, and the lines after its header; `None` for an empty file.
fn header(
    path: &Path,
    dialect: &'static Dialect,
) -> Result<Option<(Columns, Lines<std::fs::File>)>, ImportError> {
    let mut lines = Lines::open(path).map_err(ImportError::io("open", path))?;
    let first = lines.next().map_err(ImportError::io("read", path))?;
    let columns = match first {
        None => return Ok(None),
        Some((_, Line::Text(line))) => Columns::of_header(line, dialect),
        Some((_, Line::Unreadable(why))) => Err(format!("the line is {why}")),
    };
    let columns = columns.map_err(|found| ImportError::Header {
        path: path.to_owned(),
        found,
        expected: dialect.needed().join(", "),
    })?;
    Ok(Some((columns, lines)))
}
