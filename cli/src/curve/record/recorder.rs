//! Records a program under QEMU's user-mode emulation, with the plugin `references.so`.

use super::super::args::{Record, ReferenceKind};
use super::super::native::{self, RunUsage};
use super::program::Program;
use crate::report;
use anyhow::{Context, bail};
use gleaner_schemas::curve::{Curve, Recorder};
use gleaner_schemas::units::thousands;
use gleaner_simulator::references::{
    self, Control, LIST_PAGES, PAGE_BYTES, Recording, RunFacts, memory_sizes, write_order,
};
use std::ffi::OsString;
use std::io::BufWriter;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// File name of the plugin, next to the program or in [`LIBRARIES`].
const PLUGIN: &str = "references.so";
const LIBRARIES: &str = "/usr/lib/gleaner";
/// Interval of the progress bar's updates.
const SHOWN: Duration = Duration::from_millis(250);
/// Sizes of the cache whose misses can be recorded.
const CACHE_BYTES: std::ops::RangeInclusive<u64> = 4096..=1 << 32;

/// Records the program, and returns its curve and a line on the cost.
pub(super) fn record(args: &Record, interrupted: &AtomicBool) -> anyhow::Result<(Curve, String)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = Program::find(&args.program, &path)?;
    let emulator = emulator(&path)?;
    let plugin = plugin()?;
    let folder = args
        .output
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = tempfile::Builder::new()
        .prefix(".gleaner-curve-")
        .tempdir_in(folder.unwrap_or(Path::new(".")))
        .context("cannot make a folder for the records")?;
    let absolute = folder
        .path()
        .canonicalize()
        .context("cannot find the folder for the records")?;
    let settings = settings(&plugin, &absolute, args)?;
    let native = match args.native_s {
        Some(_) => None,
        None => Some(native_runs(args, interrupted)?),
    };
    let native_cpu_s = args.native_s.or(native.as_ref().map(|ended| ended.cpu_s));
    let native_cpu_s = native_cpu_s.filter(|s| *s > 0.0);
    let native_cpu_s = native_cpu_s
        .context("the program took no CPU time that could be measured: give --native-s")?;

    let mut command = Command::new(emulator);
    command.args(["-cpu", "max", "-plugin"]);
    command.arg(settings);
    let (name, arguments) = program
        .arguments
        .split_first()
        .context("the program is missing")?;
    command
        .arg("-0")
        .arg(name)
        .arg(&program.binary)
        .args(arguments);
    if native.is_some() {
        // The first native run has had the input, and has given the output.
        command.stdin(Stdio::null()).stdout(Stdio::null());
    }
    let recorded = recorded_run(&mut command, &absolute, interrupted)?;
    if !absolute.join("control").exists() {
        bail!("QEMU did not start the recorder ({})", recorded.status);
    }
    let begin = Instant::now();
    let recording = analysed(&absolute, native_cpu_s)?;
    let analysis_s = begin.elapsed().as_secs_f64();
    let mut cost = format!(
        "Recording took {:.1} s of CPU ({:.1} times native); {} records were analysed in {analysis_s:.2} s.",
        recorded.cpu_s,
        recorded.cpu_s / native_cpu_s,
        thousands(recording.records),
    );
    if let Some(path) = &args.order {
        let steps = report::write_with(path, |file| {
            Ok(write_order(&absolute, BufWriter::new(file), path)?)
        })?;
        cost += &format!(
            " The order of {} exchanges of pages is in {}.",
            thousands(steps),
            path.display()
        );
    }
    let measured = measured(args, &recording, native.as_ref(), native_cpu_s);
    let sizes = memory_sizes(LIST_PAGES, recording.profile.footprint_pages());
    let faults = recording.counts.at(&sizes);
    Ok((
        references::curve(measured, &sizes, &faults, recording.profile),
        cost,
    ))
}

/// The second of two runs: the first one reads the program's files from the disk, and has its input and output.
fn native_runs(args: &Record, interrupted: &AtomicBool) -> anyhow::Result<RunUsage> {
    native_run(args, Stdio::inherit, interrupted)?;
    native_run(args, Stdio::null, interrupted)
}

fn native_run(
    args: &Record,
    streams: fn() -> Stdio,
    interrupted: &AtomicBool,
) -> anyhow::Result<RunUsage> {
    let (name, arguments) = args
        .program
        .split_first()
        .context("the program is missing")?;
    let mut command = Command::new(name);
    command.args(arguments).stdin(streams()).stdout(streams());
    let ended = native::run(&mut command, interrupted, |_| ())?;
    if interrupted.load(Ordering::Relaxed) {
        bail!("interrupted during a native run");
    }
    if !ended.status.success() {
        eprintln!(
            "gleaner: without recording, the program ended with {}",
            ended.status
        );
    }
    Ok(ended)
}

