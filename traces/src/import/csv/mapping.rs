//! The mapping file: assigns the columns and units of a CSV file to the dataset's. The mapping is read from
//! TOML, and checked completely before any row is read.

use super::figure::Figure;
use super::keys::{ABSENT, Column, FactKeys, FigureKeys, File, TimeKeys};
use super::time::TimeFormat;
use crate::import::{ColumnOrigin, ImportError};
use gleaner_schemas::column::{Column as Stored, Kind, Row as _, Value};
use gleaner_schemas::rows::{HostRow, SampleRow};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Columns of `samples` that are computed and cannot be mapped.
const DERIVED: [&str; 2] = ["interval_ms", "boottime_ms"];
/// Text columns of `hosts` that a file may fill.
const FACTS: [&str; 5] = [
    "kernel_release",
    "architecture",
    "os_name",
    "cpu_model",
    "machine_model",
];

/// Content of a mapping file: rules for reading CSV files.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) host_prefix: String,
    pub(super) available_meaning: String,
    pub(super) separator: u8,
    pub(super) has_header: bool,
    pub(super) has_decimal_comma: bool,
    pub(super) time: (Column, TimeFormat),
    /// Column with the machine's name; `None` if the file's name is the machine's name.
    pub(super) machine: Option<Column>,
    pub(super) physical: Figure,
    pub(super) available: Figure,
    pub(super) cpus: Option<FactSource>,
    /// Other columns of `samples` that the mapping fills, in its order.
    pub(super) further: Vec<(&'static str, Figure)>,
    /// Other columns of `hosts` that the mapping fills.
    pub(super) facts: Vec<(&'static str, FactSource)>,
    /// Filled columns: table, column, and description of the origin.
    fills: Vec<(&'static str, &'static str, String)>,
}

/// Source of a fact, which has no unit: a column or a constant.
#[derive(Clone, Debug)]
pub(super) enum FactSource {
    Column(Column),
    Constant(String),
}

/// A fault: its position in the mapping's text, and its description.
type MappingFault = (Range<usize>, String);

impl Mapping {
    /// Reads the mapping file at `path`.
    ///
    /// # Errors
    /// [`ImportError`], with the line of the fault.
    pub fn read(path: &Path) -> Result<Self, ImportError> {
        let text = std::fs::read_to_string(path).map_err(ImportError::io("read", path))?;
        Self::parse(path, &text)
    }

    /// Parses `text`, the content of `path`.
    ///
    /// # Errors
    /// [`ImportError::Line`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, ImportError> {
        let file: Result<File, MappingFault> = toml::from_str(text)
            .map_err(|e| (e.span().unwrap_or_default(), e.message().to_owned()));
        file.and_then(|file| Self::of(path, file))
            .map_err(|(span, found)| {
                let before = text.get(..span.start).unwrap_or(text);
                ImportError::Line {
                    path: path.to_owned(),
                    line: 1 + before.matches('\n').count() as u64,
                    found: found.replace('\n', " "),
                    advice: "docs/import.md has the keys of a mapping, and an example".to_owned(),
                }
            })
    }

    fn of(path: &Path, file: File) -> Result<Self, MappingFault> {
        if file.name.get_ref().trim().is_empty() || file.name.get_ref().contains('\0') {
            let found = "name is empty: host ids are made from it".to_owned();
            return Err((file.name.span(), found));
        }
        let mut figures = figures(&file.samples, file.page_size_bytes)?;
        let mut needed = |name: &'static str| {
            let missing = || (0..0, format!("[samples.{name}] is missing"));
            figures.remove(name).ok_or_else(missing)
        };
        let (physical, available) = (needed("physical_bytes")?, needed("available_bytes")?);
        let (cpus, facts) = facts(file.hosts)?;
        let mut mapping = Self {
            path: path.to_owned(),
            separator: separator(file.separator)?,
            has_header: file.header,
            has_decimal_comma: is_comma(&file.decimal)?,
            time: time(file.time)?,
            name: file.name.into_inner(),
            host_prefix: file.host_prefix,
            available_meaning: file.available_meaning.unwrap_or_else(|| {
                "Available memory is what the mapping makes of it; what that means, the file's maker knows.".to_owned()
            }),
            machine: file.machine.map(|machine| machine.column),
            physical,
            available,
            cpus,
            further: figures.into_iter().collect(),
            facts,
            fills: Vec::new(),
        };
        for column in mapping.columns() {
            let found = match column {
                Column::Name(name) if !mapping.has_header => {
                    format!("there is no header, and so no column {name:?}: columns are numbers")
                }
                Column::Number(0) => "there is no column 0: the first is 1".to_owned(),
                _ => continue,
            };
            return Err((0..0, found));
        }
        mapping.fills = mapping.mapped_columns();
        Ok(mapping)
    }

    /// All columns of the file that the mapping uses.
    pub(super) fn columns(&self) -> Vec<&Column> {
        let figures = [&self.physical, &self.available].into_iter();
        let figures = figures.chain(self.further.iter().map(|(_, figure)| figure));
        let given = self
            .cpus
            .iter()
            .chain(self.facts.iter().map(|(_, given)| given));
        let given = given.filter_map(|given| match given {
            FactSource::Column(column) => Some(column),
            FactSource::Constant(_) => None,
        });
        std::iter::once(&self.time.0)
            .chain(&self.machine)
            .chain(figures.filter_map(Figure::column))
            .chain(given)
            .collect()
    }

    /// The columns of the dataset that the mapping fills.
    pub(super) fn fills(&self) -> Vec<ColumnOrigin<'_>> {
        let own = self.fills.iter();
        let own = own.map(|(table, column, origin)| ColumnOrigin::new(table, column, origin));
        let all = [
            ColumnOrigin::INTERVAL_MS,
            ColumnOrigin::FILES_WHOLE,
            ColumnOrigin::SOURCE,
        ];
        all.into_iter().chain(own).collect()
    }

    fn mapped_columns(&self) -> Vec<(&'static str, &'static str, String)> {
        let (samples, hosts) = (SampleRow::TABLE.name, HostRow::TABLE.name);
        let machine = match &self.machine {
            Some(column) => column.to_string(),
            None => "the file's name".to_owned(),
        };
        let mut fills = vec![
            (samples, "physical_bytes", self.physical.told()),
            (samples, "available_bytes", self.available.told()),
            (hosts, "host_name", machine),
            (hosts, "physical_bytes", self.physical.told()),
        ];
        let further = self
            .further
            .iter()
            .map(|(name, figure)| (samples, *name, figure.told()));
        fills.extend(further);
        let cpus = self.cpus.iter().map(|given| ("cpus_count", given));
        let facts = self.facts.iter().map(|(name, given)| (*name, given));
        fills.extend(
            cpus.chain(facts)
                .map(|(name, given)| (hosts, name, given.told())),
        );
        fills
    }
}

