//! Arguments of `gleaner curve`.

mod measured;

pub(crate) use measured::{Beyond, CalibrateArgs, FaultSource, MeasureArgs, TouchArgs, WatchArgs};

use crate::export::args::StreamFormat;
use crate::values::size_bytes;
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Record which memory a program uses, and predict and measure what it loses with less.
///
/// The curve of a program has its page faults at every size of local memory. With the times of a technology (leased
/// memory, RDMA, CXL) it predicts how much slower the program would run. Predictions can be measured on this host.
#[derive(Args)]
#[command(after_help = "Examples:
  gleaner curve record -o sort.curve -- sort -S 512M big
  gleaner curve show sort.curve
  gleaner curve predict sort.curve --local 50% --page sort.html
  gleaner curve measure --local 64MiB --curve sort.curve -- sort -S 512M big
  gleaner curve watch 4711

Method, accuracy and technologies: docs/curve.md.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.")]
pub(crate) struct Curve {
    #[command(subcommand)]
    pub(crate) step: Step,
}

#[derive(Subcommand)]
pub(crate) enum Step {
    Record(Box<Record>),
    Show(Show),
    Predict(Predict),
    Measure(Box<MeasureArgs>),
    Calibrate(CalibrateArgs),
    Watch(WatchArgs),
    #[command(hide = true)]
    Touch(TouchArgs),
}

/// Run a program and write its curve.
///
/// The program runs three times: twice as it is (the second run, with its files in memory, gives CPU time, duration and
/// peak memory), and once under QEMU's user-mode emulation, which takes 20 to 40 times as long. It must read its input
/// from files, and must not need its earlier output removed. Standard output is that of the first run. Threads and
/// forked processes are recorded; programs started by execve are not, and the curve then says that it is cut.
#[derive(Args)]
#[command(after_help = "Examples:
  gleaner curve record -o sort.curve -- sort -S 512M big
  gleaner curve record -o sort.curve --native-s 1.2 -- sort -S 512M big   # only the recorded run
  gleaner curve record -o sort.misses --of misses -- sort -S 512M big     # for technologies of cache lines
  gleaner curve record -o sort.curve --stream sort.lackey --stream-format lackey --native-s 1.2

Needs qemu-user (Debian: apt install qemu-user) unless a stream is given.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.")]
pub(crate) struct Record {
    /// File for the curve.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// CPU time and duration of the program without recording, in seconds: the native runs are then left out.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) native_s: Option<f64>,
    /// References that count.
    #[arg(long, value_enum, default_value_t = ReferenceKind::References, conflicts_with = "stream")]
    pub(crate) of: ReferenceKind,
    /// For --of misses: size of the second-level cache, a power of two from 4KiB to 4GiB.
    #[arg(long, value_name = "SIZE", value_parser = size_bytes, default_value = "1MiB", conflicts_with = "stream")]
    pub(crate) cache: i64,
    /// Also write the order of the page references, for `gleaner fidelity --paper verghese-rosenblum`.
    #[arg(long, value_name = "FILE", conflicts_with = "stream")]
    pub(crate) order: Option<PathBuf>,
    /// Count the pages of the program's instructions, too.
    #[arg(long, conflicts_with = "stream")]
    pub(crate) code: bool,
    /// Read a recorded stream instead of running a program (repeatable: concurrent streams); `.zst` is decompressed.
    #[arg(
        long,
        value_name = "FILE",
        requires = "stream_format",
        required_unless_present = "program"
    )]
    pub(crate) stream: Vec<PathBuf>,
    /// Format of the stream; each object is a page.
    #[arg(long, alias = "format", value_enum, requires = "stream")]
    pub(crate) stream_format: Option<StreamFormat>,
    /// For csv: the columns, in libCacheSim's notation [default: the columns that `export --to csv` writes].
    #[arg(long, value_name = "PARAMETERS", requires = "stream")]
    pub(crate) stream_params: Option<String>,
    /// Size of a page of the stream, a power of two from 512 to 2GiB [default: 4KiB].
    #[arg(long, value_name = "SIZE", value_parser = size_bytes, requires = "stream")]
    pub(crate) block: Option<i64>,
    /// Estimate the stream's faults from 8,192 sampled pages (SHARDS).
    #[arg(long, requires = "stream")]
    pub(crate) sampled: bool,
    /// The program, and its arguments.
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "stream")]
    pub(crate) program: Vec<OsString>,
}

