//! Arguments of the commands that measure on this host.

use super::{Local, local, seconds};
use crate::values::size_bytes;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a program with less local memory, and compare it with its curve's prediction.
///
/// The program runs as it is, then with each size of local memory, by `gleaner-clerk run`, --runs times each. It must
/// read its input from files, and must not need its earlier output removed. Its standard output is discarded. A run
/// that the kernel kills for lack of memory is repeated and counted.
#[derive(Args)]
#[command(after_help = "Examples:
  gleaner curve measure --local 60MiB,40MiB -- sort -S 512M big
  gleaner curve measure --local 50% --curve sort.curve -- sort -S 512M big
  gleaner curve measure --local 50% --curve sort.curve --technology mine.toml -- sort -S 512M big

Needs root and swap (docs/swap.md), and gleaner-clerk beside this program.
The JSON document is described by `gleaner schema --as measurements`.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.")]
pub(crate) struct MeasureArgs {
    /// Sizes of local memory, comma-separated, each at least 4MiB; with --curve also shares of the footprint.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = local, required = true)]
    pub(crate) local: Vec<Local>,
    /// Memory for the pages that are not local.
    #[arg(long, value_enum, default_value_t = Beyond::Swap)]
    pub(crate) by: Beyond,
    /// Curve of the program, for its predictions.
    #[arg(long, value_name = "FILE")]
    pub(crate) curve: Option<PathBuf>,
    /// Technology for the predicted duration: a name, or a file that ends in .toml (`gleaner curve calibrate`).
    #[arg(long, value_name = "NAME", requires = "curve")]
    pub(crate) technology: Option<String>,
    /// Runs without a limit, and with each size; their medians are shown.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// The program, and its arguments.
    #[arg(last = true, value_name = "PROGRAM", required = true)]
    pub(crate) program: Vec<OsString>,
}

/// Memory for the pages of a program that are not local.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Beyond {
    /// This host's swap, of any kind.
    Swap,
    /// This host's swap, which must be on zram alone.
    Zram,
}

/// Measure the cost of a page fault on this host, and write it as a technology.
///
/// A small program touches pages in random order, with a quarter of the memory that it needs, and times each page
/// fault that waits for a device. Half of each page is random, and every second page is written. `gleaner curve
/// predict --technology FILE` then predicts with these times.
///
/// A fault of another program can cost twice as much. With PROGRAM, that program runs as it is, then with --local,
/// --runs times each, and the cost is its extra time divided by its page faults. It must read its input from files, and
/// must not need its earlier output removed. Its standard output is discarded.
#[derive(Args)]
#[command(after_help = "Examples:
  gleaner curve calibrate --by zram -o mine.toml
  gleaner curve calibrate --by zram --curve sort.curve -o mine.toml -- sort -S 512M big
  gleaner curve calibrate --by swap --local 40MiB --runs 3 -o mine.toml -- sort -S 512M big
  gleaner curve predict sort.curve --local 50% --technology mine.toml
  gleaner curve calibrate --by file --folder /srv   # needs neither root nor swap

Swap and zram need root, swap (docs/swap.md), and gleaner-clerk beside this program.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.")]
pub(crate) struct CalibrateArgs {
    /// Origin of the pages.
    #[arg(long, value_enum)]
    pub(crate) by: FaultSource,
    /// File for the technology [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Memory that is touched, at least 32MiB.
    #[arg(long, value_name = "SIZE", value_parser = size_bytes, default_value = "256MiB", conflicts_with = "program")]
    pub(crate) size: i64,
    /// Duration of the measurement.
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "5", conflicts_with = "program")]
    pub(crate) seconds: f64,
    /// For --by file: folder for the file, which is removed at the end.
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        conflicts_with = "program"
    )]
    pub(crate) folder: PathBuf,
    /// For PROGRAM: its local memory, at least 4MiB; a share of the footprint needs --curve.
    #[arg(long, value_name = "SIZE", value_parser = local, default_value = "50%", requires = "program")]
    pub(crate) local: Local,
    /// For PROGRAM: its curve.
    #[arg(long, value_name = "FILE", requires = "program")]
    pub(crate) curve: Option<PathBuf>,
    /// For PROGRAM: runs without a limit, of which the median counts, and with --local, whose lowest and highest cost
    /// are the range.
    #[arg(long, value_name = "N", default_value = "1", requires = "program", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Program whose page faults are timed, and its arguments.
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// Origin of the pages that faults read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FaultSource {
    /// This host's swap, of any kind.
    Swap,
    /// This host's swap, which must be on zram alone.
    Zram,
    /// A file that is mapped into memory, and not cached.
    File,
}

/// Show the working set of a running process: the memory that it uses in each second.
///
/// Every second the kernel reports the pages that the process used since the second before (/proc/PID/clear_refs).
/// Ends with the process, or by Ctrl-C.
#[derive(Args)]
#[command(after_help = "Examples:
  gleaner curve watch 4711
  gleaner curve watch $(pidof -s firefox) --json | jq .referenced_bytes

Needs the same user as the process, or root.
Exit codes: 0 ended, 1 failed (the reason is on standard error), 2 wrong usage.")]
pub(crate) struct WatchArgs {
    /// Id of the process.
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: i32,
    /// Print one JSON document in each line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Touch memory in random order, and print the times of the page faults as JSON: the program that `calibrate` runs.
#[derive(Args)]
pub(crate) struct TouchArgs {
    /// Memory that is touched.
    #[arg(long, value_parser = size_bytes)]
    pub(crate) size: i64,
    /// Duration of the measurement.
    #[arg(long, value_parser = seconds)]
    pub(crate) seconds: f64,
}
