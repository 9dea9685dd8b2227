//! All settings of a simulation. The defaults are the study's. Defaults that the study does not state were
//! chosen before any run, and are marked **Assumed**.

use crate::applications::Application;
use crate::event::{DAY, SECOND};
use crate::hosts::{Foresight, Reading};
use gleaner_policy::eviction::Policy;
use gleaner_policy::forecast::table::Table;
use gleaner_policy::idle::IdleRule;
use gleaner_policy::lending::Settings;
use gleaner_policy::placement::Placement;
use gleaner_policy::quota::{Limits, Mode};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Settings of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Program that the client runs.
    pub application: Application,
    /// Compute time before each request; absent: the program's own compute time.
    pub think_ns: Option<u64>,
    /// Time for which the program is run repeatedly: a week (section 4).
    pub length_ns: u64,
    /// Pause between a run's end and the next run's begin (only in Figure 10).
    pub pause_ns: u64,
    /// Number of counted reference runs, both without remote memory and with unlimited remote memory. One
    /// more run comes first and is not counted.
    pub reference_runs: u32,
    /// The client's workstation.
    pub client: Client,
    /// Network between client and hosts.
    pub network: Network,
    /// Hosts whose memory is lent, and how much they lend.
    pub recruitment: Recruitment,
    /// The client's use of remote memory.
    pub remote: Remote,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seed: 1,
            application: Application::Dmine,
            think_ns: None,
            length_ns: 7 * DAY,
            pause_ns: 0,
            reference_runs: 3,
            client: Client::default(),
            network: Network::default(),
            recruitment: Recruitment::default(),
            remote: Remote::default(),
        }
    }
}

/// Overlap between a program's processes: some compute while others wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The program's processes run concurrently, one per CPU. Within a process nothing overlaps: Dodo's
    /// interface is synchronous (section 3.1). **Assumed**: the study simulated parallel programs on four
    /// processors and does not describe their I/O.
    #[default]
    Processes,
    /// Processes run one after the other, without any overlap.
    Serial,
}

/// Workstation on which the program runs (section 3.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Client {
    /// Number of CPUs, which limits the number of concurrent processes.
    pub cpus: u32,
    /// Size of the client's own cache, which evicts the least recently used block first. **Assumed**: all of
    /// its 256 MB.
    pub local_cache_bytes: u64,
    /// Overlap between the program's processes.
    pub overlap: Overlap,
    /// The client's disks.
    pub disks: Disks,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            cpus: 4,
            local_cache_bytes: 256 << 20,
            overlap: Overlap::Processes,
            disks: Disks::default(),
        }
    }
}

/// Disks on one string (section 3.3: Seagate Cheetah 9LP, Ultra-SCSI). The PCI bus (133 MB/s) never limits a
/// string of 40 MB/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disks {
    /// Number of disks; files are distributed over them in turn.
    pub count: u32,
    /// Mean seek time; seek times have a truncated exponential distribution.
    pub seek_mean_ns: u64,
    /// Maximum seek time, at which the distribution is truncated.
    pub seek_max_ns: u64,
    /// Time of a full rotation (10,000 rpm); a request waits for half of one on average.
    pub rotation_ns: u64,
    /// Bandwidth of a disk's media.
    pub media_bytes_per_s: u64,
    /// Bandwidth of the string, which all disks share.
    pub string_bytes_per_s: u64,
    /// Number of sequential streams per disk. A request that continues one of these streams needs no seek and
    /// no rotation, since the disk's own cache reads ahead. **Assumed**: one stream per traced processor. The
    /// study compares dmine's requests of 128 KB with the disks' full bandwidth (section 4). Without streams
    /// the disks could not have reached it.
    pub sequential_streams: u32,
}

impl Default for Disks {
    fn default() -> Self {
        Self {
            count: 2,
            seek_mean_ns: 5_800_000,
            seek_max_ns: 15_700_000,
            rotation_ns: 6_000_000,
            media_bytes_per_s: 18_000_000,
            string_bytes_per_s: 40_000_000,
            sequential_streams: 8,
        }
    }
}

