//! Figures with a unit, and their conversion from a file's column to a column of the dataset.

use super::keys::{ABSENT, Column, FigureKeys};
use crate::import::MEMORY_BYTES;
use crate::import::files::cut;
use gleaner_schemas::column::Column as Stored;

/// Limit up to which `f64` represents every whole number exactly.
const EXACT: f64 = (1_u64 << 53) as f64;

/// Origin, unit and largest value of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    origin: Origin,
    unit: Unit,
    /// Unit as written in the mapping; empty without a unit.
    unit_name: String,
    /// Largest valid value.
    largest: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Origin {
    Column(Column),
    /// Column with used memory; the figure is physical memory less this column.
    Used(Column),
    Constant(f64),
}

#[derive(Clone, Debug, PartialEq)]
enum Unit {
    /// Factor from the file's unit to the dataset's.
    Factor(f64),
    /// The value is a percentage of the figure with this name.
    ShareOf(String),
}

/// Units of bytes, with their size in bytes.
const BYTES: [(&str, f64); 10] = [
    ("B", 1.0),
    ("KB", 1e3),
    ("KiB", 1024.0),
    ("MB", 1e6),
    ("MiB", 1_048_576.0),
    ("GB", 1e9),
    ("GiB", 1_073_741_824.0),
    ("TB", 1e12),
    ("TiB", 1_099_511_627_776.0),
    ("pages", 0.0), // size given by the mapping
];
/// Units of time, with their length in microseconds.
const TIMES: [(&str, f64); 3] = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];

impl Figure {
    /// Figure for the dataset's column `stored`. An error describes what is wrong with the mapping's keys.
    pub(super) fn of(stored: &Stored, keys: FigureKeys, page_bytes: u32) -> Result<Self, String> {
        let origin = match (keys.column, keys.used, keys.value) {
            (Some(column), None, None) => Origin::Column(column),
            (None, Some(column), None) if stored.name == "available_bytes" => Origin::Used(column),
            (None, Some(_), None) => {
                return Err("only available_bytes follows from what is used".to_owned());
            }
            (None, None, Some(value)) if value.is_finite() && value >= 0.0 => {
                Origin::Constant(value)
            }
            (None, None, Some(value)) => return Err(format!("value is {value}")),
            _ => return Err("one of column, used and value".to_owned()),
        };
        if let Some(of) = keys.of {
            return match keys.unit.as_deref() {
                Some("%") if stored.unit() == Some("bytes") => Ok(Self {
                    origin,
                    unit: Unit::ShareOf(of),
                    unit_name: "%".to_owned(),
                    largest: MEMORY_BYTES as f64,
                }),
                _ => Err("of goes with unit = \"%\", of figures in bytes".to_owned()),
            };
        }
        let (units, of_ours): (&[(&str, f64)], f64) = match stored.unit() {
            Some("bytes") => (&BYTES, 1.0),
            Some("ms") => (&TIMES, 1e3),
            Some("us") => (&TIMES, 1.0),
            _ if keys.unit.is_none() => {
                return Ok(Self {
                    origin,
                    unit: Unit::Factor(1.0),
                    unit_name: String::new(),
                    largest: EXACT,
                });
            }
            _ => return Err("it has no unit".to_owned()),
        };
        let names = || {
            units
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let unit_name = keys
            .unit
            .ok_or_else(|| format!("unit is missing: one of {}", names()))?;
        let unit = units.iter().find(|(name, _)| *name == unit_name);
        let factor = match unit {
            Some(("pages", _)) => f64::from(page_bytes),
            Some((_, factor)) => factor / of_ours,
            None if unit_name == "%" => {
                return Err("% of what? Name it: of = \"physical_bytes\"".to_owned());
            }
            None => return Err(format!("unit is {unit_name:?}, not one of {}", names())),
        };
        let is_memory = stored.unit() == Some("bytes");
        Ok(Self {
            origin,
            unit: Unit::Factor(factor),
            unit_name,
            largest: if is_memory {
                MEMORY_BYTES as f64
            } else {
                EXACT
            },
        })
    }

    /// The dataset's column of which this figure is a percentage, if any.
    pub(super) fn share_of(&self) -> Option<&str> {
        match &self.unit {
            Unit::ShareOf(of) => Some(of),
            Unit::Factor(_) => None,
        }
    }

    pub(super) fn column(&self) -> Option<&Column> {
        match &self.origin {
            Origin::Column(column) | Origin::Used(column) => Some(column),
            Origin::Constant(_) => None,
        }
    }

    /// Description of the figure, for messages.
    pub(super) fn told(&self) -> String {
        let unit = if self.unit_name.is_empty() {
            String::new()
        } else {
            format!(" [{}]", self.unit_name)
        };
        let of = self
            .share_of()
            .map(|of| format!(" of {of}"))
            .unwrap_or_default();
        match &self.origin {
            Origin::Column(column) => format!("{column}{unit}{of}"),
            Origin::Used(column) => format!("physical_bytes less {column}{unit}{of}"),
            Origin::Constant(value) => format!("{value}{unit}{of}, by the mapping"),
        }
    }

    /// Value in the dataset's unit; `None` if the file has no value. An error describes the malformed text.
    /// `field` returns the text of a file's column, `other` the figure of which this one is a percentage. If
    /// the figure is a used part of memory, the result is `physical` less the value; it is below 0 if more is
    /// used than exists.
    pub(super) fn value<'t>(
        &self,
        field: impl FnOnce(&Column) -> Result<&'t str, String>,
        other: impl FnOnce(&str) -> Result<Option<f64>, String>,
        physical: f64,
        has_decimal_comma: bool,
    ) -> Result<Option<f64>, String> {
        let number = match &self.origin {
            Origin::Constant(value) => *value,
            Origin::Column(column) | Origin::Used(column) => {
                match number(field(column)?, column, has_decimal_comma)? {
                    Some(number) => number,
                    None => return Ok(None),
                }
            }
        };
        let value = match &self.unit {
            Unit::Factor(factor) => number * factor,
            Unit::ShareOf(of) => match other(of)? {
                Some(whole) => number / 100.0 * whole,
                None => return Ok(None),
            },
        };
        if value > self.largest {
            return Err(format!("{} is {number}: too much", self.told()));
        }
        Ok(Some(match self.origin {
            Origin::Used(_) => physical - value,
            _ => value,
        }))
    }
}

/// Parses a number of at least 0.
fn number(text: &str, column: &Column, has_decimal_comma: bool) -> Result<Option<f64>, String> {
    if text.is_empty() || ABSENT.contains(&text) {
        return Ok(None);
    }
    let wrong = || format!("{column} is {:?}", cut(text));
    let number = decimal(text, has_decimal_comma).filter(|n| n.is_finite() && *n >= 0.0);
    number.map(Some).ok_or_else(wrong)
}

/// Parses a number with a decimal point. With a decimal comma, points are rejected: they could be thousands
/// separators.
pub(super) fn decimal(text: &str, has_decimal_comma: bool) -> Option<f64> {
    if !has_decimal_comma {
        return text.parse().ok();
    }
    if text.contains('.') {
        return None;
    }
    text.replacen(',', ".", 1).parse().ok()
}
