//! Both analyses: of the time that was asked for, and of the time before.

use super::args::Report as Args;
use super::span::Asked;
use crate::analyze;
use gleaner_analysis::AnalysisError;
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, Parameters};
use jiff::tz::TimeZone;
use std::io::Write;

/// What no report says: most of a large fleet's findings, by bytes.
const LEFT_OUT: [&str; 2] = ["forecast_habits", "forecast_table"];

/// What is not compared with the time before, and costs time or memory: forecasts above all.
const NOT_COMPARED: [&str; 17] = [
    "absence_lengths",
    "absences",
    "activity_sources",
    "dip_processes",
    "forecast_calibration",
    "forecast_habits",
    "forecast_quality",
    "forecast_table",
    "forecast_table_size",
    "forecast_weights",
    "forecasts",
    "live_file_cache",
    "memory_over_time",
    "period_bounds",
    "period_ends",
    "survival_curves",
    "worst_dips",
];

/// The time before is compared with where it has so many samples for each of the time itself.
const LEAST_COMPARED: f64 = 0.5;

/// What was found.
pub(super) struct Measured {
    pub(super) now: Findings,
    /// Absent without samples there, or where nobody asked for it.
    pub(super) before: Option<Findings>,
}

pub(super) fn measure(
    dataset: &Dataset,
    asked: &Asked,
    zone: &TimeZone,
    args: &Args,
) -> anyhow::Result<Measured> {
    let mut parameters = analyze::parameters(&args.measures);
    parameters.measures = Findings::keys();
    parameters
        .measures
        .retain(|key| !LEFT_OUT.contains(&key.as_str()));
    parameters.from_time_ms = asked.span.as_ref().map(|s| s.from_ms);
    parameters.until_time_ms = asked.span.as_ref().map(|s| s.until_ms);
    let now = analyze::findings_of(dataset, &parameters, "analyse");
    let now = match now {
        // The manifest goes by whole files; the analysis knows better.
        Err(e) if says_no_samples(&e) && asked.span.is_some() => {
            return Err(asked.nothing(dataset, zone).into());
        }
        now => now?,
    };
    let mut before = match asked.before(dataset).filter(|_| !args.time.no_comparison) {
        Some(span) => before(dataset, &now.parameters, span)?,
        None => None,
    };
    if before
        .take_if(|before| !is_comparable(&now, before))
        .is_some()
    {
        let mut stderr = std::io::stderr();
        let _ = writeln!(
            stderr,
            "gleaner: the time before has too few samples to compare with"
        );
    }
    Ok(Measured { now, before })
}

/// By the sizes and cells that the analysis of the time itself has chosen: only what is measured alike can be compared.
fn before(
    dataset: &Dataset,
    chosen: &Parameters,
    (from_ms, until_ms): (i64, i64),
) -> anyhow::Result<Option<Findings>> {
    let parameters = Parameters {
        from_time_ms: Some(from_ms),
        until_time_ms: Some(until_ms),
        measures: all_but(&NOT_COMPARED),
        // What is compared are estimates, not their intervals.
        bootstrap_count: 0,
        ..chosen.clone()
    };
    match analyze::findings_of(dataset, &parameters, "before") {
        Err(e) if says_no_samples(&e) => Ok(None),
        found => found.map(Some),
    }
}

/// Whether so much was recorded before that a difference means something.
fn is_comparable(now: &Findings, before: &Findings) -> bool {
    let samples = |f: &Findings| f.hosts.iter().map(|h| h.samples_count).sum::<i64>();
    samples(before) as f64 >= LEAST_COMPARED * samples(now) as f64
}

fn all_but(left_out: &[&str]) -> Vec<String> {
    let mut keys = Findings::keys();
    keys.retain(|key| !left_out.contains(&key.as_str()));
    keys
}

fn says_no_samples(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<AnalysisError>();
    matches!(
        error,
        Some(AnalysisError::NoSamples { .. } | AnalysisError::NoSamplesInSpan { .. })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_can_be_measured() {
        let keys = Findings::keys();
        for key in LEFT_OUT.iter().chain(&NOT_COMPARED) {
            assert!(keys.contains(&(*key).to_owned()), "{key}");
        }
    }
}
