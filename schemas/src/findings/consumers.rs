//! Processes and files that use the memory, by name.

use super::finding::{Finding, HostFields};
use serde::{Deserialize, Serialize};

/// A process name and the resources that its processes used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TopProcess {
    /// Id of the host.
    pub host_id: String,
    /// Name of the program (comm).
    pub name: String,
    /// Samples in which a process of that name was active.
    pub active_samples_count: i64,
    /// Proportional memory of all processes of the name together; mean over those samples.
    pub mean_bytes: f64,
    /// Maximum of the proportional memory over those samples.
    pub max_bytes: i64,
    /// CPU time that the processes used.
    pub cpu_s: f64,
}

impl Finding for TopProcess {
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["name"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// A file and its pages in the page cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TopFile {
    /// Id of the host.
    pub host_id: String,
    /// Path where the host's owner allows it, else the file's id.
    pub file: String,
    /// Samples in which the file was in use.
    pub samples_count: i64,
    /// Mean cached bytes over those samples.
    pub mean_cached_bytes: f64,
    /// Maximum of the cached bytes over those samples.
    pub max_cached_bytes: i64,
}

impl Finding for TopFile {
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["file"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}
