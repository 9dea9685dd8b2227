//! Dotted paths of a scenario's settings, and values for these settings.

use super::SweepError;
use crate::dodo::Scenario;
use serde::Deserialize;
use std::str::FromStr;
use toml::{Table, Value};

/// Form of a list of values in a scenario file, for messages.
const IN_A_FILE: &str = "a list, as remote.placement = [\"random\", \"spread\"]";
/// Form of a list of values on a command line, for messages.
const IN_A_LINE: &str = "KEY=VALUE,VALUE";

/// Settings of a scenario that must be set by another key of the file, each with this key.
const ELSEWHERE: [(&str, &str); 3] = [
    ("seed", "`seeds`"),
    ("application", "`programs`"),
    ("length_ns", "`days`"),
];

/// A key and the values to try for it.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptKey {
    /// Full path of the setting, such as `remote.placement`.
    pub key: String,
    /// Values in order, at least one.
    pub values: Vec<Value>,
}

impl SweptKey {
    fn new(key: &str, values: Vec<Value>, wanted: &'static str) -> Result<Self, SweepError> {
        if values.is_empty() {
            return Err(SweepError::NoValues {
                key: key.to_owned(),
                wanted,
            });
        }
        Ok(Self {
            key: whole(key)?,
            values,
        })
    }
}

/// Parses `KEY=VALUE,VALUE`. Numbers, `true` and `false` keep their types; all other values are text.
impl FromStr for SweptKey {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let (key, values) = text.split_once('=').unwrap_or((text, ""));
        let values = values.split(',').map(str::trim).filter(|v| !v.is_empty());
        Self::new(key.trim(), values.map(value).collect(), IN_A_LINE)
    }
}

fn value(text: &str) -> Value {
    let whole = text.parse().map(Value::Integer);
    let decimal = || text.parse().map(Value::Float);
    let truth = || text.parse().map(Value::Boolean);
    let text = |_| Value::String(text.to_owned());
    whole
        .or_else(|_| decimal())
        .or_else(|_| truth())
        .unwrap_or_else(text)
}

/// Formats a value for messages and results: text has no quotes.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the lists of a `[sweep]` table, whose keys may be nested or quoted paths.
pub(super) fn lists(table: &Table) -> Result<Vec<SweptKey>, SweepError> {
    let mut all = Vec::new();
    for (path, value) in leaves(table) {
        let values = value.as_array().cloned().unwrap_or_default();
        all.push(SweptKey::new(&path, values, IN_A_FILE)?);
    }
    Ok(all)
}

/// Lists each value that is not a table, with its dotted path.
fn leaves(table: &Table) -> Vec<(String, &Value)> {
    let mut all = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                let inner = leaves(inner).into_iter();
                all.extend(inner.map(|(path, value)| (format!("{key}.{path}"), value)));
            }
            value => all.push((key.clone(), value)),
        }
    }
    all
}

/// Completes a key whose beginning was left out: `placement` gives `remote.placement`. An unknown key is
/// returned unchanged; the scenario's parser reports it.
fn whole(key: &str) -> Result<String, SweepError> {
    // A default scenario can always be written as TOML.
    let known = Table::try_from(Scenario::default()).unwrap_or_default();
    let paths: Vec<String> = leaves(&known).into_iter().map(|(path, _)| path).collect();
    let ending = format!(".{key}");
    let ends_so = |path: &&String| path.ends_with(&ending);
    let mut found: Vec<&String> = paths.iter().filter(|path| *path == key).collect();
    if found.is_empty() {
        found = paths.iter().filter(ends_so).collect();
    }
    let path = match found[..] {
        [] => key,
        [path] => path,
        _ => {
            return Err(SweepError::Ambiguous {
                key: key.to_owned(),
                keys: found.into_iter().cloned().collect(),
            });
        }
    };
    refuse_elsewhere(path)?;
    Ok(path.to_owned())
}

/// Refuses settings that must be set elsewhere in the file.
pub(super) fn refuse_elsewhere(path: &str) -> Result<(), SweepError> {
    match ELSEWHERE.iter().find(|(key, _)| *key == path) {
        Some((key, instead)) => Err(SweepError::Elsewhere {
            key: (*key).to_owned(),
            instead,
        }),
        None => Ok(()),
    }
}

/// Parses a table of settings as a scenario.
pub(super) fn scenario(settings: &Table) -> Result<Scenario, toml::de::Error> {
    Scenario::deserialize(settings.clone())
}

/// Adds a setting to the table at its dotted path.
pub(super) fn set(settings: &mut Table, key: &str, value: &Value) -> Result<(), SweepError> {
    let wrong = |reason: String| SweepError::Value {
        key: key.to_owned(),
        value: shown(value),
        reason,
    };
    let mut place = &mut *settings;
    let (path, last) = key.rsplit_once('.').unwrap_or(("", key));
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let inner = place.entry(part).or_insert_with(|| Table::new().into());
        place = inner
            .as_table_mut()
            .ok_or_else(|| wrong(format!("{part} is set to a value already")))?;
    }
    place.insert(last.to_owned(), value.clone());
    match scenario(settings) {
        Ok(_) => Ok(()),
        Err(e) => Err(wrong(e.message().to_owned())),
    }
}
