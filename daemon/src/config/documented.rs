//! Files that describe every key of a daemon. Each key stands in a comment, `# key = value`: the file itself
//! sets nothing.

use super::keys::{Kind, keys};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// Text that follows a value if the value is an example, not the default.
const EXAMPLE: &str = "# for example";

/// A key of a documenting file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Key with its tables: `["ship", "rate"]`.
    pub path: Vec<String>,
    /// Text that sets the key in a file: the header of its table, if any, and the key's line.
    pub text: String,
    /// True if the value is the default.
    pub is_default: bool,
}

/// Returns all keys of a documenting file, each with the text that sets it, in order.
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

/// Checks a file that documents a daemon's keys. The file must set no key itself. It must have a line for
/// each key of `T` and for no other key. A value given as the default must be the one that the daemon uses
/// without it; an example must have the right type. `resolve` computes the daemon's settings from a file's
/// text.
///
/// # Errors
/// Description of the first violation.
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
        // If a key takes a table with any names, the documented keys of that table are examples.
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
