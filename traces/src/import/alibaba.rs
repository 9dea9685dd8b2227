//! The machines of Alibaba's cluster-trace-v2018: one 9 GB file, `machine_usage.csv`, with a row per machine
//! about every ten seconds, in no reliable order.
//!
//! ```text
//! m_1932,386640,41,92,,,43.04,33.08,5
//! machine, seconds, CPU %, memory %, memory bandwidth, cache misses, network in and out, disk %
//! ```
//!
//! The machines' memory sizes are not published. The import takes 100 % as 100 GiB, so that 1 GiB is 1 %: the
//! shares are those of the trace, the sizes are invented. The date on which the trace starts is not published either.

use super::files::{Line, Lines, cut};
use super::machine_table::{GroupedRow, MachineTable, Table};
use super::{
    ColumnOrigin, ImportError, Importer, MachineList, Reading, Readings, Repairs, Source, TIMES_MS,
};
use jiff::Timestamp;
use std::path::{Path, PathBuf};

const FILLS: &[ColumnOrigin<'static>] = &[
    ColumnOrigin::INTERVAL_MS,
    ColumnOrigin::FILES_WHOLE,
    ColumnOrigin::new(
        "samples",
        "physical_bytes",
        "100 GiB, which stands for all memory of any machine",
    ),
    ColumnOrigin::new(
        "samples",
        "available_bytes",
        "100 less mem_util_percent, 1 GiB for 1 %; a lower bound where page cache counts as used",
    ),
    ColumnOrigin::new("hosts", "host_name", "machine_id"),
    ColumnOrigin::new(
        "hosts",
        "physical_bytes",
        "100 GiB, which stands for all memory of any machine",
    ),
    ColumnOrigin::SOURCE,
];

/// Memory assumed for 100 %.
const PHYSICAL_BYTES: i64 = 100 << 30;
/// Number of parts of a percent: shares are stored as whole numbers of such parts.
const PARTS: u32 = 1_000_000;
const COLUMNS: usize = 9;
/// Maximum length of a machine's name; rows with longer names are malformed.
const NAME_BYTES: usize = 128;
/// Default time of the trace's second 0: 2018-01-01 00:00 UTC, a Monday.
const START: Timestamp = Timestamp::constant(1_514_764_800, 0);
/// Number of rows that fit into 512 MiB.
const ROWS_AT_ONCE: usize = (512 << 20) / size_of::<Row>();

/// Importer of the trace's file.
pub struct Alibaba {
    usage: Usage,
    /// Name for `hosts.source`. It contains the start of the trace, because the times of records depend on it.
    name: String,
    rows_at_once: usize,
    grouped: Option<MachineTable<Row>>,
}

struct Usage {
    path: PathBuf,
    start_s: i64,
}

/// Content of a readable row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    /// Seconds since the trace's start.
    time_s: u32,
    /// Used memory, in parts of a percent ([`PARTS`]).
    used: u32,
}

impl Alibaba {
    /// Importer of the file at `path`. The trace began at `start`; `None` means Monday, 2018-01-01, 00:00 UTC.
    #[must_use]
    pub fn new(path: &Path, start: Option<Timestamp>) -> Self {
        let start = start.unwrap_or(START);
        Self {
            usage: Usage {
                path: path.to_owned(),
                start_s: start.as_second(),
            },
            name: format!("Alibaba cluster-trace-v2018, 100 GiB for 100 %, from {start}"),
            rows_at_once: ROWS_AT_ONCE,
            grouped: None,
        }
    }

    /// Sets the number of rows held in memory; by default as many as fit into 512 MiB. At least the rows of
    /// one machine are held.
    #[must_use]
    pub fn rows_at_once(self, rows_at_once: usize) -> Self {
        Self {
            rows_at_once,
            ..self
        }
    }
}

impl Importer for Alibaba {
    fn source(&self) -> Source<'_> {
        Source {
            name: &self.name,
            host_prefix: "alibaba",
            available_meaning: "Memory is normalised: 100 GiB stands for all memory of any machine, so sizes mean nothing. \
                Available memory is what is not in use; a lower bound if use includes page cache. The time of \
                day and the day of the week are right only if --start is.",
            has_invented_sizes: true,
            fills: FILLS,
            columns: &[],
        }
    }

    fn origin(&self) -> String {
        self.usage.origin()
    }

    fn machines(&mut self) -> Result<MachineList, ImportError> {
        self.usage.check()?;
        let grouped = MachineTable::list(&mut self.usage, self.rows_at_once)?;
        let machines = grouped.names();
        self.grouped = Some(grouped);
        Ok(MachineList {
            machines,
            ..MachineList::default()
        })
    }

    fn without_machine(&mut self) -> Repairs {
        self.grouped
            .as_mut()
            .map(MachineTable::without_machine)
            .unwrap_or_default()
    }

    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError> {
        let Some(grouped) = &mut self.grouped else {
            return Ok(());
        };
        let Some(mut held) = grouped.take(&mut self.usage, machine)? else {
            return Ok(());
        };
        readings.repairs = held.repairs();
        for row in held.rows {
            readings.push(row.reading(self.usage.start_s), &[]);
        }
        Ok(())
    }
}

