//! Text of scenario files: the system, dotted paths of settings, and the line of a setting.

use super::error::ScenarioError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// Most combinations of values and seeds.
const MOST_RUNS: usize = 100_000;

/// Seeds of a file that names none.
pub(crate) fn one_seed() -> Vec<u64> {
    vec![1]
}

/// Returns true if the text has `system = "NAME"` before its first table, whether the file is valid or not. Longer
/// words that begin with the name count as well, so that the system's own errors name a misspelt one.
pub(crate) fn is_of_system(text: &str, name: &str) -> bool {
    let is_it = |line: &str| {
        let (key, value) = line.split_once('=').unwrap_or_default();
        key.trim() == "system" && value.trim().trim_matches(['"', '\'']).starts_with(name)
    };
    let keys = text.lines();
    keys.take_while(|line| !line.trim_start().starts_with('['))
        .any(is_it)
}

/// Line of a setting, or of its table, in the file, from 1; `None` if the file does not set it.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let last = |path: &str| path.trim().rsplit('.').next().map(str::to_owned);
    let wanted = last(key);
    let sets = |line: &str| {
        let table = line
            .trim()
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let key = table.or_else(|| line.split_once('=').map(|(key, _)| key));
        key.is_some_and(|key| last(key) == wanted)
    };
    Some(text.lines().position(sets)? + 1)
}

/// Adds the line of a setting, or of its table, to its error, if the file has the setting.
pub(crate) fn at_line(text: &str, error: ScenarioError) -> ScenarioError {
    let ScenarioError::Setting { key, .. } = &error else {
        return error;
    };
    match line_of(text, key) {
        Some(line) => ScenarioError::Line {
            line,
            fault: Box::new(error),
        },
        None => error,
    }
}

/// Limits the number of runs: one for each case and seed.
///
/// # Errors
/// [`ScenarioError::Setting`] names the seeds.
pub(crate) fn check_runs(cases: usize, seeds: usize) -> Result<(), ScenarioError> {
    let runs = cases.saturating_mul(seeds);
    if (1..=MOST_RUNS).contains(&runs) {
        return Ok(());
    }
    Err(ScenarioError::Setting {
        key: "seeds",
        value: format!("{runs} runs"),
        reason: format!("must be 1 to {MOST_RUNS}"),
    })
}

/// Lists each value that is not a table, with its dotted path.
pub(crate) fn leaves(table: &Table) -> Vec<(String, &Value)> {
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

/// Sets the value at a dotted path.
///
/// # Errors
/// Name of the setting through which the path leads, as a sentence.
pub(crate) fn set(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let Some((first, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return Ok(());
    };
    let inner = table.entry(first).or_insert_with(|| Table::new().into());
    match inner.as_table_mut() {
        Some(inner) => set(inner, rest, value),
        None => Err(format!("{first} is not a table of settings")),
    }
}

/// Copy of the settings with another value at a dotted path.
///
/// # Errors
/// Reason why the value, or the path, is not one of the settings.
pub(crate) fn with<T: Serialize + DeserializeOwned>(
    settings: &T,
    path: &str,
    value: &Value,
) -> Result<T, String> {
    let mut table = Table::try_from(settings).map_err(|e| e.to_string())?;
    set(&mut table, path, value.clone())?;
    T::deserialize(table).map_err(|e| e.message().to_owned())
}

/// Formats a value for rows: text has no quotes, and a list no brackets.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<String>>().join("+"),
        other => other.to_string(),
    }
}
