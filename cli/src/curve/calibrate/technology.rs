//! Writes measured costs as a technology.

use super::super::args::FaultSource;
use super::costs::FaultCosts;
use gleaner_schemas::units::thousands;
use serde::Serialize;
use std::fs;

const READ_AHEAD: &str = "/proc/sys/vm/page-cluster";
/// First line of the file.
const HEAD: &str =
    "# By gleaner curve calibrate. Times: mean, lowest and highest mean of ten rounds.\n";

/// File of a technology. The keys are those of `gleaner_simulator::models::Technology`.
#[derive(Serialize)]
struct TechnologyFile {
    label: &'static str,
    about: String,
    evidence: &'static str,
    source: String,
    granularity: &'static str,
    software_us: [f64; 3],
    latency_us: [f64; 3],
    queueing: &'static str,
}

/// Facts about the measurement that name no host.
pub(super) struct MeasuringHost {
    /// Date of the measurement, in UTC.
    pub(super) date: String,
    /// Release of the kernel.
    pub(super) kernel: String,
    /// Pages that the kernel reads from swap at once; absent if unknown.
    pub(super) read_ahead_pages: Option<u64>,
}

impl MeasuringHost {
    /// Facts about this host now.
    pub(super) fn now() -> Self {
        let cluster = fs::read_to_string(READ_AHEAD).ok();
        let cluster: Option<u32> = cluster.and_then(|text| text.trim().parse().ok());
        Self {
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            read_ahead_pages: cluster.and_then(|cluster| 1_u64.checked_shl(cluster)),
        }
    }
}

/// The technology's file. `memory` is the kind of swap or file.
pub(super) fn file_text(
    by: FaultSource,
    memory: &str,
    costs: &FaultCosts,
    host: &MeasuringHost,
) -> Result<String, toml::ser::Error> {
    let (label, of, name) = match by {
        FaultSource::Swap => ("this host's swap", "in swap", "swap"),
        FaultSource::Zram => ("zram", "in swap", "zram"),
        FaultSource::File => ("this host's files", "of a mapped file", "file"),
    };
    let read_ahead = host.read_ahead_pages.filter(|_| by != FaultSource::File);
    let read_ahead = read_ahead.map(|pages| format!(", read-ahead of {pages} pages"));
    let file = TechnologyFile {
        label,
        about: format!("Pages {of}, on {memory}, as measured"),
        evidence: "measured",
        source: format!(
            "gleaner curve calibrate --by {name} on {}, Linux {}, {memory}{}: {} faults, median {:.1} us",
            host.date,
            host.kernel,
            read_ahead.unwrap_or_default(),
            thousands(costs.faults),
            costs.p50_us,
        ),
        granularity: "page",
        software_us: costs.software_us.map(rounded),
        latency_us: costs.latency_us.map(rounded),
        queueing: "none",
    };
    Ok(format!("{HEAD}{}", toml::to_string(&file)?))
}

/// Microseconds with three places.
fn rounded(us: f64) -> f64 {
    (us * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::curve::Evidence;
    use gleaner_simulator::models::Technology;

    #[test]
    fn the_file_is_a_measured_technology() {
        let costs = FaultCosts {
            accesses: 50_000,
            faults: 41_234,
            software_us: [5.123_46, 4.9, 6.0],
            latency_us: [0.0, 0.0, 0.1],
            p50_us: 4.87,
            p99_us: 30.0,
        };
        let host = MeasuringHost {
            date: "2026-11-26".to_owned(),
            kernel: "6.18 \"custom\"".to_owned(),
            read_ahead_pages: Some(8),
        };
        let parsed = |by| {
            let text = file_text(by, "zram", &costs, &host).unwrap();
            Technology::parse("mine", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
        };
        let technology = parsed(FaultSource::Zram);
        assert_eq!(technology.evidence, Evidence::Measured);
        assert_eq!(
            technology.source,
            "gleaner curve calibrate --by zram on 2026-11-26, Linux 6.18 \"custom\", zram, read-ahead of 8 pages: \
             41,234 faults, median 4.9 us"
        );
        let software = technology.software_us.unwrap();
        assert_eq!(
            (software.value, software.low, software.high),
            (5.123, 4.9, 6.0)
        );
        assert_eq!(
            (technology.latency_us.value, technology.latency_us.high),
            (0.0, 0.1)
        );
        assert!(!parsed(FaultSource::File).source.contains("read-ahead"));
        let now = MeasuringHost::now();
        assert!(now.date.starts_with("20") && !now.kernel.is_empty());
    }
}
