//! Analyses of the requested time, and of the time before it.

use super::args::Report as Args;
use super::span::RequestedTime;
use crate::analyze;
use gleaner_analysis::{AnalysisError, Part};
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
    let now = analyze::findings_of(dataset, &parameters(asked, args), "analyse");
    let now = match now {
        // Only the analysis knows whether the requested time has samples: the manifest describes whole files.
        Err(e) if is_no_samples_error(&e) && asked.span.is_some() => {
            return Err(asked.nothing(dataset, zone).into());
        }
        now => now?,
    };
    let before = match asked.before(dataset).filter(|_| !args.time.no_comparison) {
        Some(span) => before(dataset, &now.parameters, span)?,
        None => None,
    };
    Ok(Analyses::of(now, before, ""))
}

/// Analyses of the hosts in two parts: of the requested time, and of the time before. `None` if no host has samples
/// in the requested time. `whose` is added to the message about a time before that cannot be compared.
pub(super) fn of_parts(
    now: Part,
    before: Option<Part>,
    whose: &str,
) -> anyhow::Result<Option<Analyses>> {
    let Some(now) = with_samples(now.finish_alone())? else {
        return Ok(None);
    };
    let before = before.map(|part| with_samples(part.finish_alone()));
    let before = before.transpose()?.flatten();
    Ok(Some(Analyses::of(now, before, whose)))
}

fn with_samples(found: Result<Findings, AnalysisError>) -> anyhow::Result<Option<Findings>> {
    match found.map_err(anyhow::Error::from) {
        Err(e) if is_no_samples_error(&e) => Ok(None),
        found => found.map(Some),
    }
}

impl Analyses {
    /// The two analyses; without the time before, and with a message, if that time has too few samples.
    fn of(now: Findings, mut before: Option<Findings>, whose: &str) -> Self {
        if before
            .take_if(|before| !is_comparable(&now, before))
            .is_some()
        {
            let mut stderr = std::io::stderr();
            let _ = writeln!(
                stderr,
                "gleaner: the time before has too few samples{whose} to compare with"
            );
        }
        Self { now, before }
    }
}

/// Parameters for the requested time.
pub(super) fn parameters(asked: &RequestedTime, args: &Args) -> Parameters {
    Parameters {
        measures: Findings::keys_where(|about| about.in_report != ReportUse::LeftOut),
        from_time_ms: asked.span.as_ref().map(|s| s.from_ms),
        until_time_ms: asked.span.as_ref().map(|s| s.until_ms),
        ..analyze::parameters(&args.measures)
    }
}

/// Parameters for the time before: those that were chosen for the requested time, such as sizes of regions, because
/// only equal measures can be compared.
pub(super) fn parameters_before(
    chosen: &Parameters,
    (from_ms, until_ms): (i64, i64),
) -> Parameters {
    Parameters {
        from_time_ms: Some(from_ms),
        until_time_ms: Some(until_ms),
        measures: Findings::keys_where(|about| about.in_report == ReportUse::Compared),
        // The comparison uses only the estimates, and no intervals of them.
        bootstrap_count: 0,
        ..chosen.clone()
    }
}

fn before(
    dataset: &Dataset,
    chosen: &Parameters,
    span: (i64, i64),
) -> anyhow::Result<Option<Findings>> {
    let parameters = parameters_before(chosen, span);
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
