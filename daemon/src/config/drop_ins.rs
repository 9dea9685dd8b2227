//! Drop-ins: files of the administrator beside the packaged file. Upgrades can then replace the packaged file
//! without asking.

use super::ConfigError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Paths of the drop-ins of a configuration file (`X.d/*.toml` for `X.toml`), in the order of their names.
///
/// # Errors
/// [`ConfigError::Read`] if the folder exists but cannot be read.
pub fn paths(file: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let folder = file.with_extension("d");
    let cannot_read = |source| ConfigError::Read {
        path: folder.clone(),
        source,
    };
    let entries = match std::fs::read_dir(&folder) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.map_err(cannot_read)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(cannot_read)?.path();
        // An editor's hidden copy is no drop-in.
        let is_hidden = path
            .file_name()
            .is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        if path.extension().is_some_and(|e| e == "toml") && !is_hidden {
            found.push(path);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Merges a later file over earlier ones. Tables merge key by key; a list replaces the earlier list.
pub fn merge(table: &mut Table, later: Table) {
    for (key, value) in later {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(earlier)), Value::Table(later)) => merge(earlier, later),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}
