//! `gleaner curve measure`: runs a program with less local memory, beside its curve's predictions.

mod text;

use super::args::{Beyond, Local, MeasureArgs};
use super::limited::{ClerkProgram, LEAST_LOCAL_BYTES, LimitedRun};
use super::native::{self, RunUsage, interrupted};
use super::predict::technologies;
use super::shown::local_bytes;
use super::swaps;
use crate::tables::plain;
use anyhow::{Context, bail};
use clap::ValueEnum;
use gleaner_schemas::curve::{
    CURVE_VERSION, Curve, FaultBand, LimitedMeasurement, Measurements, NativeRun, Prediction,
};
use gleaner_schemas::units::Bytes;
use gleaner_simulator::models::{ProgramCurve, Technology, fault_band, predict};
use gleaner_simulator::references::read_curve;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Most runs of one size that the kernel may kill.
const MOST_KILLED: u64 = 10;

/// LocalSize of local memory, with the curve's predictions for it.
struct LocalSize {
    local_bytes: u64,
    predicted_faults: Option<FaultBand>,
    prediction: Option<Prediction>,
}

pub(super) fn run(args: &MeasureArgs, output: &mut dyn Write) -> anyhow::Result<()> {
    let curve = args.curve.as_deref().map(read_curve).transpose()?;
    let mut named = technologies(args.technology.as_slice())?;
    let technology = named.pop();
    if !named.is_empty() {
        bail!("--technology takes one technology here");
    }
    let size = |local: &Local| size(*local, curve.as_ref(), technology.as_ref());
    let sizes: Vec<LocalSize> = args.local.iter().map(size).collect::<Result<_, _>>()?;
    swaps::kinds(args.by == Beyond::Zram)?;
    let clerk = ClerkProgram::find()?;
    let interrupted = interrupted()?;
    let program = name(&args.program);
    if let Some(curve) = curve.as_ref().filter(|curve| curve.program != program) {
        eprintln!(
            "gleaner: the curve is of {}, the program is {program}",
            curve.program
        );
    }

    let native = native_run(&args.program, &interrupted)?;
    let mut measurements = Vec::new();
    for size in sizes {
        let (runs, killed) = limited_runs(&clerk, args, size.local_bytes, &interrupted)?;
        measurements.push(measurement(size, &runs, killed, native.wall_s));
    }
    let mut document = Measurements {
        curve_version: CURVE_VERSION,
        gleaner_version: env!("CARGO_PKG_VERSION").to_owned(),
        program,
        by: args
            .by
            .to_possible_value()
            .map_or_else(String::new, |by| by.get_name().to_owned()),
        native,
        measurements,
    };
    for measurement in &mut document.measurements {
        measurement.sentence = text::sentence(measurement);
    }
    let text = match args.json {
        true => format!("{:#}\n", serde_json::to_value(&document)?),
        false => plain(&text::text(&document, curve.as_ref())),
    };
    Ok(output.write_all(text.as_bytes())?)
}

fn size(
    local: Local,
    curve: Option<&Curve>,
    technology: Option<&Technology>,
) -> anyhow::Result<LocalSize> {
    let local_bytes = match (local, curve) {
        (_, Some(curve)) => local_bytes(local, curve),
        (Local::Bytes(bytes), None) => bytes,
        (Local::Share(_), None) => {
            bail!("--local has a share of the footprint: give the program's --curve, or a size")
        }
    };
    if local_bytes < LEAST_LOCAL_BYTES {
        let (local, least) = (Bytes::from(local_bytes), Bytes::from(LEAST_LOCAL_BYTES));
        bail!("--local is {local}, in which no program can start: take at least {least}");
    }
    let program = curve.map(ProgramCurve);
    let predicted =
        |technology| program.map(|program| predict(program, technology, local_bytes, 1));
    Ok(LocalSize {
        local_bytes,
        predicted_faults: program
            .map(|program| fault_band(program, local_bytes))
            .transpose()?,
        prediction: technology.and_then(predicted).transpose()?,
    })
}

