//! Settings as texts, from the program or from environment variables `GLEANER_REGIONS_…`.

use crate::{OnLoss, Settings};
use gleaner_trust::{ClientPaths, ClientTrust};
use std::collections::BTreeMap;
use std::time::Duration;

const NAMES: [&str; 9] = [
    "authority",
    "certificate",
    "client",
    "key",
    "patience_ms",
    "recruiters",
    "refraction_ms",
    "servers",
    "when_gone",
];

pub(super) struct Configuration {
    set: BTreeMap<String, String>,
}

impl Configuration {
    pub(super) const fn new() -> Self {
        Self {
            set: BTreeMap::new(),
        }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if !NAMES.contains(&name) {
            return Err(format!(
                "no setting {name:?}; there are {}",
                NAMES.join(", ")
            ));
        }
        self.set.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// Returns the value of a setting. The program's value overrides that of the environment.
    fn get(&self, name: &str) -> Option<String> {
        let started_with =
            || std::env::var(format!("GLEANER_REGIONS_{}", name.to_uppercase())).ok();
        let value = self.set.get(name).cloned().or_else(started_with);
        value.filter(|value| !value.is_empty())
    }

    fn list(&self, name: &str) -> Vec<String> {
        let text = self.get(name).unwrap_or_default();
        let parts = text.split(',').map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    fn time(&self, name: &str, usual: Duration) -> Result<Duration, String> {
        let Some(text) = self.get(name) else {
            return Ok(usual);
        };
        let ms = text.parse().map(Duration::from_millis);
        ms.map_err(|_| format!("{name} is {text:?}, and not a number of milliseconds"))
    }

    pub(super) fn settings(&self) -> Result<Settings, String> {
        let usual = Settings::default();
        let when_gone = match self.get("when_gone").as_deref() {
            None | Some("file") => OnLoss::File,
            Some("error") => OnLoss::Error,
            Some(other) => return Err(format!("when_gone is {other:?}; file and error can be")),
        };
        let trust = match ["certificate", "key", "authority"].map(|name| self.get(name)) {
            [Some(certificate), Some(key), Some(authority)] => {
                let paths = ClientPaths {
                    certificate: certificate.into(),
                    key: key.into(),
                    authority: authority.into(),
                };
                Some(ClientTrust::load(&paths).map_err(|e| e.to_string())?)
            }
            [None, None, None] => None,
            _ => return Err("certificate, key and authority go together".to_owned()),
        };
        let patience = self.time("patience_ms", usual.patience)?;
        if patience.is_zero() {
            return Err("patience_ms is 0: no server is so fast".to_owned());
        }
        Ok(Settings {
            recruiters: self.list("recruiters"),
            trust,
            client: self.get("client"),
            servers: self.list("servers"),
            when_gone,
            refraction: self.time("refraction_ms", usual.refraction)?,
            patience,
            renew_every: usual.renew_every,
        })
    }
}
