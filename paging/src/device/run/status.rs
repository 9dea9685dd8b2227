//! The device's state as JSON.

use crate::device::engine::{DeviceCounters, ServerState};
use crate::device::frames::PAGE;
use crate::device::servers::LeaseState;
use crate::nbd::wire::{Request, SimpleReply};
use gleaner_policy::choice::Choice;
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
    /// Choice of the server for a new page.
    #[serde(default)]
    pub choice: Choice,
    /// Fixed limit of requests in progress to each server; 0: adapted to the server's speed.
    #[serde(default)]
    pub fixed_window_requests: u32,
    /// Counters since the start.
    pub counters: DeviceCounters,
    /// State of the servers.
    pub servers: Vec<ServerStatus>,
}

/// State of one lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Address or name of the host.
    #[serde(default)]
    pub host: String,
    /// Id of the lease; absent for a server that the user named.
    pub lease: Option<String>,
    /// `up`, `down`, `draining` or `gone`.
    pub state: String,
    /// Size of the lease, in bytes.
    pub size_bytes: u64,
    /// Bytes of slots in use.
    pub used_bytes: u64,
    /// Pages read from this server.
    #[serde(default)]
    pub reads_count: u64,
    /// Pages written to this server.
    #[serde(default)]
    pub writes_count: u64,
    /// Requests that this server answered with an error.
    #[serde(default)]
    pub failed_requests_count: u64,
    /// Pages that came back altered.
    #[serde(default)]
    pub corrupt_pages_count: u64,
    /// Bytes sent and received besides pages: requests and answers, without TLS and TCP.
    #[serde(default)]
    pub control_bytes: u64,
    /// Number of times that the connection ended.
    #[serde(default)]
    pub disconnects_count: u64,
    /// Present limit of requests in progress, adapted to the server's speed unless it is fixed.
    #[serde(default)]
    pub window_requests: u32,
    /// Mean time from a request to its answer, in microseconds; absent without requests.
    pub mean_latency_us: Option<u64>,
}

impl DeviceStatus {
    /// Servers that are connected and not draining.
    pub fn up(&self) -> impl Iterator<Item = &ServerStatus> {
        self.servers.iter().filter(|server| server.state == "up")
    }
}

impl ServerStatus {
    pub(super) fn new(server: &ServerState, lease: Option<&str>) -> Self {
        let counters = server.counters;
        let answers_count = counters.reads_count
            + counters.writes_count
            + counters.failed_requests_count
            + counters.corrupt_pages_count;
        Self {
            host: server.host.clone(),
            lease: lease.map(str::to_owned),
            state: match server.state {
                LeaseState::Up => "up",
                LeaseState::Down => "down",
                LeaseState::Draining => "draining",
                LeaseState::Gone => "gone",
            }
            .to_owned(),
            size_bytes: u64::from(server.slots) * PAGE as u64,
            used_bytes: u64::from(server.used) * PAGE as u64,
            reads_count: counters.reads_count,
            writes_count: counters.writes_count,
            failed_requests_count: counters.failed_requests_count,
            corrupt_pages_count: counters.corrupt_pages_count,
            control_bytes: answers_count * (Request::BYTES + SimpleReply::BYTES) as u64,
            disconnects_count: counters.disconnects_count,
            window_requests: server.window_requests,
            mean_latency_us: counters.total_latency_us.checked_div(answers_count),
        }
    }
}
