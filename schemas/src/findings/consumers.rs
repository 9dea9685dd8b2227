//! Users of the memory, by name.

use super::finding::{Finding, HostFields};
use serde::{Deserialize, Serialize};

/// A process name and what it used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TopProcess {
    /// Host id.
    pub host: String,
    /// Name.
    pub name: String,
    /// Samples in which a process of that name was active.
    pub active_samples_count: i64,
    /// Mean over those samples of its proportional memory, all processes of the name together.
    pub mean_bytes: f64,
    /// Largest.
    pub max_bytes: i64,
    /// CPU time used.
    pub cpu_s: f64,
}

impl Finding for TopProcess {
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["name"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// A file and the page cache it held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TopFile {
    /// Host id.
    pub host: String,
    /// Path where the host's owner allows it, else the file's id.
    pub file: String,
    /// Samples in which it was in use.
    pub samples_count: i64,
    /// Mean cached bytes over those samples.
    pub mean_cached_bytes: f64,
    /// Most cached bytes.
    pub max_cached_bytes: i64,
}

impl Finding for TopFile {
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["file"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}
