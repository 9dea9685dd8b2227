//! Part of a service's status about recruiters, epochs and leases.

use crate::global::EpochStatus;
use crate::hold::PoolCounters;
use crate::link::LinkStatus;
use gleaner_schemas::units::{Bytes, thousands};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Links with recruiters, epoch and leases of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GlobalStatus {
    /// States of the links, in the order of the configuration.
    pub links: Vec<LinkStatus>,
    /// Epoch in force.
    pub epoch: EpochStatus,
    /// Leases of this host's own memory that hold blocks.
    #[serde(flatten)]
    pub pool: PoolCounters,
    /// Quota of this host by the last weights; absent before the first, or without a memory server.
    pub quota_bytes: Option<u64>,
    /// Blocks held for other hosts.
    pub global_blocks_count: u64,
    /// Blocks that were lost with their leases, or found no place, since the start.
    pub lost_blocks_count: u64,
}

impl GlobalStatus {
    /// Adds lines for people.
    pub(super) fn write(&self, text: &mut String) {
        // Writing to a String cannot fail.
        for link in &self.links {
            let state = match (&link.fault, link.is_linked) {
                (_, true) => "linked",
                (Some(fault), false) => fault.as_str(),
                (None, false) => "not linked yet",
            };
            let _ = writeln!(text, "link     {}: {state}", link.recruiter);
        }
        let epoch = &self.epoch;
        let ages = match epoch.min_age_ms {
            None => "of any age are put".to_owned(),
            Some(0) => "are dropped".to_owned(),
            Some(ms) => format!("younger than {} s are put", ms as f64 / 1000.0),
        };
        let _ = writeln!(
            text,
            "epoch    {}, own weight {}; evicted blocks {ages} to {} hosts",
            epoch.number,
            thousands(epoch.own_weight),
            thousands(epoch.targets.len()),
        );
        let _ = writeln!(
            text,
            "leases   {} of this host's memory, {} of {} used; {} blocks for others, {} lost",
            thousands(self.pool.leases_count),
            Bytes::from(self.pool.leased_used_bytes),
            Bytes::from(self.pool.leased_bytes),
            thousands(self.global_blocks_count),
            thousands(self.lost_blocks_count),
        );
    }
}