/// The network as programs see it (section 3.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Bytes per second; messages are sent one after the other. Absent: transfers take no time.
    pub bytes_per_s: Option<u64>,
    /// Latency of each message, request or answer, in addition to the time for its bytes.
    pub latency_ns: u64,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            bytes_per_s: Some(70_000_000),
            latency_ns: 7_400,
        }
    }
}

impl Network {
    /// Network that takes no time, as in the study's ideal.
    pub(super) const INFINITE: Self = Self {
        bytes_per_s: None,
        latency_ns: 0,
    };
}

/// Hosts whose memory is lent, and how much they lend (section 3.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recruitment {
    /// Mode, which decides how much is lent.
    pub mode: Mode,
    /// Idle time after which a host lends.
    pub idle_after_s: f64,
    /// 5-minute load at or above which a host counts as in use.
    pub load_limit: f64,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Share of physical memory that hosts in use do not lend; only spare mode lends there.
    pub spare_headroom_share: f64,
    /// Period in s; a rising quota is at most the minimum of this period. A falling quota falls immediately.
    /// The study's daemons follow each sample, so the default is 0. The live memory server uses 180.
    pub rise_after_s: f64,
    /// Maximum bytes reclaimed per step when a quota falls below the lent memory. Absent: all in one step, as
    /// in the study. The live memory server uses 64 MiB.
    pub shrink_step_bytes: Option<u64>,
    /// Time in s between two such steps. The live memory server uses 0.1.
    pub shrink_every_s: f64,
    /// True if hosts have no owners, so that they are always idle.
    pub is_always_idle: bool,
    /// Time in s for which lent memory must be expected to stay available, at most a day. With 0, hosts lend
    /// all that the mode allows.
    pub expected_for_s: f64,
    /// Minimum probability that the memory stays available for this time.
    pub confidence: f64,
    /// Time zone of the fleet, for the hours of the week in forecasts.
    pub time_zone: ZoneName,
    /// Bytes that an owner's disk reads at once when a memory context is paged in again, for the estimate of
    /// owners' delay. Linux reads 8 pages around each missed page (`vm.page-cluster` is 3:
    /// Documentation/admin-guide/sysctl/vm.rst). The disk is like the client's.
    pub page_in_bytes: u64,
}

impl Default for Recruitment {
    fn default() -> Self {
        let (idle, limits) = (IdleRule::default(), Limits::default());
        Self {
            mode: Mode::Paper,
            idle_after_s: idle.idle_after_ms as f64 / 1000.0,
            load_limit: idle.load_limit,
            headroom_share: limits.headroom_share,
            spare_headroom_share: limits.spare_headroom_share,
            rise_after_s: 0.0,
            shrink_step_bytes: None,
            shrink_every_s: Settings::default().shrink_every_ms as f64 / 1000.0,
            is_always_idle: false,
            expected_for_s: 0.0,
            confidence: 0.9,
            time_zone: ZoneName(TimeZone::UTC),
            page_in_bytes: 8 * 4096,
        }
    }
}

impl Recruitment {
    /// Idle rule of the hosts.
    #[must_use]
    pub fn idle_rule(&self) -> IdleRule {
        IdleRule {
            idle_after_ms: (self.idle_after_s * 1000.0) as i64,
            load_limit: self.load_limit,
        }
    }

    /// Settings of each host's `Lender`. A lease lasts until its client releases it: Dodo's leases have no
    /// term, and a running client would renew its leases in time. Each region is a lease, so the number of
    /// leases is not limited.
    #[must_use]
    pub fn lending(&self) -> Settings {
        Settings {
            // The headroom comes with every sample, as it does live, so the limits have none.
            limits: Limits {
                mode: self.mode,
                headroom_share: 0.0,
                spare_headroom_share: self.spare_headroom_share,
                cap_bytes: None,
            },
            rise_after_ms: (self.rise_after_s * 1000.0) as i64,
            shrink_step_bytes: self.shrink_step_bytes.unwrap_or(u64::MAX),
            shrink_every_ms: (self.shrink_every_s * 1000.0) as i64,
            max_term_ms: i64::MAX,
            most_leases_count: usize::MAX,
            ..Settings::default()
        }
    }

