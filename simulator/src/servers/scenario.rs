//! Settings of simulated clients and servers.

use super::PAGE_BYTES;
use super::owners::{RoomChange, room_changes};
use super::recorded::Recorded;
use crate::hosts::Timeline;
use crate::swept::ScenarioError;
use gleaner_policy::choice::Choice;
use gleaner_policy::shutdown::{CopyPace, Forwarding, Shutdown};
use gleaner_schemas::curve::Curve;
use serde::{Deserialize, Serialize};

/// Most clients, and most servers.
const MOST_HOSTS: u64 = 1_000;
/// Most pages of all clients together.
const MOST_PAGES: u64 = 1 << 23;
/// Most pages that fit into one server.
const MOST_ROOM: u64 = 1 << 28;
/// Most changes of all servers' room.
const MOST_CHANGES: u64 = 1_000_000;
/// Most operations of all clients together.
const MOST_OPERATIONS: f64 = 5e7;

/// Treatment of pages that find no server with room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FullServers {
    /// The page goes to its client's disk; pages at servers stay there.
    ClientDisk,
    /// Each client has an equal part of the servers' room, in which the page used last replaces its least
    /// recently used one.
    FixedParts,
    /// The page used last replaces the least recently used one of all clients (section 3.3).
    SharedLru,
}

/// Settings of a simulation: clients that page to servers, and owners of the servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Policy of a server whose owner returns.
    pub shutdown: Shutdown,
    /// Way in which clients learn of a page's new place.
    pub forwarding: Forwarding,
    /// Time at which servers send second copies.
    pub copy_pace: CopyPace,
    /// Choice of the server for a new page.
    pub choice: Choice,
    /// Treatment of pages if all servers are full.
    pub full: FullServers,
    /// True if the client's disk has a copy of every page, written behind the answer.
    pub has_disk_copy: bool,
    /// Number of clients. Each has one job, which computes and waits for page-ins.
    pub clients: u32,
    /// Pages of the clients that are not in their own memory, in turn.
    pub client_pages: Vec<u32>,
    /// Page-ins per second of computing.
    pub page_ins_per_s: f64,
    /// Page-outs per second of computing; nothing waits for them.
    pub page_outs_per_s: f64,
    /// Share of the page-outs that free a page and store a new one.
    pub new_page_share: f64,
    /// Share of each client's pages that are hot.
    pub hot_page_share: f64,
    /// Share of the references that go to hot pages.
    pub hot_reference_share: f64,
    /// Number of servers.
    pub servers: u32,
    /// Pages that fit into a server.
    pub server_pages: u32,
    /// Time of a server's CPU for a page, in us, of the servers in turn.
    pub server_us: Vec<u32>,
    /// Rate of each host's link, in each direction.
    pub link_mbit_per_s: f64,
    /// Latency of a message, in us.
    pub latency_us: u32,
    /// Rate of a disk for pages in sequence.
    pub disk_mb_per_s: f64,
    /// Time to read one page from a disk, in us.
    pub disk_read_us: u32,
    /// Pages that a server moves at one time.
    pub burst_pages: u32,
    /// Time to return a dropped page to the owner, in ns. **Assumed**.
    pub drop_ns: u32,
    /// Changes of servers' room by their owners. Pages are stored in the room that servers have at time 0.
    pub owners: Vec<RoomChange>,
    /// Rules by which a dataset's hosts have room.
    pub recorded: Recorded,
    /// Share of a program's footprint that is local memory, if a curve has the clients' page-ins.
    pub local_share: f64,
    /// Time after which clients stop, in ms. Moves that are in progress are completed.
    pub length_ms: u32,
}

impl Default for Scenario {
    /// Felten and Zahorjan's clients (Table 1: 2 page-ins and 20 page-outs a second of computing on a VAX
    /// 3500), on a network and disks of today.
    fn default() -> Self {
        Self {
            shutdown: Shutdown::AtOnce,
            forwarding: Forwarding::Callback,
            copy_pace: CopyPace::WhenIdle,
            choice: Choice::Spread,
            full: FullServers::ClientDisk,
            has_disk_copy: false,
            clients: 8,
            client_pages: vec![8_192],
            page_ins_per_s: 2.0,
            page_outs_per_s: 20.0,
            new_page_share: 0.0,
            hot_page_share: 1.0,
            hot_reference_share: 1.0,
            servers: 4,
            server_pages: 65_536,
            server_us: vec![20],
            link_mbit_per_s: 1_000.0,
            latency_us: 20,
            disk_mb_per_s: 100.0,
            disk_read_us: 8_300,
            burst_pages: 64,
            drop_ns: 100,
            owners: Vec::new(),
            recorded: Recorded::default(),
            local_share: 0.5,
            length_ms: 60_000,
        }
    }
}

impl Scenario {
    /// The same with the page-ins and page-outs of a program's curve, if the program has `local_share` of its
    /// footprint as local memory.
    #[must_use]
    pub fn with_curve(self, curve: &Curve, local_share: f64) -> Self {
        let memory_pages = curve.footprint_pages as f64 * local_share;
        let at_size = |pages: u64| pages as f64 >= memory_pages;
        let points = &curve.faults;
        let point = points.iter().find(|point| at_size(point.memory_pages));
        let point = point.copied().unwrap_or_default();
        let per_s = |count: u64| count as f64 / curve.native_cpu_s.max(1e-9);
        Self {
            page_ins_per_s: per_s(point.reuse_count),
            page_outs_per_s: per_s(point.write_backs_count),
            client_pages: vec![(curve.footprint_pages as f64 - memory_pages).max(1.0) as u32],
            ..self
        }
    }

