//! The keys of a mapping file, before any check; unknown keys are rejected.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// Texts that mean a missing value, besides the empty text.
pub(super) const ABSENT: [&str; 5] = ["-", "NA", "NaN", "nan", "null"];

/// A column of the file, named by its header or by its number from 1.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Column {
    Name(String),
    Number(usize),
}

impl std::fmt::Display for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => write!(f, "column {number}"),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) host_prefix: String,
    pub(super) available_meaning: Option<String>,
    pub(super) separator: Option<Spanned<char>>,
    #[serde(default = "yes")]
    pub(super) header: bool,
    #[serde(default = "point")]
    pub(super) decimal: Spanned<char>,
    #[serde(default = "page")]
    pub(super) page_size_bytes: u32,
    pub(super) time: TimeKeys,
    pub(super) machine: Option<MachineKeys>,
    pub(super) samples: BTreeMap<Spanned<String>, FigureKeys>,
    #[serde(default)]
    pub(super) hosts: BTreeMap<Spanned<String>, FactKeys>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TimeKeys {
    pub(super) column: Column,
    pub(super) format: Spanned<String>,
    pub(super) zone: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineKeys {
    pub(super) column: Column,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureKeys {
    pub(super) column: Option<Column>,
    pub(super) used: Option<Column>,
    pub(super) value: Option<f64>,
    pub(super) unit: Option<String>,
    pub(super) of: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FactKeys {
    pub(super) column: Option<Column>,
    pub(super) value: Option<String>,
}

fn yes() -> bool {
    true
}

fn point() -> Spanned<char> {
    Spanned::new(0..0, '.')
}

fn page() -> u32 {
    4096
}
