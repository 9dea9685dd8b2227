//! Origin of a configuration, down to the line.

use super::{ConfigError, Place};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// An environment variable that overrides the file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Override {
    /// Name of the variable.
    pub variable: String,
    /// Key with its table, like `ship.rate`.
    pub key: String,
}

/// Origin of a configuration.
#[derive(Clone, Debug)]
pub struct Origin {
    daemon: &'static str,
    /// The file and its drop-ins, in the order of reading: later sources override earlier ones.
    sources: Vec<Source>,
    has_main_file: bool,
    overrides: Vec<Override>,
    /// Keys set by a source or a variable; the last value counts.
    pub(super) settings: toml::Table,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Origin {
    pub(super) fn new(daemon: &'static str, main: Option<Source>, drop_ins: Vec<Source>) -> Self {
        Self {
            daemon,
            has_main_file: main.is_some(),
            sources: main.into_iter().chain(drop_ins).collect(),
            overrides: Vec::new(),
            settings: toml::Table::new(),
        }
    }

    pub(super) fn add(&mut self, variable: String, path: Vec<String>) {
        let key = path.join(".");
        self.overrides.push(Override { variable, key });
    }

    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Name of the daemon, such as `agent` for `gleaner-agent`.
    #[must_use]
    pub const fn daemon(&self) -> &'static str {
        self.daemon
    }

    /// Path of the file; `None` if no file was named and the default one does not exist.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        let main = self.sources.first().filter(|_| self.has_main_file);
        main.map(|source| source.path.as_path())
    }

    /// Drop-ins that were read after the file, in order.
    pub fn drop_ins(&self) -> impl Iterator<Item = &Path> {
        let drop_ins = self.sources.iter().skip(usize::from(self.has_main_file));
        drop_ins.map(|source| source.path.as_path())
    }

    /// Variables and options that override the file.
    #[must_use]
    pub fn overrides(&self) -> &[Override] {
        &self.overrides
    }

    /// Keys set by a file or a variable; the last value counts. All other keys have their defaults.
    #[must_use]
    pub const fn settings(&self) -> &toml::Table {
        &self.settings
    }

    /// Makes an error for the setting of `key`, with the place where it was set. If several keys are
    /// involved, `key` is the one most likely wrong.
    #[must_use]
    pub fn wrong(&self, key: &str, what: impl Into<String>) -> ConfigError {
        ConfigError::Wrong {
            place: self.place(key),
            key: Some(key.to_owned()),
            what: what.into(),
        }
    }

    /// Makes an error for a setting on the command line.
    #[must_use]
    pub fn wrong_argument(name: &'static str, what: impl Into<String>) -> ConfigError {
        ConfigError::Wrong {
            place: Place::Argument(name),
            key: None,
            what: what.into(),
        }
    }

    fn place(&self, key: &str) -> Place {
        if let Some(by) = self.overrides.iter().find(|by| by.key == key) {
            return Place::Variable(by.variable.clone());
        }
        let line = |source: &Source| {
            let set = source.settings().into_iter().find(|set| set.key == key)?;
            Some(source.line_of(set.span.start))
        };
        // The last source that sets the key counts.
        let last = self
            .sources
            .iter()
            .rev()
            .find_map(|source| Some((source, Some(line(source)?))));
        let main = self.sources.first().filter(|_| self.has_main_file);
        match last.or_else(|| Some((main?, None))) {
            Some((source, line)) => Place::File {
                path: source.path.clone(),
                line,
            },
            None => Place::Default(self.daemon),
        }
    }
}

impl Source {
    /// Error for an invalid value or key in the file.
    pub(super) fn refused(&self, error: &toml::de::Error) -> ConfigError {
        let at = error.span().map(|span| span.start);
        // Tables precede their contents: the last match is the innermost.
        let holds = |set: &Set, at: usize| set.span.contains(&at);
        let mut settings = self.settings().into_iter();
        let key = at.and_then(|at| settings.rfind(|set| holds(set, at)));
        ConfigError::Wrong {
            place: Place::File {
                path: self.path.clone(),
                line: at.map(|at| self.line_of(at)),
            },
            key: key.map(|set| set.key),
            what: in_one_line(error.message()),
        }
    }

    fn line_of(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or(&self.text);
        before.matches('\n').count() + 1
    }

    /// Returns every key that the file sets; none if the file is not valid TOML.
    fn settings(&self) -> Vec<Set> {
        let mut found = Vec::new();
        if let Ok(table) = DeTable::parse(&self.text) {
            gather(table.get_ref(), "", &mut found);
        }
        found
    }
}

/// A key in the file, from its name to the end of its value.
struct Set {
    key: String,
    span: Range<usize>,
}

fn gather(table: &DeTable<'_>, within: &str, found: &mut Vec<Set>) {
    for (name, value) in table {
        let key = format!("{within}{}", name.get_ref());
        found.push(Set {
            key: key.clone(),
            span: name.span().start..value.span().end.max(name.span().end),
        });
        if let DeValue::Table(table) = value.get_ref() {
            gather(table, &format!("{key}."), found);
        }
    }
}

/// Joins the lines of a text for the log: the parser's messages may have several lines.
pub(super) fn in_one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}
