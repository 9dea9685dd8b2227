//! The few keys of a daemon's configuration that the doctor needs, read without judging the rest: that is `check-config`'s work.

use super::daemon::Daemon;
use super::place::Place;
use gleaner_daemon::config::{drop_in_paths, merge};
use gleaner_schemas::{interval, units};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A configuration as it is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) table: toml::Table,
    /// Over the file, by their names there.
    pub(super) variables: BTreeMap<String, String>,
    pub(super) prefix: &'static str,
    /// Whether there is a file.
    pub(super) is_there: bool,
    /// Why it could not be read, where it is there.
    pub(super) unread: Option<String>,
}

impl Settings {
    /// Reads a daemon's file; the variables of its unit, and of this process, stand over it.
    pub(super) fn read(place: &Place, daemon: Daemon, of_unit: &BTreeMap<String, String>) -> Self {
        let path = place.configuration_of(daemon);
        let mut settings = Self {
            prefix: daemon.variables(),
            variables: of_unit.clone(),
            is_there: true,
            ..Self::default()
        };
        for (name, value) in std::env::vars_os() {
            if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) {
                settings.variables.insert(name, value);
            }
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => settings.table = text.parse().unwrap_or_default(), // check-config says what is wrong
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => settings.is_there = false,
            Err(e) => settings.unread = Some(format!("{}: {e}", path.display())),
        }
        let drop_ins = drop_in_paths(&path).unwrap_or_default(); // check-config says what is wrong
        for path in drop_ins {
            settings.is_there = true;
            match std::fs::read_to_string(&path) {
                Ok(text) => merge(&mut settings.table, text.parse().unwrap_or_default()),
                Err(e) => settings.unread = Some(format!("{}: {e}", path.display())),
            }
        }
        settings
    }

    /// By its name, with dots between tables'; nothing where it is empty.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let variable = key.to_ascii_uppercase().replace('.', "_");
        let variable = self.variables.get(&format!("{}{variable}", self.prefix));
        let in_file = || match self.value(key)? {
            toml::Value::String(text) => Some(text.clone()),
            toml::Value::Table(_) | toml::Value::Array(_) => None,
            other => Some(other.to_string()),
        };
        let text = variable.cloned().or_else(in_file)?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(super) fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(PathBuf::from)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.replace('_', "").parse().ok()
    }

    pub(super) fn bytes(&self, key: &str) -> Option<u64> {
        units::parse_bytes(&self.text(key)?)
    }

    pub(super) fn length(&self, key: &str) -> Option<Duration> {
        interval::parse(&self.text(key)?).ok()
    }

    /// A list of texts; as a variable with commas between.
    pub(super) fn list(&self, key: &str) -> Vec<String> {
        if let Some(toml::Value::Array(items)) = self.value(key) {
            let texts = items.iter().filter_map(toml::Value::as_str);
            return texts.map(str::to_owned).collect();
        }
        let text = self.text(key).unwrap_or_default();
        let text = text.trim_start_matches('[').trim_end_matches(']');
        let items = text.split(',').map(|item| item.trim().trim_matches('"'));
        items
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect()
    }

    fn value(&self, key: &str) -> Option<&toml::Value> {
        let (first, rest) = key.split_once('.').unwrap_or((key, ""));
        let value = self.table.get(first)?;
        match rest {
            "" => Some(value),
            rest => value.as_table()?.get(rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_ins_stand_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place {
            configuration: folder.path().to_owned(),
            programs: None,
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            me: crate::user::User::default(),
        };
        std::fs::create_dir(folder.path().join("recruiter.d")).unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("recruiter.d/own.toml", "listen = \"0.0.0.0:7444\"\n");
        let read = || Settings::read(&place, Daemon::Recruiter, &BTreeMap::new());
        assert!(read().is_there);
        write("recruiter.toml", "listen = \"127.0.0.1:1\"\npki = \"/x\"\n");
        assert_eq!(read().text("listen").as_deref(), Some("0.0.0.0:7444"));
        assert_eq!(read().text("pki").as_deref(), Some("/x"));
    }

    #[test]
    fn variables_stand_over_the_file() {
        let settings = Settings {
            table: "interval = \"10s\"\nconnections_limit = 20_000\nrecruiters = [\"a\", \"b\"]\n[ship]\ncollector = \"https://c\"\nrate = \"\""
                .parse()
                .unwrap(),
            variables: [("GLEANER_AGENT_SHIP_FOLDER", "/x"), ("GLEANER_AGENT_INTERVAL", "20s")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            prefix: "GLEANER_AGENT_",
            ..Settings::default()
        };
        assert_eq!(settings.length("interval"), Some(Duration::from_secs(20)));
        assert_eq!(
            settings.text("ship.collector").as_deref(),
            Some("https://c")
        );
        assert_eq!(settings.path("ship.folder"), Some("/x".into()));
        assert_eq!(settings.text("ship.rate"), None);
        assert_eq!(settings.text("ship"), None);
        assert_eq!(settings.number("connections_limit"), Some(20_000));
        assert_eq!(settings.list("recruiters"), ["a", "b"]);
        assert_eq!(settings.bytes("interval"), None);
    }
}
