//! Arguments of `gleaner export`.

use crate::values::{instant, size_bytes};
use clap::ValueEnum;
use gleaner_schemas::column::Table;
use gleaner_schemas::rows;
use std::path::PathBuf;
use std::time::Duration;

/// Export a dataset's tables, or availability periods for policy simulators; or convert request streams.
///
/// parquet, csv, arrow: one file per table and UTC date, OUTPUT/TABLE/date=DATE/TABLE.parquet (or .csv,
/// .arrow). iceberg: tables for query engines, which a later export brings up to date (docs/tables.md).
/// availability, fta, simgrid: periods in which a region of --region bytes was available on each
/// host, and their ends, as `analyze` finds them (docs/periods.md). Every format: docs/exports.md. With
/// --stream instead of a dataset: recorded requests of other programs, converted to oracleGeneral or csv
/// (docs/streams.md).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner export out/demo/dataset --to parquet -o out/parquet
  duckdb -c \"SELECT count(*) FROM 'out/parquet/samples/*/*.parquet'\"
  gleaner export DATASET --to iceberg -o /srv/tables
  gleaner export DATASET --to csv -o out/otter --host otter --from 2026-11-01 --until 2026-12-01
  gleaner export DATASET --to arrow -o out/rss --table processes --columns host_id,time,name,rss_bytes
  gleaner export DATASET --to availability --region 64MiB -o out/available
  gleaner export DATASET --to availability --region 64MiB --scope idle --minimum-period 5m --as csv -o out/available
  gleaner export DATASET --to fta --region 1GiB --scope idle -o out/fta
  gleaner export DATASET --to simgrid --region 1GiB -o out/simgrid
  gleaner export --stream web.spc --stream-format spc --to oracleGeneral -o web.oracleGeneral.zst

--from and --until take a date (UTC), an RFC 3339 time (2026-11-21T08:00:00+01:00), or ms since 1970-01-01 UTC.")]
pub(crate) struct Export {
    /// Folder of the dataset, or s3://bucket/prefix (not for iceberg).
    #[arg(required_unless_present = "stream", conflicts_with = "stream")]
    pub(crate) dataset: Option<PathBuf>,
    /// Format of the export.
    #[arg(long, value_enum)]
    pub(crate) to: Format,
    /// Folder to write to; with --stream, the file.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// Export only this host, by its id or name (repeatable, or comma-separated).
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub(crate) host: Vec<String>,
    /// Export only rows from this time on; periods that cross this time are cut.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<i64>,
    /// Export only rows before this time; periods that cross this time are cut.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) until: Option<i64>,
    /// Write columns uncompressed, for readers without zstd.
    #[arg(long)]
    pub(crate) uncompressed: bool,
    #[command(flatten, next_help_heading = "Tables")]
    pub(crate) tables: ExportTables,
    #[command(flatten, next_help_heading = "Iceberg tables")]
    pub(crate) iceberg: ExportIceberg,
    #[command(flatten, next_help_heading = "For policy simulators")]
    pub(crate) availability: ExportAvailability,
    #[command(flatten, next_help_heading = "Streams of requests")]
    pub(crate) streams: ExportStreams,
}

#[derive(clap::Args)]
pub(crate) struct ExportTables {
    /// Export only this table (repeatable, or comma-separated).
    #[arg(long, value_name = "TABLE", value_delimiter = ',', value_parser = table)]
    pub(crate) table: Vec<Table>,
    /// Export only these columns (comma-separated), in this order; every exported table must have them.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct ExportIceberg {
    /// URL under which readers find the folder, such as s3://bucket/prefix for tables that are copied there
    /// [default: file:// and the folder's path].
    #[arg(long, value_name = "URL")]
    pub(crate) location: Option<String>,
    /// Time for which replaced snapshots and their files stay [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) grace: Option<Duration>,
}

