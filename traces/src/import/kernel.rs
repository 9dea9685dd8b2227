//! Sources that hold the Linux kernel's own figures, as sysstat, PCP and node_exporter do: one rule for all of them.
//!
//! They know no processes, so that the paper's categories cannot be had: available is the kernel's own estimate, the
//! static kernel is absent, and physical memory is what the kernel counts, MemTotal.

use super::{Filled, Reading};
use gleaner_policy::accounting;
use gleaner_policy::quota::Limits;
use gleaner_schemas::column::Value;

/// What available means there, for people.
pub const AVAILABLE: &str = "Available memory is MemAvailable, the kernel's own estimate: memory of idle processes \
    counts as in use, file cache in use as available.";

/// Columns of every such source, each from what its name says: to be followed by what else the source has.
pub const COLUMNS: [&str; 3] = [
    "mem_total_bytes",
    "mem_available_bytes",
    "harvestable_bytes",
];

/// How `samples.available_bytes` is made.
pub const AVAILABLE_BYTES: Filled<'static> = Filled::new(
    "samples",
    "available_bytes",
    "MemAvailable, the kernel's own estimate: memory of idle processes counts as in use, file cache in use as available",
);
/// How `samples.harvestable_bytes` is made.
pub const HARVESTABLE_BYTES: Filled<'static> = Filled::new(
    "samples",
    "harvestable_bytes",
    "MemAvailable less the headroom, 15 % of MemTotal",
);
/// What `hosts.headroom_share` is.
pub const HEADROOM_SHARE: Filled<'static> = Filled::new(
    "hosts",
    "headroom_share",
    "0.15: the headroom that `harvestable_bytes` leaves",
);

/// The reading that follows from the two figures, CPUs and start not said.
#[must_use]
pub fn reading(time_ms: i64, mem_total_bytes: i64, mem_available_bytes: i64) -> Reading {
    Reading {
        time_ms,
        physical_bytes: mem_total_bytes,
        available_bytes: mem_available_bytes,
        ..Reading::default()
    }
}

/// The values of [`COLUMNS`].
#[must_use]
pub fn values(mem_total_bytes: i64, mem_available_bytes: i64) -> [Option<f64>; COLUMNS.len()] {
    let harvestable_bytes = accounting::harvestable_bytes(
        mem_available_bytes.max(0).unsigned_abs(),
        mem_total_bytes.max(0).unsigned_abs(),
        headroom_share(),
    );
    [
        Some(mem_total_bytes as f64),
        Some(mem_available_bytes as f64),
        Some(harvestable_bytes as f64),
    ]
}

/// The fact that goes with [`HEADROOM_SHARE`], for [`super::Readings::host_is`].
#[must_use]
pub fn headroom() -> (&'static str, Value) {
    ("headroom_share", Value::Real(headroom_share()))
}

fn headroom_share() -> f64 {
    Limits::default().headroom_share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_headroom_is_what_is_left() {
        assert_eq!(values(1000, 600), [1000.0, 600.0, 450.0].map(Some));
        assert_eq!(values(1000, 100)[2], Some(0.0));
        assert_eq!(headroom(), ("headroom_share", Value::Real(0.15)));
        assert!(HEADROOM_SHARE.from.starts_with("0.15"));
        assert!(HARVESTABLE_BYTES.from.contains("15 %"));
    }
}
