//! Configuration: a TOML file, overridden by environment variables.
//!
//! A daemon `NAME` reads `/etc/gleaner/NAME.toml` unless another file is named. Then it reads every `*.toml`
//! of the folder `NAME.d` beside that file, in the order of their names: later files override earlier ones.
//! The variable `GLEANER_NAME_KEY` overrides the key `key` of the files, and `GLEANER_NAME_TABLE_KEY` the key
//! of a table. Errors name their place ([`ConfigError`]).

mod check;
mod documented;
mod drop_ins;
mod error;
mod keys;
mod origin;
pub mod values;
mod variables;

pub use check::{CHECK_HELP, CheckResult, Problem, check};
pub use documented::{check_documented, uncommented};
pub use drop_ins::{merge, paths as drop_in_paths};
pub use error::{ConfigError, Place};
pub use keys::{Kind, keys};
pub use origin::{Origin, Override};

use crate::folders;
use origin::Source;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A configuration with its origin.
#[derive(Clone, Debug)]
pub struct LoadedConfig<T> {
    /// Values of the configuration.
    pub values: T,
    /// Origin of the values.
    pub origin: Origin,
}

/// Reads the configuration of `daemon` (`"agent"`, …): the file `given`, or the default one if it exists,
/// overridden by this process' environment. `T` describes the file: each of its keys may be absent, and
/// unknown keys are errors.
///
/// # Errors
/// [`ConfigError`].
pub fn load<T: DeserializeOwned>(
    daemon: &'static str,
    given: Option<&Path>,
) -> Result<LoadedConfig<T>, ConfigError> {
    load_from(daemon, given, std::env::vars_os())
}

/// Loads like [`load`], with these variables as the environment.
///
/// # Errors
/// [`ConfigError`].
pub fn load_from<T: DeserializeOwned>(
    daemon: &'static str,
    given: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<LoadedConfig<T>, ConfigError> {
    let (main, drop_ins) = read(daemon, given)?;
    let mut origin = Origin::new(daemon, main, drop_ins);
    let mut table = toml::Table::new();
    for source in origin.sources() {
        // Each file is first parsed alone, so that an error can name the file and the line.
        let refused = |error| source.refused(&error);
        toml::from_str::<T>(&source.text).map_err(refused)?;
        merge(&mut table, source.text.parse().map_err(refused)?);
    }
    let whole = table.clone().try_into();
    let mut values: T = whole.map_err(|error| match origin.sources().last() {
        Some(source) => source.refused(&error),
        None => origin.wrong("configuration", error.message()),
    })?;
    let keys = keys::<T>();
    for variable in variables::of(daemon, &keys, environment)? {
        variable.put_into(&mut table);
        // The values were valid before this variable: the fault is in the variable.
        values = table.clone().try_into().map_err(|e| variable.refused(&e))?;
        origin.add(variable.name, variable.path);
    }
    origin.settings = table;
    Ok(LoadedConfig { values, origin })
}

/// Returns the keys that the file at `path` and its drop-ins set (the last value counts), without checking
/// them. A file that is unreadable or not valid TOML sets nothing.
#[must_use]
pub fn keys_in_file(path: &Path) -> toml::Table {
    let mut table = toml::Table::new();
    let drop_ins = drop_in_paths(path).unwrap_or_default();
    for path in std::iter::once(path.to_owned()).chain(drop_ins) {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        merge(&mut table, text.parse().unwrap_or_default());
    }
    table
}

fn read(daemon: &str, given: Option<&Path>) -> Result<(Option<Source>, Vec<Source>), ConfigError> {
    let default = folders::configuration().join(format!("{daemon}.toml"));
    let path = given.unwrap_or(&default);
    let main = match read_one(path.to_owned()) {
        Err(ConfigError::Read { source, .. })
            if given.is_none() && source.kind() == ErrorKind::NotFound =>
        {
            None
        }
        read => Some(read?),
    };
    let drop_ins = drop_in_paths(path)?.into_iter().map(read_one);
    Ok((main, drop_ins.collect::<Result<_, _>>()?))
}

fn read_one(path: PathBuf) -> Result<Source, ConfigError> {
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Source { path, text }),
        Err(source) => Err(ConfigError::Read { path, source }),
    }
}

#[cfg(test)]
mod tests;
