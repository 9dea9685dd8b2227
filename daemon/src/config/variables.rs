//! Environment variables that override the file.

use super::origin::in_one_line;
use super::{ConfigError, Kind, Place};
use std::collections::BTreeMap;
use std::ffi::OsString;
use toml::{Table, Value};

/// A variable that sets a key.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Names of the tables and of the key.
    pub(super) path: Vec<String>,
    value: Value,
}

/// Variables of the environment that set a daemon's keys, ordered by name.
///
/// # Errors
/// [`ConfigError::Wrong`] for a variable that names no key or has an invalid value.
pub(super) fn of(
    daemon: &str,
    keys: &BTreeMap<Vec<&'static str>, Kind>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<Variable>, ConfigError> {
    let prefix = format!("GLEANER_{}_", daemon.to_ascii_uppercase());
    let mut found: Vec<(String, OsString)> = environment
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with(&prefix))
        .collect();
    found.sort_unstable();
    let variable = |(name, value): (String, OsString)| {
        let wrong = |what: String| ConfigError::Wrong {
            place: Place::Variable(name.clone()),
            key: None,
            what,
        };
        let (path, kind) = key_of(&name[prefix.len()..], keys).ok_or_else(|| {
            let names = keys.keys().map(|path| in_upper_case(path));
            let names = names.collect::<Vec<_>>().join(", ");
            wrong(format!(
                "gleaner-{daemon} has no such setting; after {prefix} there may come {names}"
            ))
        })?;
        let value = value.into_string();
        let value = value.map_err(|_| wrong("its value is no UTF-8".to_owned()))?;
        let value = parse(value, kind).map_err(wrong)?;
        Ok(Variable { name, path, value })
    };
    found.into_iter().map(variable).collect()
}

impl Variable {
    /// Sets the variable's key in `table`.
    pub(super) fn put_into(&self, table: &mut Table) {
        let Some((key, tables)) = self.path.split_last() else {
            return;
        };
        let mut within = table;
        for name in tables {
            let entry = within.entry(name.clone());
            // The file was parsed before: another value than a table under this name would have been an
            // error.
            match entry.or_insert_with(|| Value::Table(Table::new())) {
                Value::Table(table) => within = table,
                _ => return,
            }
        }
        within.insert(key.clone(), self.value.clone());
    }

    /// Error for this variable.
    pub(super) fn refused(&self, error: &toml::de::Error) -> ConfigError {
        ConfigError::Wrong {
            place: Place::Variable(self.name.clone()),
            key: Some(self.path.join(".")),
            what: in_one_line(error.message()),
        }
    }
}

fn in_upper_case(path: &[&str]) -> String {
    path.join("_").to_ascii_uppercase()
}

/// Key for `name`, the part of a variable's name that follows the daemon's name.
fn key_of(name: &str, keys: &BTreeMap<Vec<&'static str>, Kind>) -> Option<(Vec<String>, Kind)> {
    let owned = |path: &[&str]| path.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
    let exact = keys.iter().find(|(path, _)| in_upper_case(path) == name);
    if let Some((path, kind)) = exact {
        return (*kind != Kind::Map).then(|| (owned(path), *kind));
    }
    let maps = keys.iter().filter(|(_, kind)| **kind == Kind::Map);
    let within = |(path, _): (&Vec<&'static str>, &Kind)| {
        let key = name.strip_prefix(&in_upper_case(path))?.strip_prefix('_')?;
        let mut path = owned(path);
        path.push(key.to_ascii_lowercase());
        Some((path, Kind::Text))
    };
    maps.filter_map(within).next()
}

/// Parses a value: texts are taken unchanged, lists are in TOML's form or separated by commas, all
/// others in TOML's form.
fn parse(text: String, kind: Kind) -> Result<Value, String> {
    let as_in_toml = |text: &str| text.parse::<Value>().map_err(|e| in_one_line(e.message()));
    match kind {
        Kind::Text | Kind::Map => Ok(Value::String(text)),
        Kind::List if text.trim_start().starts_with('[') => as_in_toml(&text),
        Kind::List => {
            let parts = text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty());
            Ok(Value::Array(parts.map(Value::from).collect()))
        }
        // An invalid value is kept as text: the key's own error then says what the key needs.
        Kind::Other => Ok(as_in_toml(text.trim()).unwrap_or(Value::String(text))),
    }
}
