//! A fleet: classes of hosts with the model's parameters, read from TOML.
//!
//! Sizes are in MiB and rates in events per hour. "Sd" is the standard deviation. Presets are such files
//! (`presets/`); users may write others.

mod check;

use super::SynthError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Classes of hosts, and the hosts of each cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// Name as in `hosts.source`.
    pub name: String,
    /// Basis of the parameters, in a sentence.
    pub basis: String,
    /// First day (UTC), unless another is requested.
    pub start: String,
    /// Number of days, unless another is requested.
    pub days: u32,
    /// Clusters of hosts; the first is the default.
    pub clusters: Vec<ClusterOf>,
    /// Operating system of the machines.
    pub system: System,
    /// The owners' working hours.
    pub owner: Owner,
    /// Names of programs.
    pub names: Names,
    /// Kinds of host.
    #[serde(rename = "class")]
    pub classes: Vec<Class>,
}

/// Hosts of a cluster, in order; the list repeats if more are requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterOf {
    /// Name of the cluster.
    pub name: String,
    /// Number of the first host: hosts with equal number and class are equal in all clusters.
    #[serde(default)]
    pub first_host: usize,
    /// Classes, with the number of hosts of each.
    pub hosts: Vec<Share>,
}

/// A class, and its number of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Name of the class.
    pub class: String,
    /// Number of hosts.
    pub count: usize,
}

/// Operating system, and intervals between restarts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Release as in `hosts.kernel_release`.
    pub kernel_release: String,
    /// Architecture as in `hosts.architecture`.
    pub architecture: String,
    /// Rule that computes lotsfree, the kernel's reserve, from memory.
    pub lotsfree: Lotsfree,
    /// True if processes are in control groups.
    pub has_cgroups: bool,
    /// Days between two reboots of an unused host; absent: no reboots.
    pub reboot_days: Option<f64>,
    /// Days between two restarts of the agent; absent: no restarts.
    pub restart_days: Option<f64>,
}

/// Rule for the kernel's reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lotsfree {
    /// A 64th of the memory that the kernel leaves at boot (Acharya & Setia, section 2).
    Solaris,
    /// The zones' high watermarks (Documentation/admin-guide/sysctl/vm.rst).
    Linux,
}

/// The owner's week. Hours are UTC, the fleet's local time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Shares of days on which the owner is present: of Mondays to Fridays, Saturdays, Sundays.
    pub presence_shares: [f64; 3],
    /// Usual hour of arrival.
    pub arrives_hour: f64,
    /// Sd of the hour of arrival, among owners and days.
    pub arrives_spread_hours: f64,
    /// Hours from arrival to departure on a weekday.
    pub stays_hours: f64,
    /// Sd of the hours of stay.
    pub stays_spread_hours: f64,
    /// Mean minutes at the keyboard before a pause.
    pub stretch_minutes: f64,
    /// Mean minutes of a pause.
    pub pause_minutes: f64,
    /// True for a longer pause at noon.
    pub has_lunch: bool,
}

/// Program names; the first daemon is the display server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// Programs that are always active.
    pub daemons: Vec<String>,
    /// Programs that the owner opens.
    pub programs: Vec<String>,
    /// Short commands that the owner runs.
    pub commands: Vec<String>,
    /// Short jobs that run without the owner.
    pub background: Vec<String>,
    /// Programs that use much memory.
    pub hogs: Vec<String>,
    /// Programs that run while the owner is away.
    pub away: Vec<String>,
}

/// A kind of host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Name of the class.
    pub name: String,
    /// Physical memory, in MiB.
    pub memory_mib: i64,
    /// Swap space, in MiB.
    pub swap_mib: i64,
    /// Number of logical CPUs.
    pub cpus: i64,
    /// NUMA nodes: 1 or 2.
    pub nodes: i64,
    /// Behaviour when its owner leaves.
    pub habit: Habit,
    /// Kernel memory: static, dynamic and lotsfree.
    pub kernel: Kernel,
    /// Cache of files in use.
    pub files: Files,
    /// Memory of the programs that are always active.
    pub daemons: Daemons,
    /// Programs that the owner opens and closes.
    pub programs: Programs,
    /// Short commands that the owner runs.
    pub commands: Job,
    /// Short jobs at any hour, like cron's, which keep the host busy.
    pub background: Job,
    /// Jobs that use much memory, on some hosts.
    pub hogs: Job,
    /// Programs that run while the owner is away.
    pub away: AbsenceProgram,
}

/// Behaviour of a host when its owner leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Habit {
    /// The host stays on.
    On,
    /// The host soon sleeps.
    Sleep,
    /// The host is turned off for the night.
    Off,
}

/// Kernel memory of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Mean over hosts and time, lotsfree included, in MiB.
    pub mib: f64,
    /// Share of kernel memory that is taken at boot.
    pub static_share: f64,
    /// Sd of the hosts' means, as a share of the mean.
    pub between_hosts: f64,
    /// Sd of one host over time, as a share of its mean.
    pub within_host: f64,
    /// Daily growth since boot, as a share of the host's mean.
    pub growth_per_day: f64,
}

