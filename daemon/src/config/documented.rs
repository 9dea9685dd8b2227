//! The files that document every key: each stands there in a comment, `# key = value`, so that the file as it is sets nothing.

use super::keys::{Kind, keys};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// After a value that is no default: nothing is set unless somebody sets it.
const EXAMPLE: &str = "# for example";

/// A key of such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Key with its tables: `["ship", "rate"]`.
    pub path: Vec<String>,
    /// Text of the key, as it would be in a file by itself.
    pub text: String,
    /// True if its value is the default.
    pub is_default: bool,
}

/// Every key of such a file, taken out of its comment, in order.
#[must_use]
pub fn uncommented(file: &str) -> Vec<Setting> {
    let mut table: Option<&str> = None;
    let mut found = Vec::new();
    for line in file.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            table = Some(name);
        }
        let setting = line.strip_prefix("# ").and_then(|l| l.split_once(" = "));
        let Some((key, value)) = setting else {
            continue;
        };
        if !key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
            continue; // prose
        }
        let header = table.map(|table| format!("[{table}]\n"));
        found.push(Setting {
            path: table.into_iter().chain([key]).map(str::to_owned).collect(),
            text: format!("{}{key} = {value}\n", header.unwrap_or_default()),
            is_default: !value.contains(EXAMPLE),
        });
    }
    found
}

/// Checks the file that documents a daemon's keys: it sets none as it is, has a line for each key of `T` and for no other, a default's
/// value is what the daemon takes without it, and an example's is of the right kind. `resolve` shows what the daemon does by a file.
///
/// # Errors
/// In words, the first of these that does not hold.
pub fn check_documented<T: DeserializeOwned>(
    file: &str,
    resolve: impl Fn(&str) -> Result<String, String>,
) -> Result<(), String> {
    let empty = resolve("")?;
    if resolve(file)? != empty {
        return Err("the file as it is sets something".to_owned());
    }
    let known = keys::<T>();
    let settings = uncommented(file);
    let key_of = |setting: &Setting| {
        let path: Vec<&str> = setting.path.iter().map(String::as_str).collect();
        // Below a key that takes any names, these are examples.
        let mut any = known.iter().filter(|(_, kind)| **kind == Kind::Map);
        let above = any.find(|(key, _)| path.starts_with(key));
        above.map_or(path, |(key, _)| key.clone()).join(".")
    };
    let documented: BTreeSet<String> = settings.iter().map(key_of).collect();
    let known: BTreeSet<String> = known.keys().map(|key| key.join(".")).collect();
    if documented != known {
        let differ: Vec<_> = documented.symmetric_difference(&known).collect();
        return Err(format!("documented or known, and not both: {differ:?}"));
    }
    for setting in settings {
        let text = setting.text;
        toml::from_str::<T>(&text).map_err(|e| format!("{text}: {e}"))?;
        if setting.is_default && resolve(&text)? != empty {
            return Err(format!("{text} is not the default"));
        }
    }
    Ok(())
}
