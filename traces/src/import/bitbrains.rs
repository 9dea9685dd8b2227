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
use super::write::Importing;
use super::{
    Filled, ImportError, Imported, Machine, Mended, Outcome, Progress, Reading, Source, mend,
};
use gleaner_schemas::units::kib_to_bytes;
use std::path::Path;

/// The columns of either trace.
const FILLS: &[Filled] = &[
    filled(
        "samples",
        "interval_ms",
        "time since the sample before, where that is not more than two of the machine's median steps",
    ),
    filled("samples", "files_whole", "false: of files nothing is known"),
    filled(
        "samples",
        "physical_bytes",
        "Memory capacity provisioned [KB], of 1024 bytes",
    ),
    filled(
        "samples",
        "available_bytes",
        "Memory capacity provisioned less Memory usage [KB]; an upper bound",
    ),
    filled("hosts", "host_name", "the file's name"),
    filled("hosts", "cpus_count", "CPU cores"),
    filled(
        "hosts",
        "physical_bytes",
        "Memory capacity provisioned [KB], of 1024 bytes",
    ),
    filled("hosts", "source", "the trace's name"),
];

/// 500 machines of a mixed kind, on slower storage.
pub const RND: Source = Source {
    name: "GWA-T-12 Bitbrains rnd",
    host_prefix: "bitbrains-rnd",
    fills: FILLS,
};

/// 1,250 machines on fast storage.
pub const FAST_STORAGE: Source = Source {
    name: "GWA-T-12 Bitbrains fastStorage",
    host_prefix: "bitbrains-fast",
    fills: FILLS,
};

const fn filled(table: &'static str, column: &'static str, from: &'static str) -> Filled {
    Filled {
        table,
        column,
        from,
    }
}

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
            capacity_bytes: bytes(capacity),
            used_bytes: bytes(usage),
            cpus_count: cpus.round().min(1e6) as i64,
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

/// Imports every machine in `folder` into the dataset in `dataset`, which is made where there is none. In memory is
/// one machine's trace, and what waits to be sealed. `progress` is called after each machine.
///
/// # Errors
/// [`ImportError`]. Headers are looked at before anything is written; of what fails later, the machines sealed
/// before stay, and importing again goes on.
pub fn import(
    folder: &Path,
    dataset: &Path,
    source: Source,
    mut progress: impl FnMut(&Progress<'_>),
) -> Result<Imported, ImportError> {
    let (files, passed_over) = of_folder(folder)?;
    for file in &files {
        header(file)?;
    }
    let mut done = Imported {
        source: source.name,
        machines: Vec::with_capacity(files.len()),
        total: Mended::default(),
        passed_over,
        new_rows_count: 0,
        known_rows_count: 0,
        files_count: 0,
        files_bytes: 0,
    };
    let mut importing = Importing::into(dataset, source);
    for (at, file) in files.iter().enumerate() {
        let mut mended = Mended::default();
        let readings = read(file, &mut mended)?;
        let samples = mend(readings, &mut mended);
        importing.add(&file.machine, &samples, &mut done)?;
        done.total.add(&mended);
        done.machines.push(Machine {
            machine: file.machine.clone(),
            host_name: source.host_name(&file.machine),
            host_id: source.host_id(&file.machine),
            outcome: Outcome::of(&mended),
            mended,
        });
        progress(&Progress {
            machines: at + 1,
            machines_in_all: files.len(),
            machine: &file.machine,
        });
    }
    importing.seal(&mut done)?;
    match done.machines.first() {
        Some(first) if done.total.samples_count == 0 => Err(ImportError::NoSamples {
            folder: folder.to_owned(),
            machines: done.machines.len(),
            first: first.machine.clone(),
            reason: first.reason(),
        }),
        _ => Ok(done),
    }
}

/// The columns of a machine's file, and its lines after the header; `None` where the file is empty.
fn header(file: &MachineFile) -> Result<Option<(Columns, Lines<std::fs::File>)>, ImportError> {
    let mut lines = Lines::open(&file.path).map_err(ImportError::io("open", &file.path))?;
    let first = lines.next().map_err(ImportError::io("read", &file.path))?;
    let columns = match first {
        None => return Ok(None),
        Some((_, Line::Text(line))) => Columns::of_header(line),
        Some((_, Line::Unreadable(why))) => Err(format!("the line is {why}")),
    };
    let columns = columns.map_err(|found| ImportError::Header {
        path: file.path.clone(),
        found,
        expected: NEEDED.join(", "),
    })?;
    Ok(Some((columns, lines)))
}

/// The rows of a machine's file.
fn read(file: &MachineFile, mended: &mut Mended) -> Result<Vec<Reading>, ImportError> {
    let Some((columns, mut lines)) = header(file)? else {
        return Ok(Vec::new());
    };
    let mut readings = Vec::new();
    let failed = || ImportError::io("read", &file.path);
    while let Some((number, line)) = lines.next().map_err(failed())? {
        let row = match line {
            Line::Text(text) if text.trim().is_empty() => continue,
            Line::Text(text) => columns.row(text),
            Line::Unreadable(why) => Err(why.to_owned()),
        };
        mended.rows_count += 1;
        match row {
            Ok(row) => {
                mended.in_seconds_count += u64::from(row.in_seconds);
                readings.push(row.reading);
            }
            Err(why) => {
                mended.unreadable_count += 1;
                let first = || format!("line {number}: {why}");
                mended.first_unreadable.get_or_insert_with(first);
            }
        }
    }
    Ok(readings)
}
