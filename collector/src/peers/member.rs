//! A collector of the group as the others see it: the answer to `GET /v1/collectors`, described in docs/collector.md.

use serde::{Deserialize, Serialize};
use std::iter::Sum;

/// Answer to `GET /v1/collectors`: the collectors of one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Present time by the answering collector's clock, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// True if every collector answers and is well.
    pub is_well: bool,
    /// Sums over the collectors that answer.
    pub totals: GroupTotals,
    /// The answering collector, and then its peers in the order of the configuration.
    pub collectors: Vec<GroupMember>,
}

impl Group {
    /// Sums up `collectors` at the time `time_ms`, in ms since 1970-01-01 UTC.
    pub(crate) fn new(time_ms: i64, collectors: Vec<GroupMember>) -> Self {
        Self {
            time_ms,
            is_well: collectors.iter().all(GroupMember::is_well),
            totals: GroupTotals::of(&collectors),
            collectors,
        }
    }
}

/// A collector of the group: its last answer, and whether it answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupMember {
    /// Address of the collector; absent for the answering collector.
    pub url: Option<String>,
    /// Time of the last answer, ms since 1970-01-01 UTC; absent before the first answer.
    pub answered_time_ms: Option<i64>,
    /// Start of the present failure to answer, ms since 1970-01-01 UTC; absent while the collector answers.
    pub failing_since_time_ms: Option<i64>,
    /// Reason why the collector does not answer; absent while it answers.
    pub failure: Option<String>,
    /// The last answer, which is old while the collector does not answer.
    pub overview: Option<CollectorOverview>,
}

impl GroupMember {
    /// Overview of the collector if it answers.
    #[must_use]
    pub fn present(&self) -> Option<&CollectorOverview> {
        self.overview.as_ref().filter(|_| self.failure.is_none())
    }

    /// Returns true unless the collector does not answer or has a fault. A collector that has just been asked for the
    /// first time counts as well.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.failure.is_none() && self.overview.as_ref().is_none_or(|o| o.faults.is_empty())
    }

    /// Name of the collector, or its address while the name is unknown.
    #[must_use]
    pub fn label(&self) -> &str {
        let name = self.overview.as_ref().and_then(|o| o.name.as_deref());
        name.or(self.url.as_deref()).unwrap_or("this collector")
    }
}

/// Figures of one collector, without its hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectorOverview {
    /// Name of the collector; absent if its configuration has none.
    pub name: Option<String>,
    /// Version of the collector.
    pub version: String,
    /// Start of the collector, ms since 1970-01-01 UTC.
    pub started_time_ms: i64,
    /// Texts of the collector's faults, except for peers that do not answer it.
    pub faults: Vec<String>,
    /// Median lag of the hosts that report, in ms.
    pub median_lag_ms: Option<i64>,
    /// Largest lag of a host that reports, in ms.
    pub max_lag_ms: Option<i64>,
    /// Free bytes on the journal's or the dataset's disk, whichever has less. Collectors may share the disk.
    pub disk_free_bytes: u64,
    /// Figures that may be added up over collectors.
    #[serde(flatten)]
    pub sums: GroupSums,
}

/// Figures that may be added up over the collectors of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupSums {
    /// Number of hosts.
    pub hosts_count: u64,
    /// Number of hosts not heard for longer than their sample intervals explain.
    pub hosts_silent_count: u64,
    /// Number of idle hosts, of those that report.
    pub hosts_idle_count: u64,
    /// Number of batches accepted in the last full minute.
    pub batches_per_minute: u64,
    /// Number of open connections.
    pub connections_count: u64,
    /// Rows of the collector's own files in the dataset.
    pub dataset_rows_count: u64,
    /// Bytes of the collector's own files in the dataset.
    pub dataset_bytes: u64,
    /// Physical memory of the hosts that report.
    pub physical_bytes: u64,
    /// Available memory of the hosts that report.
    pub available_bytes: u64,
    /// Harvestable memory of the hosts that report.
    pub harvestable_bytes: u64,
    /// Memory that the hosts that report may lend now.
    pub quota_bytes: u64,
}

impl Sum for GroupSums {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            hosts_count: a.hosts_count.saturating_add(b.hosts_count),
            hosts_silent_count: a.hosts_silent_count.saturating_add(b.hosts_silent_count),
            hosts_idle_count: a.hosts_idle_count.saturating_add(b.hosts_idle_count),
            batches_per_minute: a.batches_per_minute.saturating_add(b.batches_per_minute),
            connections_count: a.connections_count.saturating_add(b.connections_count),
            dataset_rows_count: a.dataset_rows_count.saturating_add(b.dataset_rows_count),
            dataset_bytes: a.dataset_bytes.saturating_add(b.dataset_bytes),
            physical_bytes: a.physical_bytes.saturating_add(b.physical_bytes),
            available_bytes: a.available_bytes.saturating_add(b.available_bytes),
            harvestable_bytes: a.harvestable_bytes.saturating_add(b.harvestable_bytes),
            quota_bytes: a.quota_bytes.saturating_add(b.quota_bytes),
        })
    }
}

/// Sums over the collectors of a group that answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupTotals {
    /// Number of collectors in the group.
    pub collectors_count: u64,
    /// Number of collectors that answer.
    pub answering_count: u64,
    /// Sums over the collectors that answer.
    #[serde(flatten)]
    pub sums: GroupSums,
}

impl GroupTotals {
    /// Sums up the collectors that answer.
    #[must_use]
    pub fn of(collectors: &[GroupMember]) -> Self {
        let present = || collectors.iter().filter_map(GroupMember::present);
        Self {
            collectors_count: collectors.len() as u64,
            answering_count: present().count() as u64,
            sums: present().map(|overview| overview.sums).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(hosts_count: u64, failure: Option<&str>, faults: &[&str]) -> GroupMember {
        GroupMember {
            failure: failure.map(str::to_owned),
            overview: Some(CollectorOverview {
                faults: faults.iter().map(|&fault| fault.to_owned()).collect(),
                sums: GroupSums {
                    hosts_count,
                    ..GroupSums::default()
                },
                ..CollectorOverview::default()
            }),
            ..GroupMember::default()
        }
    }

    #[test]
    fn sums_leave_out_collectors_that_do_not_answer() {
        let unasked = GroupMember::default();
        let collectors = vec![member(3, None, &[]), member(5, None, &[]), unasked];
        let group = Group::new(0, collectors);
        assert!(group.is_well);
        let totals = group.totals;
        assert_eq!((totals.collectors_count, totals.answering_count), (3, 2));
        assert_eq!(totals.sums.hosts_count, 8);

        let dead = Group::new(
            0,
            vec![member(3, None, &[]), member(5, Some("no route"), &[])],
        );
        assert!(!dead.is_well);
        assert_eq!(dead.totals.sums.hosts_count, 3);
        assert!(!Group::new(0, vec![member(3, None, &["The disk is full."])]).is_well);
    }

    #[test]
    fn the_document_survives_serialization() {
        let group = Group::new(7, vec![member(3, Some("no route"), &["x"])]);
        let text = serde_json::to_string(&group).unwrap();
        assert!(text.contains("\"hosts_count\":3"), "{text}");
        assert_eq!(serde_json::from_str::<Group>(&text).unwrap(), group);
    }
}
