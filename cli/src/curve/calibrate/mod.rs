//! `gleaner curve calibrate`: the cost of a page fault on this host, as a technology.
//!
//! ```text
//! swap, zram: calibrate ─► gleaner-clerk run ─► gleaner curve touch ─► rounds (JSON) ─┐
//! file:       calibrate ─► rounds ────────────────────────────────────────────────────┼► costs ─► technology (TOML)
//! swap, zram: calibrate ─► PROGRAM, gleaner-clerk run ─► PROGRAM ─► extra time ───────┘
//! ```

mod costs;
mod pages;
mod program;
mod technology;
mod touching;

use super::args::{CalibrateArgs, FaultSource, TouchArgs};
use super::limited::{ClerkProgram, beside};
use super::swaps;
use crate::report;
use crate::simulate::refuse_folder;
use crate::tables::plain;
use anyhow::{Context, bail};
use costs::FaultCosts;
use gleaner_schemas::units::{Bytes, thousands};
use pages::MappedPages;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use technology::{MeasuredCosts, MeasuringHost};
use touching::FaultRound;

/// Least memory that is touched.
const LEAST_BYTES: i64 = 32 << 20;
/// Local memory for the program itself, besides its share of the pages.
const PROGRAM_BYTES: u64 = 8 << 20;
/// Part of the pages that is local: one of this many.
const LOCAL_PART: u64 = 4;
/// Fewer faults of the program that touches pages give no mean.
const LEAST_FAULTS: u64 = 100;

pub(super) fn run(args: &CalibrateArgs, output: &mut dyn Write) -> anyhow::Result<()> {
    refuse_folder(args.output.as_deref())?;
    let (costs, memory) = if args.program.is_empty() {
        let (costs, memory) = touched(args)?;
        (MeasuredCosts::Touched(costs), memory)
    } else {
        let (costs, memory) = program::measured(args)?;
        (MeasuredCosts::Program(costs), memory)
    };
    let text = technology::file_text(args.by, &memory, &costs, &MeasuringHost::now())?;
    let Some(to) = &args.output else {
        return Ok(output.write_all(text.as_bytes())?);
    };
    report::write(to, text)?;
    let summary = summary(&costs, to);
    Ok(output.write_all(plain(&summary).as_bytes())?)
}

/// Costs of the program that touches pages, and the kind of memory from which they came.
fn touched(args: &CalibrateArgs) -> anyhow::Result<(FaultCosts, String)> {
    if args.size < LEAST_BYTES {
        bail!(
            "--size is below {}: too few pages would fault",
            Bytes::from(LEAST_BYTES)
        );
    }
    let size_bytes = u64::try_from(args.size)?;
    let (rounds, memory) = match args.by {
        FaultSource::File => {
            let file = MappedPages::of_file(&args.folder, size_bytes)?;
            (
                touching::rounds(file, duration(args.seconds))?,
                "a file on a disk".to_owned(),
            )
        }
        FaultSource::Swap | FaultSource::Zram => {
            let kinds = swaps::kinds(args.by == FaultSource::Zram)?;
            (limited_rounds(args, size_bytes)?, kinds)
        }
    };
    let costs = FaultCosts::of(&rounds).filter(|costs| costs.times.faults >= LEAST_FAULTS);
    let costs = costs.with_context(|| too_few(args.by, &args.folder))?;
    Ok((costs, memory))
}

/// Touches memory, and writes the rounds as JSON.
pub(super) fn touch(args: &TouchArgs, output: &mut dyn Write) -> anyhow::Result<()> {
    let pages = MappedPages::anonymous(u64::try_from(args.size)?)?;
    let rounds = touching::rounds(pages, duration(args.seconds))?;
    Ok(output.write_all(serde_json::to_string(&rounds)?.as_bytes())?)
}

fn duration(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Rounds of `gleaner curve touch` with little local memory.
fn limited_rounds(args: &CalibrateArgs, size_bytes: u64) -> anyhow::Result<Vec<FaultRound>> {
    let own = beside("gleaner")?;
    let size = format!("{size_bytes}B");
    let seconds = args.seconds.to_string();
    let words = ["curve", "touch", "--size", &size, "--seconds", &seconds];
    let mut program = vec![own.into_os_string()];
    program.extend(words.map(OsString::from));
    let local_bytes = size_bytes / LOCAL_PART + PROGRAM_BYTES;
    let mut command = ClerkProgram::find()?.command(local_bytes, None, &program);
    let ended = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let ended = ended.context("cannot start gleaner-clerk")?;
    if !ended.status.success() {
        bail!(
            "the program that touches pages failed under gleaner-clerk ({})",
            ended.status
        );
    }
    serde_json::from_slice(&ended.stdout)
        .context("the program that touches pages is of another version")
}

fn too_few(by: FaultSource, folder: &Path) -> String {
    let remedy = match by {
        FaultSource::File => {
            let folder = folder.display();
            format!("the files in {folder} may be in memory (tmpfs): choose another --folder")
        }
        FaultSource::Swap | FaultSource::Zram => {
            "take a larger --size, or more --seconds".to_owned()
        }
    };
    format!("fewer than {LEAST_FAULTS} page faults waited for a device: {remedy}")
}

fn summary(costs: &MeasuredCosts, to: &Path) -> String {
    let mut table = gleaner_terminal::table(&["a fault", "mean us", "lowest", "highest"], 1);
    let times = costs.times();
    for (name, time) in [
        ("software", times.software_us),
        ("latency", times.latency_us),
    ] {
        let [mean, low, high] = time.map(|us| format!("{us:.2}"));
        table.add_row([name.to_owned(), mean, low, high]);
    }
    let faults = thousands(times.faults);
    let basis = match costs {
        MeasuredCosts::Touched(costs) => format!(
            "{faults} faults of {} accesses; half of them took at most {:.1} us, 99 % at most {:.1} us",
            thousands(costs.accesses),
            costs.p50_us,
            costs.p99_us,
        ),
        MeasuredCosts::Program(costs) => format!(
            "{faults} faults of {} with {} local, in {}: {:.2} s, and {:.2} s without a limit",
            costs.program,
            Bytes::from(costs.local_bytes),
            costs.runs(),
            costs.wall_s,
            costs.native.wall_s,
        ),
    };
    format!(
        "{}\n\n{basis}\n\
         The technology is in {}: gleaner curve predict CURVE --local 50% --technology {}\n",
        table.trim_fmt(),
        to.display(),
        to.display(),
    )
}
