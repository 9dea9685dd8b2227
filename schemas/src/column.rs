//! Declarations of stored columns: name, kind, meaning, and whether values may be absent.

use serde::{Deserialize, Serialize};

/// Kind of a column's values; each kind has one type in SQLite (STRICT tables) and one in Arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Signed 64-bit whole number.
    Integer,
    /// A 64-bit floating-point number.
    Real,
    /// Text in UTF-8.
    Text,
    /// True or false (0 or 1 in SQLite).
    Flag,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Absent; the `missing_values` table has the reason.
    Null,
    /// True or false.
    Flag(bool),
    /// A signed 64-bit whole number.
    Integer(i64),
    /// A 64-bit floating-point number.
    Real(f64),
    /// A text in UTF-8.
    Text(String),
}

/// A column, declared once, in [`crate::rows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name, which ends with the unit: `_bytes`, `_ms`, `_us`.
    pub name: &'static str,
    /// Kind of the column's values.
    pub kind: Kind,
    /// True if an agent may leave the value absent; if false, the column is `NOT NULL` in SQLite. For
    /// datasets, [`Table::is_required`] decides instead.
    pub nullable: bool,
    /// Meaning and origin (the Rust doc comment, lines joined).
    pub doc: &'static str,
}

impl Column {
    /// Returns the unit, with which the column's name ends; `None` for columns without a unit, such as texts,
    /// flags and ids.
    #[must_use]
    pub fn unit(&self) -> Option<&'static str> {
        if self.name == "time" || self.name == "time_ms" || self.name.ends_with("_time_ms") {
            return Some("ms since 1970-01-01 UTC");
        }
        match self.name.rsplit('_').next()? {
            "bytes" => Some("bytes"),
            "ms" => Some("ms"),
            "us" => Some("us"),
            "count" => Some("count"),
            "pages" => Some("pages"),
            "load1" | "load5" | "load15" => Some("tasks"),
            _ => None,
        }
    }
}

/// Declaration of a table: its name, the meaning of a row, and its columns.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of the SQLite table and of the dataset's folder.
    pub name: &'static str,
    /// Meaning of a row.
    pub doc: &'static str,
    /// Columns in order, without those with which every table begins (sequence, time).
    pub columns: &'static [Column],
    /// Columns that distinguish the rows of one record in this table. Empty if a record has only one row in
    /// this table; such a row has a time of its own.
    pub key: &'static [&'static str],
    /// Columns that must have a value in every row of a dataset; `None`: all columns that an agent always
    /// fills. The list is needed for tables in which traces of other programs lack some of those columns.
    pub required: Option<&'static [&'static str]>,
}

impl Table {
    /// Returns true if every row of a dataset has a value in this column.
    #[must_use]
    pub fn is_required(&self, column: &Column) -> bool {
        self.required
            .map_or(!column.nullable, |names| names.contains(&column.name))
    }

    /// Returns true if each row has its own time: one row per record. The rows of other tables belong to a
    /// sample and share its time.
    #[must_use]
    pub fn has_own_time(&self) -> bool {
        self.key.is_empty()
    }
}

/// A Rust type that can be stored in a column.
pub trait Field: Sized {
    /// Kind of the column.
    const KIND: Kind;
    /// True if the value may be absent.
    const NULLABLE: bool = false;
    /// Returns the value as stored.
    fn to_value(&self) -> Value;
    /// Parses a stored value; `None` if its kind does not fit.
    fn from_value(value: Value) -> Option<Self>;
}

macro_rules! field {
    ($type:ty, $kind:ident, $variant:ident) => {
        impl Field for $type {
            const KIND: Kind = Kind::$kind;
            fn to_value(&self) -> Value {
                Value::$variant(self.clone())
            }
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::$variant(v) => Some(v),
                    _ => None,
                }
            }
        }
    };
}
field!(i64, Integer, Integer);
field!(f64, Real, Real);
field!(String, Text, Text);

impl Field for bool {
    const KIND: Kind = Kind::Flag;
    fn to_value(&self) -> Value {
        Value::Flag(*self)
    }
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Flag(v) => Some(v),
            Value::Integer(v @ 0..=1) => Some(v == 1), // SQLite has no booleans
            _ => None,
        }
    }
}

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;
    const NULLABLE: bool = true;
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, Field::to_value)
    }
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            other => T::from_value(other).map(Some),
        }
    }
}

/// A struct that holds one row of a [`Table`].
pub trait Row: Sized {
    /// The table of the row.
    const TABLE: Table;
    /// Returns the values in the order of the table's columns.
    fn to_values(&self) -> Vec<Value>;
    /// Builds the row from values in the order of the table's columns; `None` if a kind or the number of
    /// values does not fit.
    fn from_values(values: Vec<Value>) -> Option<Self>;
}

/// Declares a row: its struct, its table, and the conversions to and from values. Each column is written only
/// once. `required` names the columns that even traces of other programs always have ([`Table::required`]).
#[macro_export]
macro_rules! row {
    (
        $(#[doc = $table_doc:literal])+
        $row:ident = $table:literal, key [$($key:literal),*] $(, required [$($required:literal),+])? {
            $( $(#[doc = $doc:literal])+ $name:ident : $type:ty ),+ $(,)?
        }
    ) => {
        $(#[doc = $table_doc])+
        #[derive(Clone, Debug, PartialEq, Default, serde::Serialize, serde::Deserialize)]
        pub struct $row {
            $( $(#[doc = $doc])+ pub $name: $type, )+
        }

        impl $crate::column::Row for $row {
            const TABLE: $crate::column::Table = $crate::column::Table {
                name: $table,
                doc: concat!($($table_doc),+),
                columns: &[$( $crate::column::Column {
                    name: stringify!($name),
                    kind: <$type as $crate::column::Field>::KIND,
                    nullable: <$type as $crate::column::Field>::NULLABLE,
                    doc: concat!($($doc),+),
                } ),+],
                key: &[$($key),*],
                required: $crate::row!(@required $($($required),+)?),
            };
            fn to_values(&self) -> Vec<$crate::column::Value> {
                vec![$( $crate::column::Field::to_value(&self.$name) ),+]
            }
            fn from_values(values: Vec<$crate::column::Value>) -> Option<Self> {
                let mut values = values.into_iter();
                let row = Self {
                    $( $name: <$type as $crate::column::Field>::from_value(values.next()?)?, )+
                };
                values.next().is_none().then_some(row)
            }
        }
    };
    (@required) => { None };
    (@required $($name:literal),+) => { Some(&[$($name),+]) };
}
