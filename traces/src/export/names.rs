//! Names of the files of exports, used for writing and for removing an earlier export.

/// Tables of the availability export, each with the ending of its format.
pub(super) const AVAILABILITY: [&str; 2] = ["periods", "samples"];

/// Files in the format of the Failure Trace Archive.
pub(super) const FTA: [&str; 4] = [
    "event_trace.tab",
    "node.tab",
    "component.tab",
    "platform.tab",
];

/// File of SimGrid's platform.
pub(super) const PLATFORM: &str = "platform.xml";
/// Folder of the hosts' profiles.
pub(super) const PROFILES: &str = "profiles";
/// Endings of a host's profiles.
pub(super) const ENDINGS: [&str; 2] = ["state", "share"];
