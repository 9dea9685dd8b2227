//! The device's state as JSON.

use crate::device::engine::{ServerState, Totals};
use crate::device::frames::PAGE;
use crate::device::servers::LeaseState;
use crate::nbd::wire::{Request, SimpleReply};
use serde::{Deserialize, Serialize};

/// State of the whole device. Fields that a clerk of another version may lack have defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Size of the device, in bytes.
    pub size_bytes: u64,
    /// Bytes of pages that are not empty.
    pub stored_bytes: u64,
    /// Number of connected clients.
    #[serde(default)]
    pub clients_count: usize,
    /// True if there is a copy on disk.
    pub has_disk: bool,
    /// True if each page at servers has its full number of copies, all of them reachable.
    #[serde(default)]
    pub has_all_copies: bool,
    /// Bytes of copies at servers that are not connected, usable again only after reconnecting.
    #[serde(default)]
    pub unreachable_bytes: u64,
    /// Counters of pages since the start.
    pub pages: Totals,
    /// State of the servers.
    pub servers: Vec<ServerStatus>,
}

/// State of one lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Address or name of the host.
    #[serde(default)]
    pub host: String,
    /// Id of the lease; absent for a server given by hand.
    pub lease: Option<String>,
    /// `up`, `down`, `draining` or `gone`.
    pub standing: String,
    /// Size of the lease, in bytes.
    pub size_bytes: u64,
    /// Bytes of slots in use.
    pub used_bytes: u64,
    /// Pages read from this server.
    #[serde(default)]
    pub reads: u64,
    /// Pages written to this server.
    #[serde(default)]
    pub writes: u64,
    /// Requests that this server answered with an error.
    #[serde(default)]
    pub failed: u64,
    /// Pages that came back altered.
    #[serde(default)]
    pub wrong: u64,
    /// Bytes sent and received besides pages: requests and answers, without TLS and TCP.
    #[serde(default)]
    pub control_bytes: u64,
    /// Number of times that the connection ended.
    #[serde(default)]
    pub disconnects: u64,
    /// Present limit of requests in progress, adapted to the server's speed.
    #[serde(default)]
    pub window: u32,
    /// Mean time from a request to its answer, in microseconds; absent without requests.
    pub mean_us: Option<u64>,
}

impl DeviceStatus {
    /// Servers that are connected and not draining.
    pub fn up(&self) -> impl Iterator<Item = &ServerStatus> {
        self.servers.iter().filter(|server| server.standing == "up")
    }
}

impl ServerStatus {
    pub(super) fn new(state: &ServerState, lease: Option<&str>) -> Self {
        let counters = state.counters;
        let answered = counters.reads + counters.writes + counters.failed + counters.wrong;
        Self {
            host: state.host.clone(),
            lease: lease.map(str::to_owned),
            standing: match state.standing {
                LeaseState::Up => "up",
                LeaseState::Down => "down",
                LeaseState::Draining => "draining",
                LeaseState::Gone => "gone",
            }
            .to_owned(),
            size_bytes: u64::from(state.slots) * PAGE as u64,
            used_bytes: u64::from(state.used) * PAGE as u64,
            reads: counters.reads,
            writes: counters.writes,
            failed: counters.failed,
            wrong: counters.wrong,
            control_bytes: answered * (Request::BYTES + SimpleReply::BYTES) as u64,
            disconnects: counters.disconnects,
            window: state.window,
            mean_us: counters.total_us.checked_div(answered),
        }
    }
}
