//! Arguments as typed. Man pages and completions are made from the same definitions.

use clap::{Parser, Subcommand, ValueEnum};
use gleaner_schemas::column::Table;
use gleaner_schemas::{rows, units};
use std::path::PathBuf;
use std::time::Duration;

/// Find the memory that workstations own and do not use.
#[derive(Parser)]
#[command(
    name = "gleaner",
    version,
    after_help = "Examples:
  gleaner demo                                  trace this host for 30 s and report on it
  gleaner analyze out/demo/dataset              tables on the terminal
  gleaner analyze out/demo/dataset --json       the same for programs
  gleaner report out/demo/dataset -o week.html  one page that needs no network
  gleaner doctor                                what does not work here, and what mends it

Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.

The tracer itself is gleaner-agent (see gleaner-agent --help)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Doctor(crate::doctor::args::Doctor),
    Collect(Collect),
    Analyze(Analyze),
    Explain(Explain),
    Report(Box<crate::report::args::Report>),
    Export(Export),
    Import(crate::import::args::Import),
    Synth(crate::synth::args::Synth),
    Simulate(Box<crate::simulate::args::Simulate>),
    Cache(crate::cache::Cache),
    Fidelity(crate::fidelity::args::Fidelity),
    Lab(crate::lab::args::Lab),
    Top(crate::top::args::Top),
    Owner(crate::owner::args::Owner),
    Schema(Schema),
    Pki(crate::pki::args::Pki),
    Completions(Completions),
    Man(Man),
}

/// Trace this machine and collect its trace into a dataset, in one process without configuration.
///
/// The same agent, shipper and collector as on a cluster, by mutual TLS over loopback. Goes on until
/// Ctrl-C or SIGTERM; what was traced is in the dataset then.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner collect --local                          # into ~/.local/state/gleaner/local, or /var/lib as root
  gleaner collect --local --output /srv/trace --interval 10s
  gleaner report ~/.local/state/gleaner/local/dataset -o report.html

Many hosts: `gleaner-collector run` on a server, `gleaner-agent enroll` on each of them.")]
pub(crate) struct Collect {
    /// This machine alone, in this process.
    #[arg(long)]
    pub(crate) local: bool,
    /// Folder of trace, journal and dataset.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Time between samples [default: 90s].
    #[arg(long, value_name = "TIME", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) interval: Option<std::time::Duration>,
    /// End after so many samples.
    #[arg(long, value_name = "N")]
    pub(crate) samples: Option<u64>,
    /// Loopback address of the status page and the metrics, or none.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7480", value_parser = status_address)]
    pub(crate) status: StatusAddress,
}

/// Where the status page is, if anywhere.
#[derive(Clone, Copy)]
pub(crate) struct StatusAddress(pub(crate) Option<std::net::SocketAddr>);

fn status_address(text: &str) -> Result<StatusAddress, String> {
    if text == "none" {
        return Ok(StatusAddress(None));
    }
    let address = text.parse::<std::net::SocketAddr>();
    let wrong = |_| format!("`{text}` is no address: write 127.0.0.1:7480, or none");
    let address = address.map_err(wrong)?;
    if address.ip().is_loopback() {
        Ok(StatusAddress(Some(address)))
    } else {
        Err(format!("{address} is no loopback address"))
    }
}

/// Trace this host for a short while under a small load, then analyse and report.
///
/// Runs `gleaner collect --local` at a one-second interval while a load of its own fills and frees memory and
/// touches a file. Ctrl-C ends the tracing early; what was traced is still reported.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner demo
  gleaner demo --seconds 300 --output /tmp/demo

Writes trace.db, dataset/, findings.json and report.html into the output folder, and what `collect --local` keeps.")]
pub(crate) struct Demo {
    /// How long to trace.
    #[arg(long, env = "DEMO_SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(3..=86_400))]
    pub(crate) seconds: u64,
    /// Folder to write to; what an earlier demo wrote there is replaced.
    #[arg(long, short, default_value = "out/demo")]
    pub(crate) output: PathBuf,
}

