//! `gleaner curve measure`: runs a program with less local memory, beside its curve's predictions.

mod text;

use super::args::{Beyond, Local, MeasureArgs};
use super::limited::LimitedRun;
use super::predict::technologies;
use super::runs::{ProgramRuns, limit_bytes};
use super::swaps;
use crate::tables::plain;
use anyhow::bail;
use clap::ValueEnum;
use gleaner_schemas::curve::{
    CURVE_VERSION, Curve, FaultBand, LimitedMeasurement, Measurements, Prediction,
};
use gleaner_simulator::models::{ProgramCurve, Technology, fault_band, predict};
use gleaner_simulator::references::read_curve;
use std::io::Write;

/// Size of local memory, with the curve's predictions for it.
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
    let program = ProgramRuns::new(&args.program, curve.as_ref())?;
    let native = program.native(args.runs)?;
    let mut measurements = Vec::new();
    for size in sizes {
        let (runs, killed) = program.limited(size.local_bytes, args.runs)?;
        measurements.push(measurement(size, &runs, killed, native.wall_s));
    }
    let mut document = Measurements {
        curve_version: CURVE_VERSION,
        gleaner_version: env!("CARGO_PKG_VERSION").to_owned(),
        program: program.name,
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
    let local_bytes = limit_bytes(local, curve)?;
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
    fn a_curve_predicts_the_faults_of_a_size() {
        let curve = Curve {
            page_bytes: 4096,
            footprint_pages: 4096,
            ..Curve::default()
        };
        let half = size(Local::Share(0.5), Some(&curve), None).unwrap();
        assert_eq!(half.local_bytes, 8 << 20);
        assert_eq!(half.predicted_faults, Some(FaultBand::default()));
        assert!(size(Local::Share(0.5), None, None).is_err());
    }
}
