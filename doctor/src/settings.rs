//! The few configuration keys of a daemon that the doctor needs. Their values come from the daemon's
//! `check-config`.

use super::daemon::Daemon;
use super::place::Place;
use gleaner_daemon::config::{CheckResult, drop_in_paths, keys_in_file};
use gleaner_schemas::{interval, units};
use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a daemon. If a key is not set, the daemon uses its default.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) table: toml::Table,
    /// True if there is a configuration file.
    pub(super) is_there: bool,
    /// Reason why an existing configuration file could not be read.
    pub(super) unread: Option<String>,
}

impl Settings {
    /// Takes the settings from the daemon's answer `checked`. If there is no answer, or the configuration is
    /// invalid, takes the keys from the files.
    pub(super) fn read(place: &Place, daemon: Daemon, checked: Option<&CheckResult>) -> Self {
        let path = place.configuration_of(daemon);
        let known = checked.and_then(|checked| checked.settings.clone());
        let mut settings = Self {
            table: known.unwrap_or_else(|| keys_in_file(&path)),
            ..Self::default()
        };
        let drop_ins = drop_in_paths(&path).unwrap_or_default(); // an error here is a finding of check-config
        for file in std::iter::once(path).chain(drop_ins) {
            match File::open(&file) {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => {
                    settings.is_there = true;
                    settings.unread = Some(format!("{}: {e}", file.display()));
                }
                Ok(_) => settings.is_there = true,
            }
        }
        settings
    }

    /// Value of a key as text; `None` if the key is missing or its value empty. A key in a table is written
    /// `table.key`.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let text = match self.value(key)? {
            toml::Value::String(text) => text.trim().to_owned(),
            toml::Value::Table(_) | toml::Value::Array(_) => return None,
            other => other.to_string(),
        };
        Some(text).filter(|text| !text.is_empty())
    }

    pub(super) fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(PathBuf::from)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    pub(super) fn bytes(&self, key: &str) -> Option<u64> {
        units::parse_bytes(&self.text(key)?)
    }

    pub(super) fn length(&self, key: &str) -> Option<Duration> {
        interval::parse(&self.text(key)?).ok()
    }

    /// Texts in the list that is the value of a key.
    pub(super) fn list(&self, key: &str) -> Vec<String> {
        let items = self.value(key).and_then(toml::Value::as_array);
        let texts = items.into_iter().flatten().filter_map(toml::Value::as_str);
        texts.map(str::to_owned).collect()
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
    fn the_daemons_word_counts_before_what_files_say() {
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
        let read =
            |checked: Option<&CheckResult>| Settings::read(&place, Daemon::Recruiter, checked);
        assert!(read(None).is_there);
        write("recruiter.toml", "listen = \"127.0.0.1:1\"\npki = \"/x\"\n");
        assert_eq!(read(None).text("listen").as_deref(), Some("0.0.0.0:7444"));
        assert_eq!(read(None).text("pki").as_deref(), Some("/x"));
        let document = r#"{"program": "gleaner-recruiter", "is_valid": true, "file": null, "drop_ins": [], "overrides": [],
            "problem": null, "settings": {"listen": "127.0.0.1:2"}, "colour": 1}"#;
        let checked: CheckResult = serde_json::from_str(document).unwrap();
        assert_eq!(
            read(Some(&checked)).text("listen").as_deref(),
            Some("127.0.0.1:2")
        );
        assert_eq!(read(Some(&checked)).text("pki"), None);
        let wrong = CheckResult {
            settings: None,
            ..checked
        };
        assert_eq!(read(Some(&wrong)).text("pki").as_deref(), Some("/x"));
    }

    #[test]
    fn values_are_read_by_their_kinds() {
        let settings = Settings {
            table: "sample_interval = \"10s\"\nconnections_limit = 20_000\nlock_memory = false\nrecruiters = [\"a\", \"b\"]\n[ship]\ncollector = \"https://c\"\nrate = \"\""
                .parse()
                .unwrap(),
            ..Settings::default()
        };
        assert_eq!(
            settings.length("sample_interval"),
            Some(Duration::from_secs(10))
        );
        assert_eq!(
            settings.text("ship.collector").as_deref(),
            Some("https://c")
        );
        assert_eq!(settings.path("ship.folder"), None);
        assert_eq!(settings.text("ship.rate"), None);
        assert_eq!(settings.text("ship"), None);
        assert_eq!(settings.text("lock_memory").as_deref(), Some("false"));
        assert_eq!(settings.number("connections_limit"), Some(20_000));
        assert_eq!(settings.list("recruiters"), ["a", "b"]);
        assert_eq!(settings.list("sample_interval"), [""; 0]);
        assert_eq!(settings.bytes("sample_interval"), None);
    }
}
