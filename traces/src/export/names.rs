//! Names of the files of exports, used for writing and for removing an earlier export.

/// Tables of the availability export; file names append the format's suffix.
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
/// Suffixes of a host's two profiles.
pub(super) const ENDINGS: [&str; 2] = ["state", "share"];
