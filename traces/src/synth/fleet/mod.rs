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
    /// Sentence about the basis of the parameters: measured, published or invented.
    pub basis: String,
    /// First day (UTC), unless the user requests another.
    pub start: String,
    /// Number of days, unless the user requests another.
    pub days: u32,
    /// Clusters of hosts; the first is the default.
    pub clusters: Vec<ClusterOf>,
    /// Operating system of the machines.
    pub system: System,
    /// The owners' working hours.
    pub owner: Owner,
    /// Names of programs.
    pub names: Names,
    /// Classes of hosts, with the model's parameters.
    #[serde(rename = "class")]
    pub classes: Vec<Class>,
}

/// Hosts of a cluster, in order. If more hosts are requested, the list repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterOf {
    /// Name of the cluster.
    pub name: String,
    /// Number of the cluster's first host. Hosts of equal number and class are equal in all clusters.
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

/// Operating system of the hosts, and intervals between restarts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Release as in `hosts.kernel_release`.
    pub kernel_release: String,
    /// Architecture as in `hosts.architecture`.
    pub architecture: String,
    /// Rule by which lotsfree, the kernel's reserve, follows from the memory size.
    pub lotsfree: Lotsfree,
    /// True if processes are in control groups.
    pub has_cgroups: bool,
    /// Mean number of days between two reboots of an unused host; absent: no reboots.
    pub reboot_days: Option<f64>,
    /// Mean number of days between two restarts of the agent; absent: no restarts.
    pub restart_days: Option<f64>,
}

/// Rule by which the kernel's reserve follows from the memory size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lotsfree {
    /// A 64th of the memory that remains after the kernel has booted (Acharya & Setia, section 2).
    Solaris,
    /// Sum of the zones' high watermarks (Documentation/admin-guide/sysctl/vm.rst).
    Linux,
}

/// The owner's week. Hours are UTC, the fleet's local time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Shares of the days on which the owner is present: of Mondays to Fridays, of Saturdays, and of Sundays.
    pub presence_shares: [f64; 3],
    /// Usual hour of arrival.
    pub arrives_hour: f64,
    /// Sd of the hour of arrival, over owners and days.
    pub arrives_spread_hours: f64,
    /// Hours from arrival to departure on a weekday.
    pub stays_hours: f64,
    /// Sd of the hours from arrival to departure.
    pub stays_spread_hours: f64,
    /// Mean minutes at the keyboard before a pause.
    pub stretch_minutes: f64,
    /// Mean minutes of a pause.
    pub pause_minutes: f64,
    /// True if the owner makes a longer pause at noon.
    pub has_lunch: bool,
}

/// Names of programs; the first of `daemons` is the display server.
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
    /// Number of NUMA nodes: 1 or 2.
    pub nodes: i64,
    /// Behaviour of the host when its owner leaves.
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
    /// Short jobs at any hour, such as cron's; they keep the host busy.
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
    /// The host sleeps soon after.
    Sleep,
    /// The host is turned off for the night.
    Off,
}

/// Kernel memory of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Mean kernel memory over hosts and time, lotsfree included, in MiB.
    pub mib: f64,
    /// Share of kernel memory that is taken at boot.
    pub static_share: f64,
    /// Sd of the means of the individual hosts, as a share of the class's mean.
    pub between_hosts: f64,
    /// Sd over time of one host, as a share of its mean.
    pub within_host: f64,
    /// Growth per day since boot, as a share of the host's mean.
    pub growth_per_day: f64,
}

/// Cache of files in use. Files come into use in a fixed order of popularity: a host that uses more files
/// also uses the popular ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Mean cache while the host is busy, in MiB.
    pub mib: f64,
    /// Sd of the logarithm of the cache, from one busy time to the next.
    pub sigma: f64,
    /// Sd of the means of the individual hosts, as a share of the class's mean.
    pub between_hosts: f64,
    /// Part that is always in use, as a share of the mean.
    pub always_share: f64,
    /// Number of changes of the files in use per hour, while the owner is present.
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
    /// Sd of the means of the individual hosts, as a share of the class's mean.
    pub between_hosts: f64,
}

/// Programs that the owner opens and closes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// Number of programs that the owner opens per hour at the keyboard.
    pub per_hour: f64,
    /// Mean memory of a program, in MiB.
    pub mib: f64,
    /// Sd of the logarithm of a program's memory.
    pub sigma: f64,
    /// Mean hours until a program is closed.
    pub hours: f64,
    /// Sd, over the owners, of the logarithm of the number of programs.
    pub between_hosts: f64,
    /// Share of the owner's time at the keyboard during which a program is active.
    pub active_share: f64,
    /// Mean minutes between two changes of a program's activity.
    pub active_change_minutes: f64,
    /// Share of the programs that are active while the owner is away.
    pub active_away_share: f64,
}

/// A kind of job that starts at random times and ends by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Number of starts per hour: while the owner is present, and while the owner is absent.
    pub per_hour: [f64; 2],
    /// Share of the hosts on which such jobs run at all.
    pub hosts_share: f64,
    /// Sd, over those hosts, of the logarithm of the rate.
    pub between_hosts: f64,
    /// Mean memory of a job, in MiB.
    pub mib: f64,
    /// Sd of the logarithm of a job's memory.
    pub sigma: f64,
    /// Share of the jobs that use as much memory as the host has.
    pub all_memory_share: f64,
    /// Mean duration of a job in minutes.
    pub minutes: f64,
    /// Number of CPUs that a job keeps busy.
    pub load: f64,
}

/// Program that runs while the owner is away, such as a screen saver or work left running. It starts some
/// time after the owner leaves, ends when the owner returns, and causes little load.
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
    /// Mean memory of the program, in MiB.
    pub mib: f64,
    /// Sd of the logarithm of the program's memory.
    pub sigma: f64,
}

impl Fleet {
    /// Parses and checks a fleet.
    ///
    /// # Errors
    /// [`SynthError::Fleet`] with the line and the fault.
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

    /// The cluster called `name`; `None`: the first.
    ///
    /// # Errors
    /// [`SynthError::Fleet`] if there is no such cluster.
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

    /// Index of the class called `name`.
    pub(super) fn class(&self, name: &str) -> Option<usize> {
        self.classes.iter().position(|class| class.name == name)
    }
}

impl ClusterOf {
    /// Number of hosts in the list, before it repeats.
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
