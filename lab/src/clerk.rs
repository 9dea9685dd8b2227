//! The clerk of a lab. It has its own node, and borrows memory that the lab's hosts lend.

use super::address::{self, Node, RECRUITER_PORT};
use super::collector::{DAYS, text, write};
use super::daemons;
use super::error::{LabError, Result, file};
use super::state::PKI;
use super::state::State;
use gleaner_paging::ask;
use gleaner_paging::device::run::DeviceStatus;
use gleaner_trust::{Authority, Role};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Name of the clerk at the recruiter, and name of the clerk's certificate files.
const CLIENT: &str = "clerk";
/// Size of a lease: small, so that several hosts hold pages.
const LEASE_SIZE: &str = "64MiB";
/// Time that the clerk gets to start; it first allocates its copy on disk.
const TO_BEGIN: Duration = Duration::from_secs(120);
const TO_ANSWER: Duration = Duration::from_secs(5);

/// Creates the clerk's certificate and configuration.
pub(super) fn prepare(
    state: &State,
    node: &Node,
    authority: &Authority,
    size_bytes: u64,
) -> Result<()> {
    let pki = state.folder.join(PKI);
    let name = CLIENT.to_owned();
    let issued = authority.issue(&Role::Client { name }, DAYS)?;
    let [certificate, key] = ["crt", "key"].map(|end| pki.join(format!("{CLIENT}.{end}")));
    write(&certificate, &issued.certificate_pem)?;
    write(&key, &issued.key_pem)?;
    let folder = state.folder_of(&node.namespace);
    fs::create_dir_all(&folder).map_err(file("create", &folder))?;
    // The clerk's memory is not locked. Locking would take memory from the programs that are tried in the
    // lab, and nobody swaps to a lab's device.
    let config = format!(
        "size = \"{size_bytes}B\"
listen = {}
status_socket = {}
disk_folder = {}
recruiters = [\"https://{}:{RECRUITER_PORT}\"]
certificate = {}
key = {}
authority = {}
lease_size = \"{LEASE_SIZE}\"
lock_memory = false
",
        text(&socket(state))?,
        text(&folder.join("clerk-status.sock"))?,
        text(&folder.join("disk"))?,
        address::collector().address,
        text(&certificate)?,
        text(&key)?,
        text(&pki.join("authority.crt"))?,
    );
    write(&folder.join("clerk.toml"), &config)
}

/// Path of the socket at which the clerk serves its device.
pub(super) fn socket(state: &State) -> PathBuf {
    let folder = state.folder_of(&address::clerk().namespace);
    folder.join("clerk.sock")
}

/// Waits until the clerk serves its device. Fails if a daemon of the lab ends before.
pub(super) fn wait(state: &State) -> Result<()> {
    let begun = Instant::now();
    let socket = socket(state);
    while !socket.exists() {
        daemons::check(state)?;
        if begun.elapsed() > TO_BEGIN {
            return Err(LabError::Late {
                path: socket,
                logs: None,
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns true if the lab has a clerk.
pub(super) fn is_there(state: &State) -> bool {
    let namespace = address::clerk().namespace;
    let mut started = state.started.iter();
    started.any(|started| started.namespace == namespace)
}

/// Requests the clerk's status through its Unix socket, which is reachable from every network namespace.
pub(super) fn fetch_status(state: &State) -> Result<(DeviceStatus, serde_json::Value)> {
    let status = socket(state).with_file_name("clerk-status.sock");
    ask::device(&status, TO_ANSWER).map_err(|source| LabError::Silent {
        daemon: "the clerk",
        source,
    })
}