/// Work out what is available, when, for how long, and what could be lent.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner analyze out/demo/dataset
  gleaner analyze DATASET --region 64MiB --region 1GiB --dip 512MiB
  gleaner analyze DATASET --time-zone Europe/Berlin --measure idle_by_hour --rows 168
  gleaner analyze DATASET --class 64MiB --class 128MiB --dip 8MiB --dip-percent 5
  gleaner analyze DATASET --from 2026-11-16T00:00:00+01:00 --until 2026-11-23T00:00:00+01:00
  gleaner analyze DATASET --json | jq '.availability_periods'

Times are dates (UTC), RFC 3339, or ms since 1970-01-01 UTC. What each measure is: docs/analysis.md.")]
pub(crate) struct Analyze {
    /// Folder of the dataset (what `gleaner-agent export` wrote).
    pub(crate) dataset: PathBuf,
    /// Print the findings as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Work out and print only this measure, by its key in the JSON document (repeatable; or several with commas between).
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) measure: Vec<String>,
    /// Print at most so many rows of a measure.
    #[arg(long, default_value_t = 24, value_name = "N")]
    pub(crate) rows: usize,
    /// Only what was recorded at this time and after it; periods are cut there.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<i64>,
    /// Only what was recorded before this time; periods are cut there.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) until: Option<i64>,
    #[command(flatten)]
    pub(crate) measures: Measures,
}

/// Show how a host's categories, idle state and quota came about at an instant.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner explain out/demo/dataset --host otter
  gleaner explain DATASET --host otter --at 2026-11-21T14:03:00+01:00
  gleaner explain DATASET --host 3f2a9c0d1b4e5f60 --at 1795269780000 --json

Times are dates (UTC), RFC 3339, or ms since 1970-01-01 UTC; the last sample before it is explained.")]
pub(crate) struct Explain {
    /// Folder of the dataset.
    pub(crate) dataset: PathBuf,
    /// The host, by its id or name.
    #[arg(long)]
    pub(crate) host: String,
    /// The instant [default: the host's last sample].
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) at: Option<i64>,
    /// Share of physical memory that is never lent, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 15.0)]
    pub(crate) headroom: f64,
    /// Print it as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Thresholds of the measures.
#[derive(clap::Args)]
pub(crate) struct Measures {
    /// Drop availability periods shorter than this many seconds.
    #[arg(long, default_value_t = 300.0, value_name = "SECONDS")]
    pub(crate) minimum_period: f64,
    /// A host is idle after so many seconds without activity and with a low load.
    #[arg(long, default_value_t = 300.0, value_name = "SECONDS")]
    pub(crate) idle_after: f64,
    /// The 5-minute load average that is not low any more.
    #[arg(long, default_value_t = 0.3, value_name = "LOAD")]
    pub(crate) load_limit: f64,
    /// Share of physical memory that is never lent.
    #[arg(long, default_value_t = 15.0, value_name = "PERCENT")]
    pub(crate) headroom: f64,
    /// Upper bound of a class by memory size (repeatable; default: powers of two).
    #[arg(long = "class", value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) class_bytes: Vec<i64>,
    /// Time zone of the fleet, by its IANA name: hours and weekdays are told by it.
    #[arg(long, default_value = "UTC", value_name = "ZONE")]
    pub(crate) time_zone: String,
    /// Resamples of the bootstrap over hosts; 0: no intervals.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) bootstrap: u32,
    /// Size of a region whose availability is measured (repeatable; default: chosen from the hosts' memory).
    #[arg(long = "region", value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) region_bytes: Vec<i64>,
    /// Threshold of dips in available memory (repeatable; default: chosen from the hosts' memory).
    #[arg(long = "dip", value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) dip_bytes: Vec<i64>,
    /// Threshold of dips relative to each host's memory (repeatable).
    #[arg(long, value_name = "PERCENT", default_values_t = [5.0, 10.0, 25.0])]
    pub(crate) dip_percent: Vec<f64>,
    /// Most points of each survival curve (0: all there are).
    #[arg(long, default_value_t = 60, value_name = "COUNT")]
    pub(crate) curve_points: u32,
}

