//! Series of the hosts, written directly as text, since a scrape has a hundred thousand of them.

use crate::hosts::Memory;
use crate::http::status::HostStatus;
use gleaner_hosts::derived::Figures;
use gleaner_schemas::live::HostState;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt;

/// A series with one sample for each host that has a value.
struct Series {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    value: fn(&HostStatus) -> Option<f64>,
}

const SERIES: [Series; 9] = [
    Series {
        name: "last_received_timestamp",
        help: "Arrival time of the host's last batch, since 1970-01-01 UTC",
        unit: Some(Unit::Seconds),
        value: |host| host.known.last_received_time_ms.map(seconds),
    },
    Series {
        name: "lag",
        help: "Age of the host's newest record when its last batch arrived",
        unit: Some(Unit::Seconds),
        value: |host| host.lag_ms.map(seconds),
    },
    Series {
        name: "clock_skew",
        help: "The host's clock less the collector's",
        unit: Some(Unit::Seconds),
        value: |host| host.known.skew_ms.map(seconds),
    },
    Series {
        name: "physical",
        help: "Physical memory of a host that is not silent",
        unit: Some(Unit::Bytes),
        value: |host| Some(live(host)?.figures.physical_bytes as f64),
    },
    Series {
        name: "harvestable",
        help: "Available memory that Linux can provide without paging out the owner's pages",
        unit: Some(Unit::Bytes),
        value: |host| live(host)?.harvestable_bytes.map(|bytes| bytes as f64),
    },
    Series {
        name: "quota",
        help: "Memory that the host lends at most: 0 unless it is idle",
        unit: Some(Unit::Bytes),
        value: |host| live(host)?.quota_bytes.map(|bytes| bytes as f64),
    },
    Series {
        name: "owner_idle",
        help: "Time since the owner was last active",
        unit: Some(Unit::Seconds),
        value: |host| live(host)?.owner_idle_ms.map(seconds),
    },
    Series {
        name: "idle",
        help: "1 while the host is idle, 0 while it is in use; absent if that is unknown",
        unit: None,
        value: |host| match live(host)?.state {
            HostState::Idle { .. } => Some(1.0),
            HostState::InUse { .. } | HostState::Loaded => Some(0.0),
            HostState::Unknown => None,
        },
    },
    Series {
        name: "memory_pressure_ratio",
        help: "Share of the last interval in which some task waited for memory",
        unit: None,
        value: |host| live(host)?.memory_pressure_share,
    },
];

type SizeOf = fn(&Figures) -> Option<u64>;

/// Categories that add up to the physical memory.
const CATEGORIES: [(&str, SizeOf); 5] = [
    ("kernel", |figures| {
        figures.dynamic_kernel_bytes?;
        Some(figures.kernel_bytes())
    }),
    ("process", |figures| figures.process_bytes),
    ("file_cache", |figures| figures.file_cache_bytes),
    ("guest", |figures| figures.guest_bytes),
    ("available", |figures| figures.available_bytes),
];

/// Memory of a host that reports. The last figures of a silent host are not exported.
fn live(host: &HostStatus) -> Option<&Memory> {
    host.known.memory.as_ref().filter(|_| !host.is_silent)
}

/// Hosts that have series of their own.
pub(super) struct HostSeries(pub(super) Vec<HostStatus>);

impl fmt::Debug for HostSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "series of {} hosts", self.0.len())
    }
}

impl Collector for HostSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let gauge = MetricType::Gauge;
        for series in &SERIES {
            let mut family =
                encoder.encode_descriptor(series.name, series.help, series.unit.as_ref(), gauge)?;
            for host in &self.0 {
                if let Some(value) = (series.value)(host) {
                    ConstGauge::new(value).encode(family.encode_family(&of(host))?)?;
                }
            }
        }
        let help = "Physical memory of a host that is not silent, by category";
        let mut family = encoder.encode_descriptor("memory", help, Some(&Unit::Bytes), gauge)?;
        for host in &self.0 {
            let Some(memory) = live(host) else { continue };
            for (category, bytes) in CATEGORIES {
                if let Some(bytes) = bytes(&memory.figures) {
                    let [id, name] = of(host);
                    let labels = [id, name, ("category", category)];
                    ConstGauge::new(bytes as f64).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        let help = "1, with the version of the host's agent";
        let mut family = encoder.encode_descriptor("info", help, None, gauge)?;
        for host in &self.0 {
            let [id, name] = of(host);
            let version = host.known.agent_version.as_deref().unwrap_or_default();
            let labels = [id, name, ("agent_version", version)];
            ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn of(host: &HostStatus) -> [(&'static str, &str); 2] {
    let name = host.known.host_name.as_deref().unwrap_or_default();
    [("host_id", &host.host_id), ("host_name", name)]
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}
