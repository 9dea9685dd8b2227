//! State of a device, for people and programs.

use crate::device::engine::{ServerState, Totals};
use crate::device::frames::PAGE;
use crate::device::servers::LeaseState;
use crate::nbd::wire::{Request, SimpleReply};
use serde::{Deserialize, Serialize};

/// The whole. Fields that a clerk of another version may lack have defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Size of the device, in bytes.
    pub size_bytes: u64,
    /// Bytes in use.
    pub stored_bytes: u64,
    /// Clients that are connected.
    #[serde(default)]
    pub clients_count: usize,
    /// True if there is a copy on disk.
    pub has_disk: bool,
    /// True if each page at servers has its full number of copies, all of them reachable.
    #[serde(default)]
    pub has_all_copies: bool,
    /// Copies of pages at servers that are not connected: they count again only when the server is back.
    #[serde(default)]
    pub unreachable_bytes: u64,
    /// Pages, as counted since the start.
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
    /// The lease; absent: it was given by hand.
    pub lease: Option<String>,
    /// `up`, `down`, `draining` or `gone`.
    pub standing: String,
    /// Size of the lease, in bytes.
    pub size_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Pages read from there.
    #[serde(default)]
    pub reads: u64,
    /// Pages written to there.
    #[serde(default)]
    pub writes: u64,
    /// Requests that it answered with an error.
    #[serde(default)]
    pub failed: u64,
    /// Pages that came back as other bytes than were sent.
    #[serde(default)]
    pub wrong: u64,
    /// Bytes of requests and answers sent and received besides pages. TLS and TCP add their own.
    #[serde(default)]
    pub control_bytes: u64,
    /// Times its connection ended.
    #[serde(default)]
    pub disconnects: u64,
    /// Requests that may be under way at once, as it has turned out.
    #[serde(default)]
    pub window: u32,
    /// From a request's sending to its answer, on average; absent: there was none.
    pub mean_us: Option<u64>,
}

impl DeviceStatus {
    /// Servers that take and give pages.
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