    /// Returns true if hosts lend only memory that is expected to stay available.
    #[must_use]
    pub fn wants_forecast(&self) -> bool {
        self.expected_for_s > 0.0
    }

    /// Foresight for reading hosts, from a table learnt on earlier time; `None` if no forecast is needed.
    #[must_use]
    pub fn foresight(&self, table: &Arc<Table>) -> Option<Foresight> {
        self.wants_forecast().then(|| Foresight {
            table: Arc::clone(table),
            duration_ms: (self.expected_for_s * 1000.0).ceil() as i64,
            confidence: self.confidence,
            time_zone: self.time_zone.0.clone(),
        })
    }

    /// Settings for reading hosts for this recruitment. If a forecast is needed, the caller must set
    /// [`Reading::foresight`].
    #[must_use]
    pub fn reading(&self, from_ms: i64, until_ms: i64) -> Reading {
        Reading {
            idle: self.idle_rule(),
            limits: Limits {
                mode: self.mode,
                headroom_share: self.headroom_share,
                spare_headroom_share: self.spare_headroom_share,
                cap_bytes: None,
            },
            is_always_idle: self.is_always_idle,
            ..Reading::between(from_ms, until_ms)
        }
    }
}

/// Treatment of a host's regions when one of them is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostRegion {
    /// "the library drops all the descriptors for memory regions stored on that node" (section 3.1). The
    /// daemon is informed and frees the client's remaining regions.
    #[default]
    DropHost,
    /// Only the lost region is dropped.
    DropRegion,
}

/// The client's use of remote memory (sections 3.1 and 3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Remote {
    /// Size of a region. A region is stored whole on one host and at first read whole from disk. It has at
    /// least the size of the program's largest request. **Assumed**: 4 MiB. The study states no size. Regions
    /// are "data-objects" that are created, and opened like a file by stdio, one descriptor each (sections
    /// 3.1, 3.2). The study's smallest "memory region" has 4 MB (Table 4). The only data object whose size is
    /// stated, lu's slab of 64 columns, has 4 MB as well.
    pub region_bytes: u64,
    /// Policy that places regions on hosts.
    pub placement: PlacementName,
    /// Policy that chooses the regions to evict when there is no room.
    pub retention: RetentionName,
    /// Refraction period after a refusal (section 4: 1 minute).
    pub refraction_ms: i64,
    /// Regions that the client drops when it finds one lost.
    pub lost_region: LostRegion,
}

impl Default for Remote {
    fn default() -> Self {
        Self {
            region_bytes: 4 << 20,
            placement: PlacementName(Placement::Random),
            retention: RetentionName(Policy::FirstIn),
            refraction_ms: SECOND as i64 * 60 / 1_000_000,
            lost_region: LostRegion::DropHost,
        }
    }
}

/// Placement policy of `policy`, written by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlacementName(pub Placement);

impl TryFrom<String> for PlacementName {
    type Error = gleaner_policy::placement::UnknownPlacement;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse().map(Self)
    }
}

impl From<PlacementName> for String {
    fn from(name: PlacementName) -> Self {
        name.0.name().to_owned()
    }
}

/// Time zone, written by its IANA name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ZoneName(pub TimeZone);

impl TryFrom<String> for ZoneName {
    type Error = jiff::Error;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        match name.as_str() {
            // The zone UTC works even without a time zone database.
            "UTC" => Ok(Self(TimeZone::UTC)),
            name => TimeZone::get(name).map(Self),
        }
    }
}

impl From<ZoneName> for String {
    fn from(name: ZoneName) -> Self {
        name.to_string()
    }
}

impl std::fmt::Display for ZoneName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.0.iana_name().unwrap_or("UTC"))
    }
}

/// Eviction policy of `policy`, written by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RetentionName(pub Policy);

impl TryFrom<String> for RetentionName {
    type Error = gleaner_policy::eviction::UnknownPolicy;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse().map(Self)
    }
}

impl From<RetentionName> for String {
    fn from(name: RetentionName) -> Self {
        name.0.name().to_owned()
    }
}
