//! Sources that have the Linux kernel's own figures (sysstat, PCP, node_exporter); the same rules apply to all.
//!
//! These sources have no processes, so that the paper's categories cannot be computed. Available memory is
//! the kernel's own estimate. Static kernel memory is absent. Physical memory is MemTotal, the kernel's
//! count.

use super::{ColumnOrigin, Reading};
use gleaner_policy::accounting;
use gleaner_policy::quota::Limits;
use gleaner_schemas::column::Value;

/// Meaning of available memory in these sources, for messages.
pub const AVAILABLE: &str = "Available memory is MemAvailable, the kernel's own estimate: memory of idle processes \
    counts as in use, file cache in use as available.";

/// Columns that each of these sources fills; the columns of the individual source come after them.
pub const COLUMNS: [&str; 3] = [
    "mem_total_bytes",
    "mem_available_bytes",
    "harvestable_bytes",
];

/// Source of `samples.available_bytes`.
pub const AVAILABLE_BYTES: ColumnOrigin<'static> = ColumnOrigin::new(
    "samples",
    "available_bytes",
    "MemAvailable, the kernel's own estimate: memory of idle processes counts as in use, file cache in use as available",
);
/// Source of `samples.harvestable_bytes`.
pub const HARVESTABLE_BYTES: ColumnOrigin<'static> = ColumnOrigin::new(
    "samples",
    "harvestable_bytes",
    "MemAvailable less the headroom, 15 % of MemTotal",
);
/// Source of `hosts.headroom_share`.
pub const HEADROOM_SHARE: ColumnOrigin<'static> = ColumnOrigin::new(
    "hosts",
    "headroom_share",
    "0.15: the headroom that `harvestable_bytes` leaves",
);

/// Reading made of the two memory figures; CPUs and boot time are unknown.
#[must_use]
pub fn reading(time_ms: i64, mem_total_bytes: i64, mem_available_bytes: i64) -> Reading {
    Reading {
        time_ms,
        physical_bytes: mem_total_bytes,
        available_bytes: mem_available_bytes,
        ..Reading::default()
    }
}

/// Values for [`COLUMNS`], in their order.
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

/// Fact for [`HEADROOM_SHARE`], to pass to [`super::Readings::host_is`].
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
        assert!(HEADROOM_SHARE.origin.starts_with("0.15"));
        assert!(HARVESTABLE_BYTES.origin.contains("15 %"));
    }
}