    /// The same with recorded hosts as servers, and their changes of room as far as they begin in time.
    #[must_use]
    pub(super) fn on_hosts(self, hosts: &[Timeline]) -> Self {
        let mut owners = room_changes(hosts, self.recorded.mode, self.server_pages);
        owners.retain(|change| change.at_ms <= u64::from(self.length_ms));
        Self {
            servers: u32::try_from(hosts.len()).unwrap_or(u32::MAX),
            owners,
            ..self
        }
    }

    /// Number of a client's pages; clients count from 0.
    pub(super) fn pages_of(&self, client: usize) -> u32 {
        let at = client % self.client_pages.len().max(1);
        self.client_pages.get(at).copied().unwrap_or(1)
    }

    /// CPU time of a server for a page.
    pub(super) fn server_ns(&self, server: usize) -> u64 {
        let at = server % self.server_us.len().max(1);
        u64::from(self.server_us.get(at).copied().unwrap_or(0)) * 1_000
    }

    /// Time that a page occupies a link.
    pub(super) fn link_ns(&self) -> u64 {
        (PAGE_BYTES as f64 * 8_000.0 / self.link_mbit_per_s) as u64
    }

    /// Time to read or write a page of a sequence on a disk.
    pub(super) fn disk_ns(&self) -> u64 {
        (PAGE_BYTES as f64 * 1_000.0 / self.disk_mb_per_s) as u64
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`ScenarioError::Setting`] names the first setting outside its range.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let of = u64::from;
        whole("clients", of(self.clients), 1, MOST_HOSTS)?;
        whole(
            "client_pages",
            self.client_pages.len() as u64,
            1,
            MOST_HOSTS,
        )?;
        for pages in &self.client_pages {
            whole("client_pages", of(*pages), 1, MOST_PAGES)?;
        }
        let pages = (0..self.clients as usize).map(|client| of(self.pages_of(client)));
        whole("client_pages", pages.sum(), 1, MOST_PAGES)?;
        real("page_ins_per_s", self.page_ins_per_s, 1e-3, 1e6)?;
        real("page_outs_per_s", self.page_outs_per_s, 0.0, 1e6)?;
        real("new_page_share", self.new_page_share, 0.0, 1.0)?;
        real("hot_page_share", self.hot_page_share, 0.0, 1.0)?;
        real("hot_reference_share", self.hot_reference_share, 0.0, 1.0)?;
        whole("servers", of(self.servers), 1, MOST_HOSTS)?;
        whole("server_pages", of(self.server_pages), 0, MOST_ROOM)?;
        whole("server_us", self.server_us.len() as u64, 1, MOST_HOSTS)?;
        for server_us in &self.server_us {
            whole("server_us", of(*server_us), 0, 10_000_000)?;
        }
        real("link_mbit_per_s", self.link_mbit_per_s, 1e-3, 1e7)?;
        whole("latency_us", of(self.latency_us), 0, 10_000_000)?;
        real("disk_mb_per_s", self.disk_mb_per_s, 1e-3, 1e6)?;
        whole("disk_read_us", of(self.disk_read_us), 0, 10_000_000)?;
        whole("burst_pages", of(self.burst_pages), 1, 1 << 20)?;
        whole("drop_ns", of(self.drop_ns), 0, 1_000_000)?;
        whole("length_ms", of(self.length_ms), 1, 7 * 86_400_000)?;
        let rate = self.page_ins_per_s + self.page_outs_per_s;
        let operations = rate * f64::from(self.clients) * f64::from(self.length_ms) / 1_000.0;
        real("length_ms", operations, 0.0, MOST_OPERATIONS)?;
        real(
            "recorded.idle_after_s",
            self.recorded.idle_after_s,
            0.0,
            86_400.0,
        )?;
        let headroom_share = self.recorded.headroom_share;
        real("recorded.headroom_share", headroom_share, 0.0, 1.0)?;
        real("local_share", self.local_share, 0.0, 1.0)?;
        whole("owners", self.owners.len() as u64, 0, MOST_CHANGES)?;
        for change in &self.owners {
            whole("owners", of(change.server), 0, of(self.servers) - 1)?;
            whole("owners", of(change.pages), 0, MOST_ROOM)?;
            whole("owners", change.at_ms, 0, of(self.length_ms))?;
        }
        if self.full != FullServers::ClientDisk && !self.has_disk_copy {
            return Err(ScenarioError::Setting {
                key: "has_disk_copy",
                value: "false".to_owned(),
                reason: "must be true if pages replace each other: only clean pages can be dropped"
                    .to_owned(),
            });
        }
        Ok(())
    }
}

fn whole(key: &'static str, value: u64, low: u64, high: u64) -> Result<(), ScenarioError> {
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(outside(key, value.to_string(), &low, &high)),
    }
}

fn real(key: &'static str, value: f64, low: f64, high: f64) -> Result<(), ScenarioError> {
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(outside(key, value.to_string(), &low, &high)),
    }
}

fn outside(
    key: &'static str,
    value: String,
    low: &dyn std::fmt::Display,
    high: &dyn std::fmt::Display,
) -> ScenarioError {
    ScenarioError::Setting {
        key,
        value,
        reason: format!("must be {low} to {high}"),
    }
}
