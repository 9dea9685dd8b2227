//! Arguments of `gleaner import`, by source.

use super::columns::help;
use crate::values::instant;
use clap::{Subcommand, ValueEnum};
use gleaner_traces::import::alibaba::Alibaba;
use gleaner_traces::import::prometheus::{self, Selector};
use gleaner_traces::import::{Importer, bitbrains, materna, pcp, sysstat};
use jiff::tz::TimeZone;
use std::path::{Path, PathBuf};

/// Take the trace of another program into a dataset.
///
/// Values that the source lacks are absent in the dataset, never 0 (docs/import.md). Records imported before
/// stay unchanged.
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
    /// Folder of the dataset; created if there is none, else added to.
    #[arg(
        long,
        short,
        value_name = "DATASET",
        required_unless_present = "no-import"
    )]
    output: Option<PathBuf>,
    /// Print the columns that are filled, their units and sources, and import nothing.
    #[arg(long, group = "no-import")]
    columns: bool,
    /// Recording interval of the machines, if the steps between samples do not show it: a longer step than two
    /// intervals is a gap [default: found for each machine].
    #[arg(long, value_name = "TIME", value_parser = interval_ms)]
    pub(crate) interval: Option<i64>,
    /// Print what was done, or the columns, as one JSON document.
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
/// Memory is normalised in that trace: 100 GiB stands for a machine's whole memory. The file is read several
/// times, since it is larger than memory and in no order; some 1 GiB is held.
#[derive(clap::Args)]
#[command(after_help = help(&Alibaba::new(Path::new(""), None).source(), "
  gleaner import alibaba machine_usage.csv -o out/alibaba"))]
pub(crate) struct ImportAlibaba {
    /// The file machine_usage.csv.
    #[arg(required_unless_present = "columns")]
    pub(crate) file: Option<PathBuf>,
    /// Time of the trace's second 0, as 2018-03-05T00:00:00+08:00; it is not published [default:
    /// 2018-01-01T00:00:00Z].
    #[arg(long, value_name = "TIME")]
    pub(crate) start: Option<jiff::Timestamp>,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}

/// Virtual machines of Bitbrains' data centre: GWA-T-12 of the Grid Workloads Archive.
///
/// One CSV a machine. Prints what was repaired, merged and dropped, by machine and in all.
#[derive(clap::Args)]
#[command(after_help = help(&bitbrains::RND, "
  gleaner import bitbrains rnd/2013-7 -o out/bitbrains
  gleaner import bitbrains fastStorage/2013-8 -o out/bitbrains --trace fast-storage --json"))]
pub(crate) struct ImportBitbrains {
    /// Folder of the CSV files.
    #[arg(required_unless_present = "columns")]
    pub(crate) folder: Option<PathBuf>,
    /// Trace to import, one of two; machines of both have the same numbers.
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
  gleaner import csv --mapping lab.toml --check lab/*.csv      # what it would make of the first rows
  gleaner import csv --mapping lab.toml --columns
  gleaner import csv --mapping lab.toml lab/*.csv -o out/lab

Every column of samples that is a figure can be filled, and of hosts cpus_count, kernel_release, architecture, os_name, \
cpu_model and machine_model. All others are absent.")]
pub(crate) struct ImportCsv {
    /// Files to import.
    #[arg(required_unless_present = "columns")]
    pub(crate) files: Vec<PathBuf>,
    /// The mapping: TOML.
    #[arg(long, short, value_name = "MAP")]
    pub(crate) mapping: PathBuf,
    /// Print what the mapping makes of the first ten rows of the first file, and import nothing.
    #[arg(long, group = "no-import")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}

/// Virtual machines of Materna's data centres: GWA-T-13 of the Grid Workloads Archive.
///
/// One CSV a machine. The reader follows the published description of the format (docs/import.md).
#[derive(clap::Args)]
#[command(after_help = help(&materna::TRACES[0], "
  gleaner import materna Materna-Trace-1 -o out/materna
  gleaner import materna Materna-Trace-3 -o out/materna --trace 3"))]
pub(crate) struct ImportMaterna {
    /// Folder of the CSV files.
    #[arg(required_unless_present = "columns")]
    pub(crate) folder: Option<PathBuf>,
    /// Trace to import, one of three; machines of all of them have the same numbers.
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

/// Machines that Prometheus watches through node_exporter: from a running server, or from its folder.
///
/// Samples keep the times at which they were scraped; nothing is resampled. Targets without
/// node_memory_MemTotal_bytes are listed and not imported.
#[derive(clap::Args)]
#[command(after_help = help(&prometheus::SOURCE, "
  gleaner import prometheus --url http://prometheus:9090 --selector '{job=\"node\"}' -o out/servers
  gleaner import prometheus --url https://prometheus --ca ca.pem --bearer-file token --from 2026-11-01 -o out/servers
  gleaner import prometheus /var/lib/prometheus/metrics2 -o out/servers

Times are dates (UTC), RFC 3339 (2026-11-21T08:00:00+01:00), or ms since 1970-01-01 UTC."))]
pub(crate) struct ImportPrometheus {
    /// Prometheus' folder (--storage.tsdb.path) or a snapshot of it; read by promtool, and not written to.
    #[arg(value_name = "TSDB", required_unless_present_any = ["columns", "url"])]
    pub(crate) folder: Option<PathBuf>,
    /// Address of a running Prometheus, with a path if needed.
    #[arg(long, conflicts_with = "folder")]
    pub(crate) url: Option<String>,
    /// Import only machines whose labels match.
    #[arg(long, value_name = "MATCHERS", default_value = "{}", value_parser = Selector::parse)]
    pub(crate) selector: Selector,
    /// Only samples of this time and after it.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<i64>,
    /// Only samples before this time.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) until: Option<i64>,
    /// File with a token that may read, sent as `Authorization: Bearer`.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) bearer_file: Option<PathBuf>,
    /// Certificates (PEM) that vouch for the server, instead of the system's.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,
    /// Name that distinguishes the machines from equally named ones of another Prometheus.
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}

/// Recordings of sysstat: `sadf -j` of any version since 11.5.3, or binary files, which this machine's `sadf`
/// reads.
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
    /// Time zone of times that do not say theirs, as `sadf -t` and `-T` print them.
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
/// A machine is identified by the archives' host; they may come in any order, and overlap.
#[derive(clap::Args)]
#[command(after_help = help(&pcp::SOURCE, "
  gleaner import pcp /var/log/pcp/pmlogger/* -o out/pcp
  gleaner import pcp 20261121.00.10 -o out/pcp --json"))]
pub(crate) struct ImportPcp {
    /// Archives by their common name or any of their files, and folders of archives.
    #[arg(required_unless_present = "columns", value_name = "ARCHIVE|FOLDER")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) into: CommonArgs,
}
