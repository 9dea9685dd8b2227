//! Reads the rows of a file, and converts them by the mapping.

use super::fields::Fields;
use super::figure::decimal;
use super::keys::Column;
use super::mapping::{FactSource, Mapping, fact};
use crate::import::files::{Line, Lines, cut};
use crate::import::{Facts, ImportError, Reading};
use std::fs::File;
use std::path::Path;

/// A row of a file, converted by the mapping.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) reading: Reading,
    /// Values of the other columns, in the mapping's order.
    pub(super) values: Box<[Option<f64>]>,
    pub(super) facts: Facts,
}

/// Reader of a file's rows.
pub(super) struct Rows<'m> {
    mapping: &'m Mapping,
    lines: Lines<File>,
    fields: Fields,
    /// Column names of the header; empty without a header.
    header: Vec<String>,
}

/// Result of reading a line.
pub(super) struct LineResult {
    pub(super) line: u64,
    /// Name of the machine; `None` if the file's name is the machine's name.
    pub(super) machine: Option<Result<String, String>>,
    pub(super) row: Result<Row, String>,
}

impl<'m> Rows<'m> {
    /// Opens a file, and finds the mapped columns.
    ///
    /// # Errors
    /// [`ImportError::Line`] if a column is missing.
    pub(super) fn open(mapping: &'m Mapping, path: &Path) -> Result<Self, ImportError> {
        let lines = Lines::open(path).map_err(ImportError::io("open", path))?;
        let mut rows = Self {
            mapping,
            lines,
            fields: Fields::separated_by(mapping.separator),
            header: Vec::new(),
        };
        if mapping.has_header {
            rows.read_header(path)?;
        }
        Ok(rows)
    }

    fn read_header(&mut self, path: &Path) -> Result<(), ImportError> {
        let refused = |found: String| ImportError::Line {
            path: path.to_owned(),
            line: 1,
            found,
            advice: format!("see the mapping in {}", self.mapping.path.display()),
        };
        let first = self.lines.next().map_err(ImportError::io("read", path))?;
        let line = match first {
            None => return Ok(()), // without a header there are no rows
            Some((_, Line::Text(line))) => line.trim_start_matches('\u{feff}'),
            Some((_, Line::Unreadable(why))) => return Err(refused(format!("the line is {why}"))),
        };
        self.header = self
            .fields
            .of(line)
            .into_iter()
            .map(str::to_owned)
            .collect();
        for column in self.mapping.columns() {
            let found = match place(column, &self.header) {
                Some(at) if at < self.header.len() => continue,
                _ => format!("there is no {column} in {:?}", cut(line)),
            };
            return Err(refused(found));
        }
        Ok(())
    }

    /// Reads the next row.
    pub(super) fn next(&mut self) -> std::io::Result<Option<LineResult>> {
        loop {
            let Some((line, text)) = self.lines.next()? else {
                return Ok(None);
            };
            let text = match text {
                Line::Text(text) if text.trim().is_empty() => continue,
                Line::Text(text) if line == 1 => text.trim_start_matches('\u{feff}'),
                Line::Text(text) => text,
                Line::Unreadable(why) => {
                    return Ok(Some(LineResult {
                        line,
                        machine: self.mapping.machine.as_ref().map(|_| Err(why.to_owned())),
                        row: Err(why.to_owned()),
                    }));
                }
            };
            let given = Texts {
                header: &self.header,
                texts: self.fields.of(text),
            };
            let machine = self.mapping.machine.as_ref();
            return Ok(Some(LineResult {
                line,
                machine: machine.map(|column| given.machine(column)),
                row: given.row(self.mapping),
            }));
        }
    }
}

/// The fields of a row.
struct Texts<'r> {
    header: &'r [String],
    texts: Vec<&'r str>,
}

/// Index of a column in the file.
fn place(column: &Column, header: &[String]) -> Option<usize> {
    match column {
        Column::Name(name) => header.iter().position(|n| n == name),
        Column::Number(number) => number.checked_sub(1),
    }
}

impl Texts<'_> {
    fn text(&self, column: &Column) -> Result<&str, String> {
        let text = place(column, self.header).and_then(|at| self.texts.get(at));
        let missing = || format!("{} columns, and no {column}", self.texts.len());
        text.copied().ok_or_else(missing)
    }

    fn machine(&self, column: &Column) -> Result<String, String> {
        const NAME_BYTES: usize = 256;
        let text = self.text(column)?;
        if text.is_empty() || text.len() > NAME_BYTES || text.contains(char::is_control) {
            return Err(format!(
                "{column} is {:?}, which names no machine",
                cut(text)
            ));
        }
        Ok(text.to_owned())
    }

    fn row(&self, mapping: &Mapping) -> Result<Row, String> {
        if mapping.has_header && self.texts.len() != self.header.len() {
            return Err(format!(
                "{} columns instead of {}",
                self.texts.len(),
                self.header.len()
            ));
        }
        let (column, format) = &mapping.time;
        let time_ms = format
            .time_ms(self.text(column)?)
            .map_err(|why| format!("{column}: {why}"))?;
        let comma = mapping.has_decimal_comma;
        let field = |column: &Column| self.text(column);
        // A percentage may refer only to a figure that is not a percentage itself, so that at most one more
        // figure must be read.
        let whole = |name: &str| {
            let none = |_: &str| Ok(None);
            let figure = match name {
                "physical_bytes" => Some(&mapping.physical),
                "available_bytes" => Some(&mapping.available),
                _ => mapping
                    .further
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, f)| f),
            };
            figure.map_or(Ok(None), |figure| {
                figure.value(field, none, f64::NAN, comma)
            })
        };
        let physical = mapping.physical.value(field, whole, f64::NAN, comma)?;
        let physical = physical.ok_or_else(|| format!("no {}", mapping.physical.told()))?;
        let available = mapping.available.value(field, whole, physical, comma)?;
        let available = available.ok_or_else(|| format!("no {}", mapping.available.told()))?;
        if available > physical {
            return Err(format!(
                "{} is more than there is",
                mapping.available.told()
            ));
        }
        let further = mapping.further.iter();
        let values = further.map(|(_, figure)| figure.value(field, whole, physical, comma));
        let cpus_count = match &mapping.cpus {
            None => 0,
            Some(given) => {
                // A constant comes from the mapping, where numbers are written as in TOML: with a decimal point.
                let comma = comma && matches!(given, FactSource::Column(_));
                cpus(self.given(given)?, comma)?
            }
        };
        let mut facts = Facts::new();
        for (name, given) in &mapping.facts {
            facts.extend(fact(name, self.given(given)?));
        }
        Ok(Row {
            reading: Reading {
                time_ms,
                physical_bytes: physical.round() as i64, // both within MEMORY_BYTES
                available_bytes: available.round() as i64,
                cpus_count,
                booted_ms: 0,
            },
            values: values.collect::<Result<_, _>>()?,
            facts,
        })
    }

    fn given<'t>(&'t self, given: &'t FactSource) -> Result<&'t str, String> {
        match given {
            FactSource::Constant(value) => Ok(value),
            FactSource::Column(column) => self.text(column),
        }
    }
}

/// Number of CPUs; 0 if the text is empty.
fn cpus(text: &str, has_decimal_comma: bool) -> Result<i64, String> {
    if fact("", text).is_none() {
        return Ok(0);
    }
    let count = decimal(text, has_decimal_comma).filter(|n| (0.0..1e6).contains(n));
    let count = count.ok_or_else(|| format!("{:?} is no number of CPUs", cut(text)))?;
    Ok(count.round() as i64)
}