impl Usage {
    /// Checks from the first row that the file is of this trace.
    fn check(&self) -> Result<(), ImportError> {
        let path = &self.path;
        let mut lines = Lines::open(path).map_err(ImportError::io("open", path))?;
        while let Some((number, line)) = lines.next().map_err(ImportError::io("read", path))? {
            let found = match line {
                Line::Text(text) if is_none(number, text) => continue,
                Line::Text(text) => match (machine(text), row(text, self.start_s)) {
                    (Err(why), _) => why,
                    (Ok(_), Err(RowFault::Columns(why))) => why,
                    (Ok(_), _) => return Ok(()),
                },
                Line::Unreadable(why) => format!("the line is {why}"),
            };
            return Err(ImportError::Line {
                path: path.clone(),
                line: number,
                found,
                advice: "expected machine_usage.csv of cluster-trace-v2018, unpacked: nine columns with ',' between, \
                    from machine_id to disk_io_percent"
                    .to_owned(),
            });
        }
        Ok(())
    }
}

impl Table for Usage {
    type Row = Row;

    fn scan(&mut self, each: &mut dyn FnMut(GroupedRow<'_, Row>)) -> Result<(), ImportError> {
        let path = &self.path;
        let mut lines = Lines::open(path).map_err(ImportError::io("open", path))?;
        while let Some((number, line)) = lines.next().map_err(ImportError::io("read", path))? {
            let place = &format_args!("line {number}");
            match line {
                Line::Text(text) if is_none(number, text) => {}
                Line::Text(text) => each(GroupedRow {
                    place,
                    machine: machine(text),
                    row: row(text, self.start_s).map_err(RowFault::told),
                }),
                Line::Unreadable(why) => each(GroupedRow {
                    place,
                    machine: Err(why.to_owned()),
                    row: Err(String::new()),
                }),
            }
        }
        Ok(())
    }

    fn origin(&self) -> String {
        self.path.display().to_string()
    }
}

/// Returns true for a line without a row: an empty line, or the header that some copies have.
fn is_none(number: u64, text: &str) -> bool {
    text.trim().is_empty()
        || (number == 1
            && text
                .trim_start_matches('\u{feff}')
                .starts_with("machine_id,"))
}

fn machine(line: &str) -> Result<&str, String> {
    let machine = line.split(',').next().unwrap_or_default().trim();
    if machine.is_empty() || machine.len() > NAME_BYTES || machine.contains(char::is_control) {
        return Err(format!("machine_id is {:?}", cut(machine)));
    }
    Ok(machine)
}

/// Fault of a row.
enum RowFault {
    /// The columns are not those of this trace; holds the line's text.
    Columns(String),
    /// A value is malformed; holds its description.
    Value(String),
}

impl RowFault {
    fn told(self) -> String {
        let (Self::Columns(told) | Self::Value(told)) = self;
        told
    }
}

fn row(line: &str, start_s: i64) -> Result<Row, RowFault> {
    let columns = 1 + line.bytes().filter(|b| *b == b',').count();
    if columns != COLUMNS {
        return Err(RowFault::Columns(format!(
            "{columns} columns instead of {COLUMNS}"
        )));
    }
    let mut fields = line.split(',').map(str::trim).skip(1);
    let (time, used) = (fields.next(), fields.nth(1));
    let number = |name: &str, text: Option<&str>| {
        let text = text.unwrap_or_default();
        let number: Option<f64> = text.parse().ok().filter(|n: &f64| n.is_finite());
        number.ok_or_else(|| RowFault::Value(format!("{name} is {:?}", cut(text))))
    };
    let (time, used) = (
        number("time_stamp", time)?,
        number("mem_util_percent", used)?,
    );
    // The trace writes second 0 for times before its start or after its end; such rows are rejected.
    let is_within = |s: f64| s > 0.0 && s < f64::from(u32::MAX);
    let is_recorded = |s: f64| TIMES_MS.contains(&((start_s + s as i64) * 1000));
    if !is_within(time) || !is_recorded(time) {
        return Err(RowFault::Value(format!(
            "time_stamp is {time}, outside of the trace, or of the years 2000 to 2100"
        )));
    }
    if !(0.0..=100.0).contains(&used) {
        return Err(RowFault::Value(format!(
            "mem_util_percent is {used}: -1 and 101 mark what is not valid"
        )));
    }
    Ok(Row {
        time_s: time.round() as u32, // both within bounds
        used: (used * f64::from(PARTS)).round() as u32,
    })
}

impl Row {
    fn reading(self, start_s: i64) -> Reading {
        let free = 100 * i64::from(PARTS) - i64::from(self.used);
        Reading {
            time_ms: (start_s + i64::from(self.time_s)) * 1000,
            physical_bytes: PHYSICAL_BYTES,
            available_bytes: (1 << 30) * free / i64::from(PARTS),
            ..Reading::default()
        }
    }
}