/// Cache of files in use. Files come into use in a fixed order of popularity: a host that uses more files
/// uses the popular ones too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Mean while the host is busy, in MiB.
    pub mib: f64,
    /// Sd of the logarithm from one busy time to the next.
    pub sigma: f64,
    /// Sd of the hosts' means, as a share of the mean.
    pub between_hosts: f64,
    /// Part that is always in use, as a share of the mean.
    pub always_share: f64,
    /// Changes per hour while the owner is present.
    pub changes_per_hour: f64,
    /// Number of files that may come into use.
    pub count: usize,
    /// Number of log files, which are written in every interval.
    pub logs_count: usize,
}

/// Programs that are always active.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Daemons {
    /// Mean memory of all daemons together, in MiB.
    pub mib: f64,
    /// Sd of the hosts' means, as a share of the mean.
    pub between_hosts: f64,
}

/// Programs that the owner opens and closes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// Programs opened per hour at the keyboard.
    pub per_hour: f64,
    /// Mean memory of a program, in MiB.
    pub mib: f64,
    /// Sd of the logarithm of a program's memory.
    pub sigma: f64,
    /// Mean hours until a program is closed.
    pub hours: f64,
    /// Sd, among owners, of the logarithm of the number of programs.
    pub between_hosts: f64,
    /// Share of the time at the keyboard in which a program is active.
    pub active_share: f64,
    /// Minutes between two changes of a program's activity.
    pub active_change_minutes: f64,
    /// Share of the programs that are active while the owner is away.
    pub active_away_share: f64,
}

/// A kind of job that starts at random times and ends by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Starts per hour: while the owner is present, and while absent.
    pub per_hour: [f64; 2],
    /// Share of the hosts that have such jobs at all.
    pub hosts_share: f64,
    /// Sd of the logarithm of the rate among those hosts.
    pub between_hosts: f64,
    /// Mean memory of a job, in MiB.
    pub mib: f64,
    /// Sd of the logarithm of a job's memory.
    pub sigma: f64,
    /// Share of the jobs that take all memory.
    pub all_memory_share: f64,
    /// Mean duration of a job in minutes.
    pub minutes: f64,
    /// CPUs that a job keeps busy.
    pub load: f64,
}

/// Program that runs, without much load, from some time after the owner leaves until the owner returns: a
/// screen saver, work left running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AbsenceProgram {
    /// Share of the owner's absences of at least `least_minutes` in which the program runs.
    pub share: f64,
    /// Minimum length of such an absence, in minutes.
    pub least_minutes: f64,
    /// Mean time from the owner's departure to the program's start, in minutes.
    pub after_minutes: f64,
    /// Share of the hosts that have such a program.
    pub hosts_share: f64,
    /// Mean memory, in MiB.
    pub mib: f64,
    /// Sd of the logarithm of the memory.
    pub sigma: f64,
}

impl Fleet {
    /// Parses and checks a fleet.
    ///
    /// # Errors
    /// [`SynthError::Fleet`] with line and fault.
    pub fn parse(text: &str, name: &str) -> Result<Self, SynthError> {
        let refused = |detail: String| SynthError::Fleet {
            name: name.to_owned(),
            detail,
        };
        let fleet: Self = toml::from_str(text).map_err(|e| refused(e.to_string()))?;
        fleet.check().map_err(refused)?;
        Ok(fleet)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`SynthError::Fleet`], also if the file cannot be read.
    pub fn open(path: &Path) -> Result<Self, SynthError> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &name),
            Err(e) => Err(SynthError::Fleet {
                name,
                detail: e.to_string(),
            }),
        }
    }

    /// The cluster of this name, or the first.
    ///
    /// # Errors
    /// [`SynthError::Fleet`] if there is none.
    pub fn cluster(&self, name: Option<&str>) -> Result<&ClusterOf, SynthError> {
        let mut clusters = self.clusters.iter();
        let found = clusters.find(|c| name.is_none_or(|name| c.name == name));
        found.ok_or_else(|| SynthError::Fleet {
            name: self.name.clone(),
            detail: format!("it has no cluster {:?}", name.unwrap_or_default()),
        })
    }

    /// Start of the fleet's first day, ms since 1970-01-01 UTC.
    ///
    /// # Errors
    /// [`SynthError::Fleet`] if the first day is not a date.
    pub fn start_ms(&self) -> Result<i64, SynthError> {
        let day: Result<jiff::civil::Date, _> = self.start.parse();
        let start = day.and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC));
        match start {
            Ok(start) => Ok(start.timestamp().as_millisecond()),
            Err(e) => Err(SynthError::Fleet {
                name: self.name.clone(),
                detail: format!("start is {:?}: {e}", self.start),
            }),
        }
    }

    /// Index of the class of this name.
    pub(super) fn class(&self, name: &str) -> Option<usize> {
        self.classes.iter().position(|class| class.name == name)
    }
}

impl ClusterOf {
    /// Number of hosts before the list repeats.
    #[must_use]
    pub fn hosts_count(&self) -> usize {
        self.hosts.iter().map(|share| share.count).sum()
    }

    /// The class of the host numbered `index`.
    #[must_use]
    pub fn class_of(&self, index: usize) -> &str {
        let mut left = index % self.hosts_count().max(1);
        for share in &self.hosts {
            if left < share.count {
                return &share.class;
            }
            left -= share.count;
        }
        ""
    }
}