fn separator(key: Option<Spanned<char>>) -> Result<u8, MappingFault> {
    match key {
        None => Ok(b','),
        Some(s) if s.get_ref().is_ascii() && !"\"\r\n".contains(*s.get_ref()) => {
            Ok(*s.get_ref() as u8) // one byte: it is ASCII
        }
        Some(s) => {
            let found = format!("{:?} cannot separate columns", s.get_ref());
            Err((s.span(), found))
        }
    }
}

fn is_comma(key: &Spanned<char>) -> Result<bool, MappingFault> {
    match key.get_ref() {
        '.' => Ok(false),
        ',' => Ok(true),
        other => Err((key.span(), format!("decimal is {other:?}, not '.' or ','"))),
    }
}

fn time(keys: TimeKeys) -> Result<(Column, TimeFormat), MappingFault> {
    let (format, zone) = (keys.format, keys.zone);
    let named = zone.as_ref().map(|zone| zone.get_ref().as_str());
    let read = TimeFormat::of(format.get_ref(), named);
    let span = zone.as_ref().map_or(format.span(), Spanned::span);
    Ok((keys.column, read.map_err(|found| (span, found))?))
}

/// Figures of the mapping, by the column of `samples` that they fill.
fn figures(
    samples: &BTreeMap<Spanned<String>, FigureKeys>,
    page_size_bytes: u32,
) -> Result<BTreeMap<&'static str, Figure>, MappingFault> {
    let is_figure =
        |c: &&Stored| matches!(c.kind, Kind::Integer | Kind::Real) && !DERIVED.contains(&c.name);
    let mut figures: BTreeMap<&'static str, Figure> = BTreeMap::new();
    for (key, keys) in samples {
        let mut stored = SampleRow::TABLE.columns.iter().filter(is_figure);
        let Some(stored) = stored.find(|c| c.name == key.get_ref()) else {
            let found = format!(
                "there is no column {} of samples to be filled",
                key.get_ref()
            );
            return Err((key.span(), found));
        };
        let figure = Figure::of(stored, keys.clone(), page_size_bytes);
        let named = |found| (key.span(), format!("samples.{}: {found}", stored.name));
        figures.insert(stored.name, figure.map_err(named)?);
    }
    for key in samples.keys() {
        let name = key.get_ref().as_str();
        let of = figures.get(name).and_then(Figure::share_of);
        if of.is_some_and(|of| figures.get(of).is_none_or(|f| f.share_of().is_some())) {
            let found = format!(
                "samples.{name}: it is a share of what is not mapped, or is a share itself"
            );
            return Err((key.span(), found));
        }
    }
    Ok(figures)
}

/// Source of the number of CPUs, if any, and sources of other facts of a host.
type Facts = (Option<FactSource>, Vec<(&'static str, FactSource)>);

fn facts(hosts: BTreeMap<Spanned<String>, FactKeys>) -> Result<Facts, MappingFault> {
    let (mut cpus, mut facts) = (None, Vec::new());
    for (key, keys) in hosts {
        let name = key.get_ref().as_str();
        let given = match (keys.column, keys.value) {
            (Some(column), None) => FactSource::Column(column),
            (None, Some(value)) => FactSource::Constant(value),
            _ => {
                let found = format!("hosts.{name}: either a column or a value, in quotes");
                return Err((key.span(), found));
            }
        };
        match FACTS.iter().find(|fact| **fact == name) {
            _ if name == "cpus_count" => cpus = Some(given),
            Some(fact) => facts.push((*fact, given)),
            None => {
                let found = format!("there is no column {name} of hosts to be filled");
                return Err((key.span(), found));
            }
        }
    }
    Ok((cpus, facts))
}

impl FactSource {
    fn told(&self) -> String {
        match self {
            Self::Column(column) => column.to_string(),
            Self::Constant(value) => format!("{value:?}, by the mapping"),
        }
    }
}

/// Value of a fact, with its column `name`; `None` if the text means a missing value.
pub(super) fn fact(name: &'static str, text: &str) -> Option<(&'static str, Value)> {
    let is_absent = text.is_empty() || ABSENT.contains(&text);
    (!is_absent).then(|| (name, Value::Text(text.to_owned())))
}