fn recorded_run(
    command: &mut Command,
    folder: &Path,
    interrupted: &AtomicBool,
) -> anyhow::Result<RunUsage> {
    let bar = gleaner_terminal::bar("record", 1);
    let mut shown = Duration::ZERO;
    let ended = native::run(command, interrupted, |since| {
        if since < shown {
            return;
        }
        shown = since + SHOWN;
        // Before the recorder begins, there are no counters.
        let counters = Control::read(folder).unwrap_or_default();
        let references = thousands(counters.references / 1_000_000);
        bar.set_message(format!(
            "{:.0} s, {references} million references",
            since.as_secs_f64()
        ));
    })?;
    bar.finish_and_clear();
    if !ended.status.success() {
        eprintln!(
            "gleaner: under the recorder, the program ended with {}",
            ended.status
        );
    }
    Ok(ended)
}

fn analysed(folder: &Path, native_cpu_s: f64) -> anyhow::Result<Recording> {
    let bar = gleaner_terminal::bar("analyse", 1);
    let recording = Recording::analyse(folder, (native_cpu_s * 1e9) as u64, |done, all| {
        bar.set_length(all);
        bar.set_position(done);
        bar.set_message(format!("{} of {} records", thousands(done), thousands(all)));
    });
    bar.finish_and_clear();
    Ok(recording?)
}

fn measured(
    args: &Record,
    recording: &Recording,
    native: Option<&RunUsage>,
    native_cpu_s: f64,
) -> RunFacts {
    let control = &recording.control;
    let name = args
        .program
        .first()
        .map(Path::new)
        .and_then(Path::file_name);
    RunFacts {
        program: name.unwrap_or_default().to_string_lossy().into_owned(),
        native_cpu_s,
        native_wall_s: native.map_or(native_cpu_s, |ended| ended.wall_s),
        peak_bytes: native.map(|ended| ended.peak_bytes),
        page_bytes: PAGE_BYTES,
        instructions: Some(control.instructions),
        references: control.references,
        misses_of_bytes: (control.cache_bytes > 0).then_some(control.cache_bytes),
        recorder: Recorder {
            name: "qemu".to_owned(),
            processes_count: control.processes,
            threads_count: recording.threads,
            has_code: control.has_code,
        },
        sampled_share: 1.0,
        cut: control.cut(),
    }
}

/// The plugin's settings. In an option of QEMU, a comma is written twice.
fn settings(plugin: &Path, folder: &Path, args: &Record) -> anyhow::Result<OsString> {
    let mut settings = doubled(plugin.as_os_str().as_bytes());
    settings.extend_from_slice(b",folder=");
    settings.extend(doubled(folder.as_os_str().as_bytes()));
    if args.code {
        settings.extend_from_slice(b",code=on");
    }
    if args.of == ReferenceKind::Misses {
        let bytes = u64::try_from(args.cache).ok();
        let bytes = bytes.filter(|bytes| bytes.is_power_of_two() && CACHE_BYTES.contains(bytes));
        let bytes = bytes.context("--cache is no power of two from 4KiB to 4GiB")?;
        settings.extend_from_slice(format!(",misses_of={bytes}").as_bytes());
    }
    Ok(OsString::from_vec(settings))
}

fn doubled(path: &[u8]) -> Vec<u8> {
    let comma = |byte: &u8| {
        if *byte == b',' {
            vec![b',', b',']
        } else {
            vec![*byte]
        }
    };
    path.iter().flat_map(comma).collect()
}

/// QEMU's user-mode emulator of this machine's processor.
fn emulator(path: &std::ffi::OsStr) -> anyhow::Result<PathBuf> {
    let name = format!("qemu-{}", std::env::consts::ARCH);
    let mut candidates = std::env::split_paths(path).map(|folder| folder.join(&name));
    let found = candidates.find(|candidate| candidate.is_file());
    found.with_context(|| format!("{name} is missing: install it (Debian: apt install qemu-user)"))
}

/// The plugin, next to this program or where the package has it.
fn plugin() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's folder")?;
    let beside = own.parent().map(|folder| folder.join(PLUGIN));
    let candidates = beside
        .into_iter()
        .chain([Path::new(LIBRARIES).join(PLUGIN)]);
    let found = candidates.into_iter().find(|candidate| candidate.is_file());
    found.with_context(|| {
        format!("{PLUGIN} is missing next to this program and in {LIBRARIES}: run simulator/recorder/build, or install Gleaner's package")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_paths_are_doubled() {
        assert_eq!(doubled(b"/a,b/,"), b"/a,,b/,,");
    }
}