/// Name of the program, without folders.
fn name(program: &[OsString]) -> String {
    let path = program.first().map(Path::new);
    let name = path.and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn native_run(program: &[OsString], interrupted: &AtomicBool) -> anyhow::Result<NativeRun> {
    let (path, arguments) = program.split_first().context("the program is missing")?;
    let ended = quiet_run(Command::new(path).args(arguments), interrupted)?;
    if !ended.status.success() {
        bail!("without a limit, the program ended with {}", ended.status);
    }
    Ok(NativeRun {
        wall_s: ended.wall_s,
        cpu_s: ended.cpu_s,
        peak_bytes: ended.peak_bytes,
        major_faults_count: ended.major_faults,
    })
}

/// Runs of the program that ended by themselves, and the number of those that the kernel killed.
fn limited_runs(
    clerk: &ClerkProgram,
    args: &MeasureArgs,
    local_bytes: u64,
    interrupted: &AtomicBool,
) -> anyhow::Result<(Vec<LimitedRun>, u64)> {
    let folder = tempfile::tempdir().context("cannot make a folder for reports")?;
    let local = Bytes::from(local_bytes);
    let (mut runs, mut killed) = (Vec::new(), 0);
    while (runs.len() as u64) < u64::from(args.runs) {
        let report = folder.path().join(format!("{}-{killed}.json", runs.len()));
        let mut command = clerk.command(local_bytes, Some(&report), &args.program);
        quiet_run(&mut command, interrupted)?;
        let run = LimitedRun::read(&report, local_bytes)?;
        if run.is_killed() {
            killed += 1;
            if killed > MOST_KILLED {
                bail!(
                    "with {local} the kernel killed the program {killed} times: take more --local"
                );
            }
        } else if run.exit_code == 0 {
            runs.push(run);
        } else if run.is_swap_full {
            bail!("with {local} the program ended since swap was full: attach more swap");
        } else {
            bail!(
                "with {local} the program ended with exit code {}",
                run.exit_code
            );
        }
    }
    Ok((runs, killed))
}

/// Runs a command without input and output; errors of the program are shown.
fn quiet_run(command: &mut Command, interrupted: &AtomicBool) -> anyhow::Result<RunUsage> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let ended = native::run(command, interrupted, |_| ())?;
    if interrupted.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(ended)
}

fn measurement(
    size: LocalSize,
    runs: &[LimitedRun],
    killed: u64,
    native_wall_s: f64,
) -> LimitedMeasurement {
    let count = |of: fn(&LimitedRun) -> Option<u64>| {
        let counts: Option<Vec<f64>> = runs.iter().map(|run| of(run).map(|n| n as f64)).collect();
        median(counts?).map(|count| count.round() as u64)
    };
    let wall_s = median(runs.iter().map(|run| run.wall_s).collect()).unwrap_or(0.0);
    let cpu_s: Option<Vec<f64>> = runs.iter().map(|run| run.cpu_s).collect();
    let slowdown = wall_s / native_wall_s.max(1e-9);
    let major_faults_count = count(|run| run.major_faults);
    let are_inside = |band: FaultBand| Some(band.contains(major_faults_count?));
    let is_inside = |predicted: &Prediction| (predicted.low..=predicted.high).contains(&slowdown);
    LimitedMeasurement {
        local_bytes: size.local_bytes,
        runs_count: runs.len() as u64,
        killed_runs_count: killed,
        major_faults_count,
        page_ins_count: count(|run| run.host_pages_swapped_in),
        page_outs_count: count(|run| run.host_pages_swapped_out),
        wall_s,
        cpu_s: cpu_s.and_then(median),
        slowdown,
        predicted_faults: size.predicted_faults,
        are_faults_inside: size.predicted_faults.and_then(are_inside),
        is_slowdown_inside: size.prediction.as_ref().map(is_inside),
        prediction: size.prediction,
        sentence: String::new(),
    }
}

/// Median of the values; of an even number, the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wall_s: f64, major_faults: Option<u64>) -> LimitedRun {
        LimitedRun {
            wall_s,
            major_faults,
            ..LimitedRun::default()
        }
    }

    #[test]
    fn medians_of_the_runs_are_compared_with_the_band() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        let size = || LocalSize {
            local_bytes: 60 << 20,
            predicted_faults: Some(FaultBand {
                low_count: 100,
                high_count: 200,
            }),
            prediction: None,
        };
        let runs = [run(3.0, Some(150)), run(2.0, Some(250)), run(5.0, Some(90))];
        let found = measurement(size(), &runs, 1, 2.0);
        assert_eq!((found.runs_count, found.killed_runs_count), (3, 1));
        assert_eq!((found.wall_s, found.slowdown), (3.0, 1.5));
        assert_eq!(found.major_faults_count, Some(150));
        assert_eq!(found.are_faults_inside, Some(true));
        assert_eq!((found.cpu_s, found.is_slowdown_inside), (None, None));
        let few = measurement(size(), &[run(1.0, Some(99))], 0, 2.0);
        assert_eq!(few.are_faults_inside, Some(false));
        // Without the kernel's count, nothing is compared.
        let absent = measurement(size(), &[run(1.0, Some(150)), run(1.0, None)], 0, 2.0);
        assert_eq!(
            (absent.major_faults_count, absent.are_faults_inside),
            (None, None)
        );
    }

    #[test]
    fn sizes_need_a_curve_for_shares_and_4_mib() {
        let refused = |local| size(local, None, None).err().unwrap().to_string();
        assert!(refused(Local::Share(0.5)).contains("--curve"));
        assert!(refused(Local::Bytes(1 << 20)).contains("at least 4.0 MiB"));
        let curve = Curve {
            page_bytes: 4096,
            footprint_pages: 4096,
            ..Curve::default()
        };
        let half = size(Local::Share(0.5), Some(&curve), None).unwrap();
        assert_eq!(half.local_bytes, 8 << 20);
        assert_eq!(half.predicted_faults, Some(FaultBand::default()));
    }
}
