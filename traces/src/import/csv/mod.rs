//! Plain CSV, with a mapping file that describes the columns ([`Mapping`]).
//!
//! ```text
//! MAP.toml ──► keys ──► mapping ──► rows ──► Readings     figure: units; time: formats and zones; fields: quotes
//! ```

mod fields;
mod figure;
mod keys;
mod mapping;
mod rows;
mod time;

pub use mapping::Mapping;

use super::machine_table::{self, MachineTable};
use super::readings;
use super::{
    ColumnOrigin, Facts, ImportError, Importer, MachineList, Reading, Readings, Repairs, Source,
};
use rows::{Row, Rows};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Memory limit for the rows held while files with many machines are read.
const HELD_BYTES: usize = 512 << 20;

/// Importer of CSV files with their mapping.
pub struct Csv<'m> {
    table: Files<'m>,
    fills: Vec<ColumnOrigin<'m>>,
    columns: Vec<&'static str>,
    machines: Machines,
}

/// Places where the machines' rows are.
enum Machines {
    /// The files have not been examined yet.
    Unknown,
    /// Each machine has its own files, by name.
    OfFiles(BTreeMap<String, Vec<PathBuf>>),
    /// Machines share files; the rows are grouped by machine.
    Among(Box<MachineTable<Row>>),
}

struct Files<'m> {
    mapping: &'m Mapping,
    paths: Vec<PathBuf>,
}

/// Result of applying the mapping to one line.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Number of the line, from 1.
    pub line: u64,
    /// Machine of the line, or the reason why it is unknown.
    pub machine: Result<String, String>,
    /// Values of the line, or a description of its fault.
    pub row: Result<PreviewRow, String>,
}

/// Result of applying the mapping to one row.
#[derive(Clone, Debug, PartialEq)]
pub struct PreviewRow {
    /// Time, memory, CPUs.
    pub reading: Reading,
    /// Other columns of `samples` that are present, by name.
    pub further: Facts,
    /// Other columns of `hosts` that are present.
    pub facts: Facts,
}

impl<'m> Csv<'m> {
    /// Importer of the files at `paths`; `mapping` describes their columns.
    #[must_use]
    pub fn new(mapping: &'m Mapping, paths: &[PathBuf]) -> Self {
        Self {
            table: Files {
                mapping,
                paths: paths.to_vec(),
            },
            fills: mapping.fills(),
            columns: mapping.further.iter().map(|(name, _)| *name).collect(),
            machines: Machines::Unknown,
        }
    }

    /// Applies the mapping to the first `count` rows of the first file, and returns the results.
    ///
    /// # Errors
    /// [`ImportError`]: there is no such file, or its header lacks a column.
    pub fn preview(&self, count: usize) -> Result<Vec<Preview>, ImportError> {
        let Some(path) = self.table.paths.first() else {
            return Ok(Vec::new());
        };
        let mut rows = Rows::open(self.table.mapping, path)?;
        let mut found = Vec::new();
        while found.len() < count {
            let Some(row) = rows.next().map_err(ImportError::io("read", path))? else {
                break;
            };
            let further = |row: Row| {
                let known = self.columns.iter().zip(row.values);
                let known = known.filter_map(|(name, value)| {
                    let value = readings::stored(readings::kind(name), value?);
                    Some((*name, value))
                });
                PreviewRow {
                    reading: row.reading,
                    further: known.collect(),
                    facts: row.facts,
                }
            };
            found.push(Preview {
                line: row.line,
                machine: row.machine.unwrap_or_else(|| Ok(stem(path))),
                row: row.row.map(further),
            });
        }
        Ok(found)
    }
}

impl Importer for Csv<'_> {
    fn source(&self) -> Source<'_> {
        let mapping = self.table.mapping;
        Source {
            name: &mapping.name,
            host_prefix: &mapping.host_prefix,
            available_meaning: &mapping.available_meaning,
            has_invented_sizes: false,
            fills: &self.fills,
            columns: &self.columns,
        }
    }

    fn origin(&self) -> String {
        machine_table::Table::origin(&self.table)
    }

    fn machines(&mut self) -> Result<MachineList, ImportError> {
        for path in &self.table.paths {
            Rows::open(self.table.mapping, path)?;
        }
        if self.table.mapping.machine.is_some() {
            let row_bytes = size_of::<Row>() + self.columns.len() * size_of::<Option<f64>>() + 256;
            let grouped = MachineTable::list(&mut self.table, HELD_BYTES / row_bytes)?;
            let machines = grouped.names();
            self.machines = Machines::Among(Box::new(grouped));
            return Ok(MachineList {
                machines,
                ..MachineList::default()
            });
        }
        let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for path in &self.table.paths {
            if path.file_stem().and_then(|name| name.to_str()).is_none() {
                return Err(ImportError::Name { path: path.clone() });
            }
            files.entry(stem(path)).or_default().push(path.clone());
        }
        let machines = files.keys().cloned().collect();
        self.machines = Machines::OfFiles(files);
        Ok(MachineList {
            machines,
            ..MachineList::default()
        })
    }

    fn without_machine(&mut self) -> Repairs {
        match &mut self.machines {
            Machines::Among(grouped) => grouped.without_machine(),
            Machines::Unknown | Machines::OfFiles(_) => Repairs::default(),
        }
    }

    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError> {
        match &mut self.machines {
            Machines::Unknown => {}
            Machines::Among(grouped) => {
                let Some(mut held) = grouped.take(&mut self.table, machine)? else {
                    return Ok(());
                };
                readings.repairs = held.repairs();
                for row in held.rows {
                    push(row, readings);
                }
            }
            Machines::OfFiles(files) => {
                for path in files.get(machine).into_iter().flatten() {
                    let mut rows = Rows::open(self.table.mapping, path)?;
                    while let Some(found) = rows.next().map_err(ImportError::io("read", path))? {
                        match found.row {
                            Ok(row) => push(row, readings),
                            Err(why) => {
                                readings.unreadable(self.table.place(path, found.line), why)
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn push(row: Row, readings: &mut Readings<'_>) {
    readings.host_is(row.facts);
    readings.push(row.reading, &row.values);
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

impl Files<'_> {
    /// Description of a line's place, for messages.
    fn place(&self, path: &Path, line: u64) -> String {
        match self.paths.len() {
            1 => format!("line {line}"),
            _ => format!("{} line {line}", path.display()),
        }
    }
}

impl machine_table::Table for Files<'_> {
    type Row = Row;

    fn scan(
        &mut self,
        each: &mut dyn FnMut(machine_table::GroupedRow<'_, Row>),
    ) -> Result<(), ImportError> {
        for path in &self.paths {
            let mut rows = Rows::open(self.mapping, path)?;
            while let Some(found) = rows.next().map_err(ImportError::io("read", path))? {
                let machine = found.machine.unwrap_or_else(|| Ok(stem(path)));
                let (name, why) = match machine {
                    Ok(name) => (name, None),
                    Err(why) => (String::new(), Some(why)),
                };
                each(machine_table::GroupedRow {
                    place: &format_args!("{} line {}", path.display(), found.line),
                    machine: why.map_or(Ok(name.as_str()), Err),
                    row: found.row,
                });
            }
        }
        Ok(())
    }

    fn origin(&self) -> String {
        match self.paths.as_slice() {
            [] => "no file".to_owned(),
            [one] => one.display().to_string(),
            [first, rest @ ..] => format!("{} and {} more", first.display(), rest.len()),
        }
    }
}