/// Write the dataset in another format: its tables, or when memory could be had, for policy simulators. Or write streams of requests.
///
/// parquet, csv, arrow: one file per table and UTC date, OUTPUT/TABLE/date=DATE/TABLE.parquet (or .csv, .arrow).
/// availability, fta, simgrid: when a region of --region bytes could be had on each host, and what ended that, as
/// `analyze` finds it (docs/periods.md). Every format: docs/exports.md.
/// With --stream instead of a dataset: requests that programs made, as others recorded them, to oracleGeneral or csv (docs/streams.md).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner export out/demo/dataset --to parquet -o out/parquet
  duckdb -c \"SELECT count(*) FROM 'out/parquet/samples/*/*.parquet'\"
  gleaner export DATASET --to csv -o out/otter --host otter --from 2026-11-01 --until 2026-12-01
  gleaner export DATASET --to arrow -o out/rss --table processes --columns host_id,time,name,rss_bytes
  gleaner export DATASET --to availability --region 64MiB -o out/available
  gleaner export DATASET --to availability --region 64MiB --scope idle --least 5m --as csv -o out/available
  gleaner export DATASET --to fta --region 1GiB --scope idle -o out/fta
  gleaner export DATASET --to simgrid --region 1GiB -o out/simgrid
  gleaner export --stream web.spc --stream-format spc --to oracleGeneral -o web.oracleGeneral.zst

Times are dates (UTC), RFC 3339 (2026-11-21T08:00:00+01:00), or ms since 1970-01-01 UTC.")]
pub(crate) struct Export {
    /// Folder of the dataset.
    #[arg(required_unless_present = "stream", conflicts_with = "stream")]
    pub(crate) dataset: Option<PathBuf>,
    /// Format.
    #[arg(long, value_enum)]
    pub(crate) to: Format,
    /// Folder to write to; of streams, the file.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// Only this host, by its id or name (repeatable; or several with commas between).
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub(crate) host: Vec<String>,
    /// Only rows of this time and after it; periods are cut there.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<i64>,
    /// Only rows before this time; periods are cut there.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) until: Option<i64>,
    /// Leave columns uncompressed, for readers that know no zstd.
    #[arg(long)]
    pub(crate) uncompressed: bool,
    #[command(flatten, next_help_heading = "Tables")]
    pub(crate) tables: ExportTables,
    #[command(flatten, next_help_heading = "For policy simulators")]
    pub(crate) availability: ExportAvailability,
    #[command(flatten, next_help_heading = "Streams of requests")]
    pub(crate) streams: crate::export::streams::ExportStreams,
}

