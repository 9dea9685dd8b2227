//! Writes measured costs as a technology.

use super::super::args::FaultSource;
use super::costs::{FaultCosts, FaultTimes};
use super::program::ProgramCosts;
use gleaner_schemas::units::{Bytes, thousands};
use serde::Serialize;
use std::fs;

const READ_AHEAD: &str = "/proc/sys/vm/page-cluster";

/// Costs of a fault, and the program whose faults they are.
pub(super) enum MeasuredCosts {
    /// Costs with calibrate's own program, which touches pages.
    Touched(FaultCosts),
    /// Costs with a program of the user.
    Program(ProgramCosts),
}

/// File of a technology. The keys are those of `gleaner_simulator::models::Technology`.
#[derive(Serialize)]
struct TechnologyFile {
    label: &'static str,
    about: String,
    evidence: &'static str,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
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

impl MeasuredCosts {
    pub(super) fn times(&self) -> &FaultTimes {
        match self {
            Self::Touched(costs) => &costs.times,
            Self::Program(costs) => &costs.times,
        }
    }

    /// Name of the user's program.
    fn program(&self) -> Option<&str> {
        match self {
            Self::Touched(_) => None,
            Self::Program(costs) => Some(&costs.program),
        }
    }

    /// Parts of the measurement whose means give the range.
    fn parts(&self) -> &'static str {
        match self {
            Self::Touched(_) => "of ten rounds",
            Self::Program(_) => "of a run",
        }
    }

    /// Program of the user with the sizes of its memory, and number of faults.
    fn measurement(&self) -> String {
        let faults = thousands(self.times().faults);
        match self {
            Self::Touched(costs) => format!("{faults} faults, median {:.1} us", costs.p50_us),
            Self::Program(costs) => format!(
                "{} with {} of {}, {faults} faults in {}",
                costs.program,
                Bytes::from(costs.local_bytes),
                Bytes::from(costs.native.peak_bytes),
                costs.runs(),
            ),
        }
    }
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
    costs: &MeasuredCosts,
    host: &MeasuringHost,
) -> Result<String, toml::ser::Error> {
    let (label, of, name) = match by {
        FaultSource::Swap => ("this host's swap", "in swap", "swap"),
        FaultSource::Zram => ("zram", "in swap", "zram"),
        FaultSource::File => ("this host's files", "of a mapped file", "file"),
    };
    let read_ahead = host.read_ahead_pages.filter(|_| by != FaultSource::File);
    let read_ahead = read_ahead.map(|pages| format!(", read-ahead of {pages} pages"));
    let with = costs.program().map(|program| format!(" with {program}"));
    let file = TechnologyFile {
        label,
        about: format!(
            "Pages {of}, on {memory}, as measured{}",
            with.unwrap_or_default()
        ),
        evidence: "measured",
        source: format!(
            "gleaner curve calibrate --by {name} on {}, Linux {}, {memory}{}: {}",
            host.date,
            host.kernel,
            read_ahead.unwrap_or_default(),
            costs.measurement(),
        ),
        program: costs.program().map(str::to_owned),
        granularity: "page",
        software_us: costs.times().software_us.map(rounded),
        latency_us: costs.times().latency_us.map(rounded),
        queueing: "none",
    };
    let parts = costs.parts();
    let head =
        format!("# By gleaner curve calibrate. Times: mean, lowest and highest mean {parts}.\n");
    Ok(head + &toml::to_string(&file)?)
}

/// Microseconds with three places.
fn rounded(us: f64) -> f64 {
    (us * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::curve::{Evidence, NativeRun};
    use gleaner_simulator::models::Technology;

    const TIMES: FaultTimes = FaultTimes {
        faults: 41_234,
        software_us: [5.123_46, 4.9, 6.0],
        latency_us: [0.0, 0.0, 0.1],
    };

    fn text(by: FaultSource, costs: &MeasuredCosts) -> String {
        let host = MeasuringHost {
            date: "2026-11-26".to_owned(),
            kernel: "6.18 \"custom\"".to_owned(),
            read_ahead_pages: Some(8),
        };
        file_text(by, "zram", costs, &host).unwrap()
    }

    fn technology(text: &str) -> Technology {
        Technology::parse("mine", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn the_file_is_a_measured_technology() {
        let costs = MeasuredCosts::Touched(FaultCosts {
            accesses: 50_000,
            times: TIMES,
            p50_us: 4.87,
            p99_us: 30.0,
        });
        let parsed = |by| technology(&text(by, &costs));
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
        assert_eq!(technology.program, None);
        assert!(!parsed(FaultSource::File).source.contains("read-ahead"));
        let now = MeasuringHost::now();
        assert!(now.date.starts_with("20") && !now.kernel.is_empty());
    }

    #[test]
    fn the_source_names_a_users_program_and_its_memory() {
        let costs = |runs_count| {
            MeasuredCosts::Program(ProgramCosts {
                program: "per\"l".to_owned(),
                local_bytes: 32 << 20,
                native: NativeRun {
                    peak_bytes: 67 << 20,
                    ..NativeRun::default()
                },
                wall_s: 3.0,
                runs_count,
                times: TIMES,
            })
        };
        let text = |runs_count| text(FaultSource::Swap, &costs(runs_count));
        let of_three = technology(&text(3));
        assert_eq!(
            of_three.source,
            "gleaner curve calibrate --by swap on 2026-11-26, Linux 6.18 \"custom\", zram, read-ahead of 8 pages: \
             per\"l with 32.0 MiB of 67.0 MiB, 41,234 faults in 3 runs"
        );
        assert_eq!(
            of_three.about,
            "Pages in swap, on zram, as measured with per\"l"
        );
        assert_eq!(of_three.program.as_deref(), Some("per\"l"));
        assert_eq!(of_three.evidence, Evidence::Measured);
        assert_eq!(of_three.software_us.unwrap().high, 6.0);
        assert!(text(1).starts_with("# By gleaner") && text(1).contains("mean of a run.\n"));
        assert!(technology(&text(1)).source.ends_with("faults in 1 run"));
    }
}
