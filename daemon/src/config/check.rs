//! Output of `check-config`.

use super::{ConfigError, Origin, Override, Place};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Section of every daemon's help, after its options.
pub const CHECK_HELP: &str = "\
The daemon is not started. Environment variables override the file NAME.toml and its drop-ins NAME.d/*.toml: GLEANER_NAME_KEY, or GLEANER_NAME_TABLE_KEY for a key of a table. \
NAME is the program's name without gleaner-. The variables of a service are set in its unit.

Exit codes: 0 the configuration is valid; 1 it is not: standard error names file, key and line.";

/// Text in place of a value that may be secret.
const HIDDEN: &str = "(hidden)";

/// Result of checking a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Name of the program, like `gleaner-agent`.
    pub program: String,
    /// True if the daemon would start with this configuration.
    pub is_valid: bool,
    /// Path of the file; `None` if no file was named and the default one does not exist, or if the problem is
    /// not in a file.
    pub file: Option<PathBuf>,
    /// Drop-ins that were read after the file, in order; empty if the configuration is invalid.
    pub drop_ins: Vec<PathBuf>,
    /// Environment variables and options that override the file.
    pub overrides: Vec<Override>,
    /// The problem that makes the configuration unusable, if there is one.
    pub problem: Option<Problem>,
    /// Notes on settings of a valid configuration that have no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Keys that are set, with their values in the form of a file. Drop-ins override the file, and variables
    /// override both. Keys that are not here have their defaults. `None` if the configuration is invalid.
    #[serde(default)]
    pub settings: Option<toml::Table>,
}

/// A problem of a configuration, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// File with the problem, if it is in one.
    pub file: Option<PathBuf>,
    /// Line of the file, counted from 1.
    pub line: Option<usize>,
    /// Variable of the environment with the problem, if it is in one.
    pub variable: Option<String>,
    /// Key with its table, like `ship.rate`.
    pub key: Option<String>,
    /// Description of the problem, for people.
    pub text: String,
}

/// Makes the result of checking the configuration of `daemon` (`"agent"`, …).
#[must_use]
pub fn check(daemon: &str, resolved: Result<&Origin, &ConfigError>) -> CheckResult {
    CheckResult {
        program: format!("gleaner-{daemon}"),
        is_valid: resolved.is_ok(),
        file: match resolved {
            Ok(origin) => origin.path().map(Path::to_owned),
            Err(error) => file_of(error),
        },
        drop_ins: resolved.map_or_else(
            |_| Vec::new(),
            |o| o.drop_ins().map(Path::to_owned).collect(),
        ),
        overrides: resolved.map_or_else(|_| Vec::new(), |origin| origin.overrides().to_vec()),
        problem: resolved.err().map(problem),
        notes: Vec::new(),
        settings: resolved.ok().map(|origin| origin.settings().clone()),
    }
}

impl CheckResult {
    /// Adds notes on settings that have no effect.
    #[must_use]
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = &'static str>) -> Self {
        self.notes.extend(notes.into_iter().map(str::to_owned));
        self
    }

    /// Hides all values of one table: they may be secret.
    #[must_use]
    pub fn hiding(mut self, table: &str) -> Self {
        let settings = self
            .settings
            .as_mut()
            .and_then(|settings| settings.get_mut(table));
        let secrets = settings.and_then(toml::Value::as_table_mut);
        for (_, secret) in secrets.into_iter().flatten() {
            *secret = HIDDEN.into();
        }
        self
    }

    /// Renders the result as text: one line, and a further line for each note.
    #[must_use]
    pub fn text(&self) -> String {
        let program = &self.program;
        if let Some(problem) = &self.problem {
            return format!("{program}: {}\n", problem.text);
        }
        let files = self.file.iter().chain(&self.drop_ins);
        let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
        let read = match files.as_slice() {
            [] => "there is no file, and the defaults hold".to_owned(),
            [file] => format!("{file} is good"),
            files => format!("{} are good", files.join(", ")),
        };
        let by = |by: &Override| format!("{} ({})", by.variable, by.key);
        let by: Vec<_> = self.overrides.iter().map(by).collect();
        let mut text = if by.is_empty() {
            format!("{program}: {read}\n")
        } else {
            let wins = if by.len() == 1 { "wins" } else { "win" };
            format!("{program}: {read}; {} {wins} over it\n", by.join(", "))
        };
        for note in &self.notes {
            text.push_str(&format!("{program}: {note}\n"));
        }
        text
    }

    /// Prints the result: faults go to standard error unless the output is JSON. Returns the program's exit code.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn tell(&self, as_json: bool) -> std::io::Result<ExitCode> {
        if as_json {
            let document = serde_json::to_string_pretty(self)?;
            writeln!(std::io::stdout(), "{document}")?;
        } else if self.is_valid {
            std::io::stdout().write_all(self.text().as_bytes())?;
        } else {
            std::io::stderr().write_all(self.text().as_bytes())?;
        }
        Ok(if self.is_valid {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn file_of(error: &ConfigError) -> Option<PathBuf> {
    match error {
        ConfigError::Read { path, .. }
        | ConfigError::Wrong {
            place: Place::File { path, .. },
            ..
        } => Some(path.clone()),
        ConfigError::Wrong { .. } => None,
    }
}

fn problem(error: &ConfigError) -> Problem {
    let mut problem = Problem {
        file: file_of(error),
        line: None,
        variable: None,
        key: None,
        text: error.to_string(),
    };
    if let ConfigError::Wrong { place, key, .. } = error {
        problem.key.clone_from(key);
        match place {
            Place::File { line, .. } => problem.line = *line,
            Place::Variable(name) => problem.variable = Some(name.clone()),
            Place::Argument(_) | Place::Default(_) => {}
        }
    }
    problem
}
