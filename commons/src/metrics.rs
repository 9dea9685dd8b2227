//! Metrics of the service, as OpenMetrics text (docs/commons.md lists names and units).

use crate::status::{GlobalStatus, ServiceStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// Media type of the OpenMetrics text format.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics of a service in this state.
///
/// # Errors
/// The text cannot be written.
pub fn text(status: ServiceStatus) -> Result<String, fmt::Error> {
    // Services of several commonses on one host can be told apart in one Prometheus.
    let label = ("commons".into(), status.commons.clone().into());
    let mut registry = Registry::with_labels([label].into_iter());
    let of_commons = registry.sub_registry_with_prefix("gleaner_commons");
    let version = vec![("version", env!("CARGO_PKG_VERSION"))];
    of_commons.register("build", "The service's version", Info::new(version));
    of_commons.register_collector(Box::new(ServiceSeries(status)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct ServiceSeries(ServiceStatus);

impl Collector for ServiceSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = &self.0;
        let reads = &status.counters;
        let counter = MetricType::Counter;
        let mut family = encoder.encode_descriptor("reads", "Blocks read", None, counter)?;
        for (from, count) in [
            ("local", reads.local_reads_count),
            ("cluster", reads.cluster_reads_count),
            ("source", reads.source_reads_count),
        ] {
            ConstCounter::new(count).encode(family.encode_family(&[("from", from)])?)?;
        }
        let help = "Bytes of blocks that readers used";
        let mut family = encoder.encode_descriptor("bytes", help, None, counter)?;
        for (from, count) in [
            ("local", reads.local_read_bytes),
            ("cluster", reads.cluster_read_bytes),
            ("source", reads.source_read_bytes),
        ] {
            ConstCounter::new(count).encode(family.encode_family(&[("from", from)])?)?;
        }
        let help = "Reads and fetches that failed";
        let mut family = encoder.encode_descriptor("failures", help, None, counter)?;
        for (reason, count) in [
            ("differing", reads.differing_blocks_count),
            ("missing", reads.missing_blocks_count),
            ("unavailable", reads.unavailable_blocks_count),
            ("timed_out", reads.timed_out_count),
        ] {
            ConstCounter::new(count).encode(family.encode_family(&[("reason", reason)])?)?;
        }
        let cluster = status.cluster.unwrap_or_default();
        let help = "Blocks given to their homes";
        let mut family = encoder.encode_descriptor("puts", help, None, counter)?;
        for (result, count) in [
            ("stored", cluster.puts_count),
            ("no_room", cluster.puts_without_room_count),
            ("dropped", cluster.puts_dropped_count),
        ] {
            ConstCounter::new(count).encode(family.encode_family(&[("result", result)])?)?;
        }
        let gauge = MetricType::Gauge;
        let mut family = encoder.encode_descriptor("frames", "Blocks in memory", None, gauge)?;
        for (kind, count) in [
            ("local", reads.frames_count),
            ("held", cluster.hold.hold_frames_count),
        ] {
            ConstGauge::new(count as f64).encode(family.encode_family(&[("kind", kind)])?)?;
        }
        let help = "Blocks with a known holder in this host's part of the directory";
        let metric = encoder.encode_descriptor("directory_entries", help, None, gauge)?;
        ConstGauge::new(cluster.directory_entries_count as f64).encode(metric)?;
        let help = "Directory entries beyond the limit of their member";
        let metric = encoder.encode_descriptor("directory_refused", help, None, counter)?;
        ConstCounter::new(cluster.directory_refused_count).encode(metric)?;
        if let Some(global) = &status.global {
            encode_global(global, &mut encoder)?;
        }
        let help = "1 if the member is asked for blocks, else 0";
        let mut family = encoder.encode_descriptor("peer_asked", help, None, gauge)?;
        for peer in &status.peers {
            let labels = [("host_id", peer.host_id.as_str())];
            let value = ConstGauge::new(f64::from(u8::from(peer.is_asked)));
            value.encode(family.encode_family(&labels)?)?;
        }
        let help = "Wrong answers and blocks of a member";
        let mut family = encoder.encode_descriptor("peer_wrong", help, None, counter)?;
        for peer in &status.peers {
            let labels = [("host_id", peer.host_id.as_str())];
            ConstCounter::new(peer.wrong_count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn encode_global(global: &GlobalStatus, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let gauge = MetricType::Gauge;
    let help = "1 if the recruiter is linked, else 0";
    let mut family = encoder.encode_descriptor("linked", help, None, gauge)?;
    for link in &global.links {
        let labels = [("recruiter", link.recruiter.as_str())];
        let value = ConstGauge::new(f64::from(u8::from(link.is_linked)));
        value.encode(family.encode_family(&labels)?)?;
    }
    let epoch = &global.epoch;
    for (name, help, value) in [
        ("epoch", "Number of the epoch in force", epoch.number),
        ("weight", "Weight of this host, in blocks", epoch.own_weight),
        (
            "leased_bytes",
            "Leases of this host's memory for blocks",
            global.pool.leased_bytes,
        ),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, gauge)?;
        ConstGauge::new(value as f64).encode(metric)?;
    }
    if let Some(min_age_ms) = epoch.min_age_ms {
        let help = "Age from which evicted blocks are dropped";
        let seconds = Unit::Seconds;
        let metric = encoder.encode_descriptor("min_age", help, Some(&seconds), gauge)?;
        ConstGauge::new(min_age_ms as f64 / 1000.0).encode(metric)?;
    }
    let help = "Blocks lost with their leases";
    let metric = encoder.encode_descriptor("lost", help, None, MetricType::Counter)?;
    ConstCounter::new(global.lost_blocks_count).encode(metric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::EpochStatus;
    use crate::link::LinkStatus;
    use crate::peer::PeerStatus;
    use crate::store::StoreCounters;

    #[test]
    fn each_series_has_its_name_and_labels() {
        let status = ServiceStatus {
            commons: "tools".to_owned(),
            host_id: None,
            policy: "hash".to_owned(),
            mounts: Vec::new(),
            counters: StoreCounters {
                cluster_reads_count: 3,
                source_read_bytes: 5,
                ..StoreCounters::default()
            },
            cluster: None,
            global: Some(GlobalStatus {
                links: vec![LinkStatus {
                    recruiter: "https://r".to_owned(),
                    is_linked: true,
                    fault: None,
                }],
                epoch: EpochStatus {
                    number: 7,
                    min_age_ms: Some(72_500),
                    ..EpochStatus::default()
                },
                ..GlobalStatus::default()
            }),
            peers: vec![PeerStatus {
                host_id: "0a".to_owned(),
                is_asked: true,
                ..PeerStatus::default()
            }],
        };
        let text = text(status).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.contains("{commons=\"tools\""), "{line}");
        }
        // The lines below are written without this label.
        let text = text
            .replace("{commons=\"tools\",", "{")
            .replace("{commons=\"tools\"}", "");
        let version = env!("CARGO_PKG_VERSION");
        let build = format!("gleaner_commons_build_info{{version=\"{version}\"}} 1\n");
        assert!(text.contains(&build), "{text}");
        for line in [
            "gleaner_commons_reads_total{from=\"cluster\"} 3",
            "gleaner_commons_bytes_total{from=\"source\"} 5",
            "gleaner_commons_puts_total{result=\"stored\"} 0",
            "gleaner_commons_directory_entries 0.0",
            "gleaner_commons_directory_refused_total 0",
            "gleaner_commons_peer_asked{host_id=\"0a\"} 1.0",
            "gleaner_commons_linked{recruiter=\"https://r\"} 1.0",
            "gleaner_commons_epoch 7.0",
            "gleaner_commons_min_age_seconds 72.5",
            "gleaner_commons_lost_total 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