#[derive(clap::Args)]
pub(crate) struct ExportTables {
    /// Only this table (repeatable; or several with commas between).
    #[arg(long, value_name = "TABLE", value_delimiter = ',', value_parser = table)]
    pub(crate) table: Vec<Table>,
    /// Only these columns, in this order; every exported table must have them.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct ExportAvailability {
    /// Size of the region that is to be had.
    #[arg(long, value_name = "SIZE", value_parser = size_bytes,
        required_if_eq_any([("to", "availability"), ("to", "fta"), ("to", "simgrid")]))]
    pub(crate) region: Option<i64>,
    /// Which time counts [default: all].
    #[arg(long, value_enum)]
    pub(crate) scope: Option<ExportScope>,
    /// Leave out periods shorter than this, as `analyze` does with 5m [default: 0s].
    #[arg(long, value_name = "TIME", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) least: Option<Duration>,
    /// A host is idle after so many seconds without activity and with a low load [default: 300].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle_after: Option<f64>,
    /// The 5-minute load average that is not low any more [default: 0.3].
    #[arg(long, value_name = "LOAD")]
    pub(crate) load_limit: Option<f64>,
    /// Share of physical memory that is never lent [default: 15].
    #[arg(long, value_name = "PERCENT")]
    pub(crate) headroom: Option<f64>,
    /// Files of `--to availability` [default: parquet].
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    pub(crate) columns_as: Option<ColumnFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables as Apache Parquet, zstd.
    Parquet,
    /// Tables as comma-separated text with a header.
    Csv,
    /// Tables as Arrow IPC files, which are Feather files, zstd.
    Arrow,
    /// Periods in which the region could be had, and what each sample says, as two files of columns.
    Availability,
    /// Events of the Failure Trace Archive.
    Fta,
    /// A platform of SimGrid, with a state and a share profile for every host.
    Simgrid,
    /// Streams in libCacheSim's binary format (with csv: as text that keeps every word of them).
    #[value(name = "oracleGeneral")]
    OracleGeneral,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ColumnFormat {
    /// Apache Parquet, zstd.
    Parquet,
    /// Comma-separated text with a header.
    Csv,
    /// Arrow IPC files, zstd.
    Arrow,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ExportScope {
    /// All time.
    All,
    /// While the owner is away: it ends when the owner returns as well.
    Idle,
}

/// Print what is stored (every table and column, with unit and meaning) or what is printed as JSON.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner schema --as markdown
  gleaner schema --as sql | sqlite3 empty.db     # SQLite 3.53 or newer
  gleaner schema --as findings > findings.schema.json")]
pub(crate) struct Schema {
    /// Form.
    #[arg(long = "as", value_enum, default_value_t = SchemaForm::Markdown)]
    pub(crate) form: SchemaForm,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SchemaForm {
    /// The description in schemas/SCHEMA.md.
    Markdown,
    /// SQLite's statements.
    Sql,
    /// Arrow's types as JSON.
    Arrow,
    /// JSON Schema of what `analyze --json` prints.
    Findings,
    /// JSON Schema of what `explain --json` prints.
    Explanation,
    /// JSON Schema of what `cache --json` prints.
    Cache,
    /// JSON Schema of what `doctor --json` prints.
    Diagnosis,
}

/// Print completions for a shell.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner completions bash > /etc/bash_completion.d/gleaner
  gleaner completions zsh --of gleaner-agent > ~/.zfunc/_gleaner-agent")]
pub(crate) struct Completions {
    /// Shell.
    pub(crate) shell: clap_complete::Shell,
    /// Program to complete.
    #[arg(long, value_enum, default_value_t = Program::Gleaner)]
    pub(crate) of: Program,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Program {
    Gleaner,
    GleanerAgent,
}

/// Write the man pages of every program.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner man man/ && man man/gleaner-demo.1")]
pub(crate) struct Man {
    /// Folder to write to.
    pub(crate) output: PathBuf,
}

/// A table of a dataset.
fn table(name: &str) -> Result<Table, String> {
    rows::table(name).ok_or_else(|| {
        let names: Vec<&str> = rows::DATASET_TABLES.iter().map(|t| t.name).collect();
        format!("there are {}", names.join(", "))
    })
}

/// A point in time, as ms since 1970-01-01 UTC.
pub(crate) fn instant(text: &str) -> Result<i64, String> {
    let wanted = "a date (UTC), RFC 3339, or ms since 1970-01-01 UTC";
    gleaner_dataset::instant_ms(text).ok_or_else(|| wanted.to_owned())
}

/// Reads a size; the unit may be left out, or be its first letter: `64MiB`, `1.5 GiB`, `64M`, `4096`.
pub(crate) fn size_bytes(text: &str) -> Result<i64, String> {
    let unit = match text.trim_end().chars().last() {
        Some('0'..='9') => "B",
        Some('K' | 'M' | 'G' | 'T') => "iB",
        _ => "",
    };
    let bytes = units::parse_size_above_0(&format!("{text}{unit}"))?;
    i64::try_from(bytes).map_err(|_| format!("{text} is more than any machine has"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definitions_are_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn sizes() {
        assert_eq!(size_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(size_bytes("1.5 GiB"), Ok(3 << 29));
        assert_eq!(size_bytes("4096"), Ok(4096));
        assert_eq!(size_bytes("2G"), Ok(2 << 30));
        for wrong in ["", "MiB", "-1MiB", "1MB", "0", "1e400"] {
            assert!(size_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
