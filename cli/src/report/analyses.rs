//! Analyses of the requested time, and of the time before it.

use super::args::Report as Args;
use super::span::RequestedTime;
use crate::analyze;
use gleaner_analysis::AnalysisError;
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, Parameters, ReportUse};
use jiff::tz::TimeZone;
use std::io::Write;

/// The two times are compared only if the time before has at least this share of the number of samples in the
/// requested time.
const LEAST_COMPARED: f64 = 0.5;

/// Findings of the requested time and of the time before it.
pub(super) struct Analyses {
    pub(super) now: Findings,
    /// Absent if the time before has no samples, or no comparison is requested.
    pub(super) before: Option<Findings>,
}

pub(super) fn measure(
    dataset: &Dataset,
    asked: &RequestedTime,
    zone: &TimeZone,
    args: &Args,
) -> anyhow::Result<Analyses> {
    let mut parameters = analyze::parameters(&args.measures);
    parameters.measures = Findings::keys_where(|about| about.in_report != ReportUse::LeftOut);
    parameters.from_time_ms = asked.span.as_ref().map(|s| s.from_ms);
    parameters.until_time_ms = asked.span.as_ref().map(|s| s.until_ms);
    let now = analyze::findings_of(dataset, &parameters, "analyse");
    let now = match now {
        // Only the analysis knows whether the requested time has samples: the manifest describes whole files.
        Err(e) if is_no_samples_error(&e) && asked.span.is_some() => {
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
    Ok(Analyses { now, before })
}

/// Analyses the time before with the parameters that the analysis chose for the requested time, such as sizes
/// of regions: only equal measures can be compared.
fn before(
    dataset: &Dataset,
    chosen: &Parameters,
    (from_ms, until_ms): (i64, i64),
) -> anyhow::Result<Option<Findings>> {
    let parameters = Parameters {
        from_time_ms: Some(from_ms),
        until_time_ms: Some(until_ms),
        measures: Findings::keys_where(|about| about.in_report == ReportUse::Compared),
        // The comparison uses only the estimates, and no intervals of them.
        bootstrap_count: 0,
        ..chosen.clone()
    };
    match analyze::findings_of(dataset, &parameters, "before") {
        Err(e) if is_no_samples_error(&e) => Ok(None),
        found => found.map(Some),
    }
}

/// Returns true if the time before has enough samples for a comparison.
fn is_comparable(now: &Findings, before: &Findings) -> bool {
    let samples = |f: &Findings| f.hosts.iter().map(|h| h.samples_count).sum::<i64>();
    samples(before) as f64 >= LEAST_COMPARED * samples(now) as f64
}

fn is_no_samples_error(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<AnalysisError>();
    matches!(
        error,
        Some(AnalysisError::NoSamples { .. } | AnalysisError::NoSamplesInSpan { .. })
    )
}
