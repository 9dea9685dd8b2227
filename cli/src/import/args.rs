//! Arguments of `gleaner import`, by source.

use super::columns::help;
use crate::values::instant;
use clap::{Subcommand, ValueEnum};
use gleaner_traces::import::alibaba::Alibaba;
use gleaner_traces::import::prometheus::{self, Selector};
use gleaner_traces::import::{Importer, bitbrains, materna, pcp, sysstat};
use jiff::tz::TimeZone;
use std::path::{Path, PathBuf};

/// Import the trace of another program into a dataset.
///
/// Values that the source lacks are absent in the dataset, never 0 (docs/import.md). Records of earlier
/// imports stay unchanged.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner import bitbrains rnd/2013-7 -o out/bitbrains
  gleaner import sysstat /var/log/sysstat -o out/sysstat
  gleaner import pcp /var/log/pcp/pmlogger/* -o out/pcp
  gleaner import bitbrains --columns
  gleaner analyze out/bitbrains")]
pub(crate) struct Import {
    #[command(subcommand)]
    pub(crate) source: ImportSource,
}

#[derive(Subcommand)]
pub(crate) enum ImportSource {
    Alibaba(ImportAlibaba),
    Bitbrains(ImportBitbrains),
    Csv(ImportCsv),
    Materna(ImportMaterna),
    Prometheus(ImportPrometheus),
    Pcp(ImportPcp),
    Sysstat(ImportSysstat),
}

/// Arguments of every source.
#[derive(clap::Args)]
pub(crate) struct CommonArgs {
    /// Folder of the dataset; created if missing, else extended.
    #[arg(
        long,
        short,
        value_name = "DATASET",
        required_unless_present = "no-import"
    )]
    output: Option<PathBuf>,
    /// Print the filled columns with their units and origins, and import nothing.
    #[arg(long, group = "no-import")]
    columns: bool,
    /// Recording interval of the machines, 1ms to 1d; a longer step than two intervals is a gap [default: derived
    /// for each machine from the steps between samples].
    #[arg(long, value_name = "TIME", value_parser = interval_ms)]
    pub(crate) interval: Option<i64>,
    /// Print the result, or the columns, as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a recording interval; returns ms.
fn interval_ms(text: &str) -> Result<i64, String> {
    let interval = gleaner_schemas::interval::parse(text)?;
    let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
    if !(1..=86_400_000).contains(&interval_ms) {
        return Err("an interval is from 1ms to 1d".to_owned());
    }
    Ok(interval_ms)
}

impl CommonArgs {
    /// Folder of the dataset; `None` if only the columns are requested.
    pub(crate) fn dataset(&self) -> Option<&Path> {
        self.output.as_deref().filter(|_| !self.columns)
    }
}

/// Machines of Alibaba's cluster-trace-v2018: machine_usage.csv, unpacked.
///
/// Memory is normalised in that trace: 100 GiB stands for a machine's whole memory. The file is unsorted and
/// larger than memory; it is read several times, with about 1 GiB of memory.
#[derive(clap::Args)]
#[command(after_help = help(&Alibaba::new(Path::new(""), None).source(), "
  gleaner import alibaba machine_usage.csv -o out/alibaba"))]
pub(crate) struct ImportAlibaba {
    /// Path of machine_usage.csv.
    #[arg(required_unless_present = "columns")]
    pub(crate) file: Option<PathBuf>,
    /// Time of the trace's second 0, like 2018-03-05T00:00:00+08:00; Alibaba did not publish it [default:
    /// 2018-01-01T00:00:00Z].
    #[arg(long, value_name = "TIME")]
    pub(crate) start: Option<jiff::Timestamp>,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}

/// Virtual machines of Bitbrains' data centre: GWA-T-12 of the Grid Workloads Archive.
///
/// Reads one CSV file per machine. Prints what was repaired, merged and dropped, per machine and in total.
#[derive(clap::Args)]
#[command(after_help = help(&bitbrains::RND, "
  gleaner import bitbrains rnd/2013-7 -o out/bitbrains
  gleaner import bitbrains fastStorage/2013-8 -o out/bitbrains --trace fast-storage --json"))]
pub(crate) struct ImportBitbrains {
    /// Folder of the CSV files.
    #[arg(required_unless_present = "columns")]
    pub(crate) folder: Option<PathBuf>,
    /// Trace to import; both traces use the same machine numbers.
    #[arg(long, value_enum, default_value_t = BitbrainsTrace::Rnd)]
    pub(crate) trace: BitbrainsTrace,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum BitbrainsTrace {
    /// Trace of 500 machines.
    Rnd,
    /// 1,250 machines on fast storage.
    FastStorage,
}

/// Plain CSV, with a mapping file that describes the columns (docs/import.md).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner import csv --mapping lab.toml --check lab/*.csv      # preview of the first rows
  gleaner import csv --mapping lab.toml --columns
  gleaner import csv --mapping lab.toml lab/*.csv -o out/lab

A mapping can fill every numeric column of `samples`, and of `hosts` cpus_count, kernel_release, architecture, os_name, \
cpu_model and machine_model. All others are absent.")]
pub(crate) struct ImportCsv {
    /// Files to import.
    #[arg(required_unless_present = "columns")]
    pub(crate) files: Vec<PathBuf>,
    /// Mapping file, as TOML.
    #[arg(long, short, value_name = "MAP")]
    pub(crate) mapping: PathBuf,
    /// Print the mapping's result for the first ten rows of the first file, and import nothing.
    #[arg(long, group = "no-import")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}

/// Virtual machines of Materna's data centres: GWA-T-13 of the Grid Workloads Archive.
///
/// Reads one CSV file per machine. The reader follows the published description of the format (docs/import.md).
#[derive(clap::Args)]
#[command(after_help = help(&materna::TRACES[0], "
  gleaner import materna Materna-Trace-1 -o out/materna
  gleaner import materna Materna-Trace-3 -o out/materna --trace 3"))]
pub(crate) struct ImportMaterna {
    /// Folder of the CSV files.
    #[arg(required_unless_present = "columns")]
    pub(crate) folder: Option<PathBuf>,
    /// Trace to import; all three traces use the same machine numbers.
    #[arg(long, value_enum, default_value_t = MaternaTrace::One)]
    pub(crate) trace: MaternaTrace,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum MaternaTrace {
    /// November 2015.
    #[value(name = "1")]
    One,
    /// December 2015.
    #[value(name = "2")]
    Two,
    /// January 2016.
    #[value(name = "3")]
    Three,
}

/// Machines that Prometheus watches through node_exporter: from a running server, or from its data folder.
///
/// Samples keep the times at which they were scraped; nothing is resampled. Targets without
/// node_memory_MemTotal_bytes are listed and not imported.
#[derive(clap::Args)]
#[command(after_help = help(&prometheus::SOURCE, "
  gleaner import prometheus --url http://prometheus:9090 --selector '{job=\"node\"}' -o out/servers
  gleaner import prometheus --url https://prometheus --ca ca.pem --bearer-file token --from 2026-11-01 -o out/servers
  gleaner import prometheus /var/lib/prometheus/metrics2 -o out/servers

--from and --until take a date (UTC), an RFC 3339 time (2026-11-21T08:00:00+01:00), or ms since 1970-01-01 UTC."))]
pub(crate) struct ImportPrometheus {
    /// Prometheus' data folder (--storage.tsdb.path) or a snapshot of it; promtool reads it, and nothing is written there.
    #[arg(value_name = "TSDB", required_unless_present_any = ["columns", "url"])]
    pub(crate) folder: Option<PathBuf>,
    /// URL of a running Prometheus, with a path if needed.
    #[arg(long, conflicts_with = "folder")]
    pub(crate) url: Option<String>,
    /// Import only machines whose labels match these matchers, as in PromQL.
    #[arg(long, value_name = "MATCHERS", default_value = "{}", value_parser = Selector::parse)]
    pub(crate) selector: Selector,
    /// Import only samples from this time on.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<i64>,
    /// Import only samples before this time.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) until: Option<i64>,
    /// File with a token for reading, sent as `Authorization: Bearer`.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) bearer_file: Option<PathBuf>,
    /// CA certificates (PEM) to trust for the server, instead of the system's.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,
    /// Name of this Prometheus; distinguishes its machines from equally named ones of another Prometheus.
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}

/// Recordings of sysstat: JSON of `sadf -j` since 11.5.3, or binary files, read by this machine's `sadf`.
///
/// A machine is identified by its nodename; its files may come in any order, and overlap.
#[derive(clap::Args)]
#[command(after_help = help(&sysstat::SOURCE, "
  gleaner import sysstat /var/log/sysstat -o out/sysstat
  sadf -j /var/log/sysstat/sa21 -- -A > desk-21.json; gleaner import sysstat desk-21.json -o out/sysstat"))]
pub(crate) struct ImportSysstat {
    /// Files, and folders of files: JSON (`.json` in folders) or binary.
    #[arg(required_unless_present = "columns", value_name = "FILE|FOLDER")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Time zone of times without a zone, as `sadf -t` and `-T` print them.
    #[arg(long, value_name = "ZONE", value_parser = time_zone)]
    pub(crate) time_zone: Option<TimeZone>,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}

fn time_zone(name: &str) -> Result<TimeZone, jiff::Error> {
    TimeZone::get(name)
}

/// Archives of Performance Co-Pilot, read by its own pmlogdump (pmdumplog before PCP 7).
///
/// A machine is identified by its host name in the archives, which may come in any order and overlap.
#[derive(clap::Args)]
#[command(after_help = help(&pcp::SOURCE, "
  gleaner import pcp /var/log/pcp/pmlogger/* -o out/pcp
  gleaner import pcp 20261121.00.10 -o out/pcp --json"))]
pub(crate) struct ImportPcp {
    /// Archives, by their base name or any of their files, and folders of archives.
    #[arg(required_unless_present = "columns", value_name = "ARCHIVE|FOLDER")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}
