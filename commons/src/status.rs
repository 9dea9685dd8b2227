//! Status socket of a mount or of the service, which answers root and the program's own user.

use crate::peer::{ClusterCounters, PeerStatus};
use crate::store::StoreCounters;
use gleaner_paging::nbd::listen_at;
use gleaner_schemas::units::{Bytes, thousands};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Timeout of receiving or sending an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// State of a mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountStatus {
    /// Hash of the catalog's file, in hexadecimal digits.
    pub catalog: String,
    /// Path of the catalog.
    pub catalog_path: String,
    /// Folder where it is mounted.
    pub mount_point: String,
    /// Address of the source.
    pub source: String,
    /// True if the kernel caches what was read.
    pub kernel_cache: bool,
    /// Number of files in the catalog.
    pub files_count: u64,
    /// Bytes of all files in the catalog.
    pub files_bytes: u64,
    /// Figures since the mount began.
    #[serde(flatten)]
    pub counters: StoreCounters,
}

/// A folder that the service shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceMount {
    /// Folder where it is mounted.
    pub mount_point: String,
    /// Path of the catalog.
    pub catalog_path: String,
    /// Hash of the catalog's file, in hexadecimal digits.
    pub catalog: String,
    /// Address of the source.
    pub source: String,
    /// Number of files in the catalog.
    pub files_count: u64,
    /// Bytes of all files in the catalog.
    pub files_bytes: u64,
}

/// State of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Name of the commons.
    pub commons: String,
    /// Id of this host; absent without /etc/machine-id.
    pub host_id: Option<String>,
    /// Name of the rule by which hosts share blocks.
    pub policy: String,
    /// Folders that the service shows.
    pub mounts: Vec<ServiceMount>,
    /// Figures of this host's reads since the start.
    #[serde(flatten)]
    pub counters: StoreCounters,
    /// Figures of the exchange with other members; absent if blocks are not shared.
    pub cluster: Option<ClusterCounters>,
    /// States of the other members.
    pub peers: Vec<PeerStatus>,
}

/// Answer of a status socket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Status {
    /// Answer of `gleaner-commons run`.
    Service(Box<ServiceStatus>),
    /// Answer of `gleaner-commons mount`.
    Mount(Box<MountStatus>),
}

impl Status {
    /// Status as text.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Service(status) => status.text(),
            Self::Mount(status) => status.text(),
        }
    }
}

/// Answers every connection at `path` with one JSON document, in a thread of its own.
///
/// # Errors
/// The socket cannot be made, or another mount uses it.
pub fn listen<S: Serialize>(
    path: &Path,
    current: impl Fn() -> S + Send + 'static,
) -> io::Result<()> {
    let listener = listen_at(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    let answer = move || {
        for stream in listener.incoming().flatten() {
            let _ = tell(stream, &current()); // the client may have hung up
        }
    };
    let thread = thread::Builder::new().name("status".to_owned());
    thread.spawn(answer)?;
    Ok(())
}

fn tell(mut stream: UnixStream, status: &impl Serialize) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    serde_json::to_writer(&mut stream, status)?;
    stream.write_all(b"\n")
}

/// Returns the answer of the mount or service whose socket is `path`: parsed, and as the whole document, since
/// a program of another version may report more.
///
/// # Errors
/// No program listens there, or it does not answer.
pub fn ask(path: &Path) -> io::Result<(Status, String)> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok((serde_json::from_str(&answer)?, answer))
}

impl MountStatus {
    /// Status as text.
    #[must_use]
    pub fn text(&self) -> String {
        let counters = &self.counters;
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "mount    {} from {}", self.mount_point, self.source);
        let _ = writeln!(text, "catalog  {}#{}", self.catalog_path, self.catalog);
        let _ = writeln!(
            text,
            "files    {}, {}; the kernel {} them",
            thousands(self.files_count),
            Bytes::from(self.files_bytes),
            if self.kernel_cache {
                "caches"
            } else {
                "does not cache"
            },
        );
        write_counters(&mut text, counters);
        text
    }
}

fn write_counters(text: &mut String, counters: &StoreCounters) {
    let bytes = |count: u64| Bytes::from(count);
    let _ = writeln!(
        text,
        "memory   {} of {}, {} blocks",
        bytes(counters.local_used_bytes),
        bytes(counters.local_size_bytes),
        thousands(counters.frames_count),
    );
    let _ = writeln!(
        text,
        "reads    {} ({}) from memory, {} ({}) from other hosts, {} ({}) from the source",
        thousands(counters.local_reads_count),
        bytes(counters.local_read_bytes),
        thousands(counters.cluster_reads_count),
        bytes(counters.cluster_read_bytes),
        thousands(counters.source_reads_count),
        bytes(counters.source_read_bytes),
    );
    let _ = writeln!(
        text,
        "fetched  {} blocks ({}), {} of them ahead of readers",
        thousands(counters.fetched_blocks_count),
        bytes(counters.fetched_bytes),
        thousands(counters.ahead_blocks_count),
    );
    let _ = writeln!(
        text,
        "failed   {} differed, {} missing, {} unavailable, {} timed out",
        thousands(counters.differing_blocks_count),
        thousands(counters.missing_blocks_count),
        thousands(counters.unavailable_blocks_count),
        thousands(counters.timed_out_count),
    );
    if !counters.hit_ages.is_empty() {
        text.push_str("\nAGE AT HIT  HITS\n");
    }
    for class in &counters.hit_ages {
        let age = if class.from_ms == 0 {
            "below 1 s".to_owned()
        } else {
            format!("from {} s", class.from_ms as f64 / 1000.0)
        };
        let _ = writeln!(text, "{age:<11} {}", thousands(class.hits_count));
    }
}

impl ServiceStatus {
    /// Status as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let host = self.host_id.as_deref().unwrap_or("without an id");
        let _ = writeln!(
            text,
            "commons  {}, host {host}, policy {}",
            self.commons, self.policy
        );
        for mount in &self.mounts {
            let _ = writeln!(text, "mount    {} from {}", mount.mount_point, mount.source);
            let _ = writeln!(text, "catalog  {}#{}", mount.catalog_path, mount.catalog);
            let _ = writeln!(
                text,
                "files    {}, {}",
                thousands(mount.files_count),
                Bytes::from(mount.files_bytes)
            );
        }
        write_counters(&mut text, &self.counters);
        if let Some(cluster) = &self.cluster {
            let hold = &cluster.hold;
            let _ = writeln!(
                text,
                "\nheld     {} of {} for others, {} blocks",
                Bytes::from(hold.hold_used_bytes),
                Bytes::from(hold.hold_size_bytes),
                thousands(hold.hold_frames_count),
            );
            let _ = writeln!(
                text,
                "given    {} blocks to their homes, {} had no room, {} not given",
                thousands(cluster.puts_count),
                thousands(cluster.puts_without_room_count),
                thousands(cluster.puts_dropped_count),
            );
        }
        for peer in &self.peers {
            let state = match (&peer.fault, peer.is_asked) {
                (None, true) => "answers".to_owned(),
                (None, false) => "is not asked".to_owned(),
                (Some(fault), true) => format!("{fault}; is asked again"),
                (Some(fault), false) => format!("{fault}; is not asked for a minute"),
            };
            let _ = writeln!(
                text,
                "host     {} at {}: {state} ({} answers, {} failures, {} wrong)",
                peer.host_id,
                peer.address,
                thousands(peer.answers_count),
                thousands(peer.failures_count),
                thousands(peer.wrong_count),
            );
        }
        text
    }
}