#[derive(clap::Args)]
pub(crate) struct ExportAvailability {
    /// Size of the region whose availability is exported.
    #[arg(long, value_name = "SIZE", value_parser = size_bytes,
        required_if_eq_any([("to", "availability"), ("to", "fta"), ("to", "simgrid")]))]
    pub(crate) region: Option<i64>,
    /// Part of the time that counts [default: all].
    #[arg(long, value_enum)]
    pub(crate) scope: Option<ExportScope>,
    /// Leave out periods shorter than this (`analyze` uses 5m) [default: 0s].
    #[arg(long, value_name = "TIME", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) minimum_period: Option<Duration>,
    /// Time without activity and with low load after which a host counts as idle [default: 5m].
    #[arg(long, value_name = "TIME", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) idle_after: Option<Duration>,
    /// 5-minute load average from which a host counts as busy [default: 0.3].
    #[arg(long, value_name = "LOAD")]
    pub(crate) load_limit: Option<f64>,
    /// Percentage of physical memory that is never lent [default: 15].
    #[arg(long, value_name = "PERCENT")]
    pub(crate) headroom: Option<f64>,
    /// File format of `--to availability` [default: parquet].
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    pub(crate) columns_as: Option<ColumnFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables as Apache Parquet, zstd.
    Parquet,
    /// Tables as comma-separated text with a header.
    Csv,
    /// Tables as Arrow IPC (Feather) files, zstd.
    Arrow,
    /// Tables as Apache Iceberg with Parquet files; a later export brings them up to date.
    Iceberg,
    /// Periods in which the region was available, and the figures of each sample, as two columnar files.
    Availability,
    /// Events in the format of the Failure Trace Archive.
    Fta,
    /// SimGrid platform, with a state profile and a share profile for every host.
    Simgrid,
    /// Request streams in libCacheSim's binary format (`--to csv` writes them as text with every field).
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
    /// Whole time, idle or not.
    All,
    /// While the owner is away: a period also ends when the owner returns.
    Idle,
}

#[derive(clap::Args)]
pub(crate) struct ExportStreams {
    /// Recorded stream (repeatable: concurrent streams, one client each); `.zst` is decompressed.
    #[arg(
        long,
        value_name = "FILE",
        requires = "stream_format",
        required_if_eq("to", "oracleGeneral")
    )]
    pub(crate) stream: Vec<PathBuf>,
    /// Format of the stream.
    #[arg(long, value_enum, requires = "stream")]
    pub(crate) stream_format: Option<StreamFormat>,
    /// For csv: the columns, in libCacheSim's notation: time-col=2,obj-id-col=5,obj-size-col=4,has-header=true
    /// [default: the columns that --to csv writes].
    #[arg(long, value_name = "PARAMETERS", requires = "stream")]
    pub(crate) stream_params: Option<String>,
    /// For spc, blocks and lackey: block size, a power of two from 512 to 2GiB; each block is one object
    /// [default: 4KiB].
    #[arg(long, value_name = "SIZE", value_parser = size_bytes, requires = "stream")]
    pub(crate) block: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StreamFormat {
    /// libCacheSim's binary format, 24 bytes per request.
    #[value(name = "oracleGeneral")]
    OracleGeneral,
    /// Text, one request per line.
    Csv,
    /// Format of the Storage Performance Council: ASU, LBA, size, opcode, timestamp.
    Spc,
    /// CSV of requests to volumes: time_s, client, op, offset_bytes, bytes.
    Blocks,
    /// Memory accesses that valgrind's lackey prints (--trace-mem=yes); a block is a page.
    Lackey,
}

impl StreamFormat {
    /// Returns true if the objects are blocks of volumes.
    pub(crate) fn is_of_blocks(self) -> bool {
        matches!(self, Self::Spc | Self::Blocks | Self::Lackey)
    }

    /// Name on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Finds a table of the dataset by its name.
fn table(name: &str) -> Result<Table, String> {
    rows::table(name).ok_or_else(|| {
        let names: Vec<&str> = rows::DATASET_TABLES.iter().map(|t| t.name).collect();
        format!("there are {}", names.join(", "))
    })
}