/// References that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReferenceKind {
    /// Every load and store.
    References,
    /// References that miss a first-level cache of 32 KiB and a second-level cache (--cache), of lines of 128 bytes.
    Misses,
}

/// Show a curve: faults and write-backs over memory, and working sets.
#[derive(Args)]
#[command(after_help = "Examples:
  gleaner curve show sort.curve
  gleaner curve show sort.curve --page sort.html
  gleaner curve show sort.curve --json | jq '.faults[] | [.memory_pages, .reuse_count]'

The JSON document is described by `gleaner schema --as curve`.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.")]
pub(crate) struct Show {
    /// Curve that `gleaner curve record` wrote.
    pub(crate) curve: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML page with figures.
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
}

/// Predict how much slower a program would run with less local memory.
///
/// Each prediction is a sentence, which says on what it rests. The range reaches from exact replacement of the page
/// used least recently with the technology's best figures, to 85 % of the memory with its worst.
#[derive(Args)]
#[command(after_help = "Examples:
  gleaner curve predict sort.curve --local 64MiB,50%
  gleaner curve predict sort.curve --local 50% --technology tcp-25gbe,rdma-100g --processes 4
  gleaner curve predict sort.curve --local 50% --technology mine.toml --json | jq '.predictions[].slowdown'
  gleaner curve predict --list                    # technologies that come with Gleaner
  gleaner curve predict --print tcp-25gbe > mine.toml

The JSON document is described by `gleaner schema --as predictions`.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.")]
pub(crate) struct Predict {
    /// Curve that `gleaner curve record` wrote.
    #[arg(required_unless_present_any = ["list", "print"])]
    pub(crate) curve: Option<PathBuf>,
    /// Sizes of local memory, comma-separated: bytes with a unit, or a share of the footprint.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = local, required_unless_present_any = ["list", "print"])]
    pub(crate) local: Vec<Local>,
    /// Technologies, comma-separated: names, files that end in .toml, or all.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "all"
    )]
    pub(crate) technology: Vec<String>,
    /// Copies of the program that run at the same time and share the link, each on a CPU of its own.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) processes: u32,
    /// List the technologies that come with Gleaner.
    #[arg(long, conflicts_with_all = ["curve", "print"])]
    pub(crate) list: bool,
    /// Print the file of a technology.
    #[arg(long, value_name = "NAME", conflicts_with = "curve")]
    pub(crate) print: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML page with figures.
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
}

/// Size of local memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Local {
    /// Number of bytes.
    Bytes(u64),
    /// Share of the program's footprint.
    Share(f64),
}

fn local(text: &str) -> Result<Local, String> {
    let wanted = || format!("{text:?} is no size: write it like 2GiB, or as a share like 50%");
    if let Some(percent) = text.strip_suffix('%') {
        let percent: f64 = percent.trim().parse().map_err(|_| wanted())?;
        return match percent > 0.0 && percent <= 100.0 {
            true => Ok(Local::Share(percent / 100.0)),
            false => Err(wanted()),
        };
    }
    let bytes = size_bytes(text).map_err(|_| wanted())?;
    u64::try_from(bytes).map(Local::Bytes).map_err(|_| wanted())
}

/// Longest native CPU time that is accepted: a year.
const MOST_S: f64 = 31_536_000.0;

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|s| *s > 0.0 && *s <= MOST_S);
    seconds.ok_or_else(|| format!("{text:?} is no number of seconds above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_size_or_a_share() {
        assert_eq!(local("2GiB"), Ok(Local::Bytes(2 << 30)));
        assert_eq!(local("50%"), Ok(Local::Share(0.5)));
        for wrong in ["", "%", "0%", "101%", "nan%", "-1%", "2GB", "half"] {
            assert!(local(wrong).is_err(), "{wrong}");
        }
        assert_eq!(seconds("1.5"), Ok(1.5));
        for wrong in ["", "0", "-1", "nan", "inf", "1e300"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
