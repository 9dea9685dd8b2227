//! Configuration: a file in TOML, and variables of the environment over it.
//!
//! A daemon `NAME` reads `/etc/gleaner/NAME.toml` where no other file is named. The variable `GLEANER_NAME_KEY` wins over the key
//! `key` of the file, and `GLEANER_NAME_TABLE_KEY` over the key of a table. Whatever is wrong is told with its place ([`ConfigError`]).

mod check;
mod documented;
mod error;
mod keys;
mod origin;
pub mod values;
mod variables;

pub use check::{CHECK_HELP, Checked, Problem, check};
pub use documented::uncommented;
pub use error::{ConfigError, Place};
pub use keys::{Kind, keys};
pub use origin::{Origin, Override};

use crate::folders;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A configuration, and where it is from.
#[derive(Clone, Debug)]
pub struct Loaded<T> {
    /// What it says.
    pub values: T,
    /// Where from.
    pub origin: Origin,
}

/// Reads the configuration of `daemon` (`"agent"`, …): the file `given`, or the default one where it is there, and this process'
/// environment over it. `T` is the file as written: all its keys may be absent, and unknown ones are refused.
///
/// # Errors
/// [`ConfigError`].
pub fn load<T: DeserializeOwned>(
    daemon: &'static str,
    given: Option<&Path>,
) -> Result<Loaded<T>, ConfigError> {
    load_from(daemon, given, std::env::vars_os())
}

/// As [`load`], with these variables as the environment.
///
/// # Errors
/// [`ConfigError`].
pub fn load_from<T: DeserializeOwned>(
    daemon: &'static str,
    given: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Loaded<T>, ConfigError> {
    let (path, text) = read(daemon, given)?;
    let mut origin = Origin::new(daemon, path, text);
    let from_file = toml::from_str::<T>(origin.text());
    let mut values = from_file.map_err(|error| origin.refused(&error))?;
    let whole = origin.text().parse::<toml::Table>();
    let mut table = whole.map_err(|error| origin.refused(&error))?;
    let keys = keys::<T>();
    for variable in variables::of(daemon, &keys, environment)? {
        variable.put_into(&mut table);
        // What was fine before is not any more: it is this variable's fault.
        values = table.clone().try_into().map_err(|e| variable.refused(&e))?;
        origin.add(variable.name, variable.path);
    }
    Ok(Loaded { values, origin })
}

fn read(daemon: &str, given: Option<&Path>) -> Result<(Option<PathBuf>, String), ConfigError> {
    let default = folders::configuration().join(format!("{daemon}.toml"));
    let path = given.unwrap_or(&default);
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((Some(path.to_owned()), text)),
        Err(e) if given.is_none() && e.kind() == ErrorKind::NotFound => Ok((None, String::new())),
        Err(source) => Err(ConfigError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests;
