//! Prediction for machines of today: `T(m) = T_native + F(m) × (software + latency + link) + queueing`.
//!
//! A first touch is a page of zeroes, which local memory gives; so only reuse faults fetch pages. The band reaches from
//! exact least-recently-used replacement with the technology's best figures to 85 % of the memory with its worst: the
//! kernel's replacement is not exact.

use super::paging::PagingTimes;
use super::program::ProgramCurve;
use super::technology::{Estimate, Granularity, Queueing, Technology};
use crate::queueing::QueueingError;
use gleaner_schemas::curve::{BoundBy, Evidence, FaultBand, Prediction};
use gleaner_schemas::units::Bytes;

/// Share of the memory that the upper end of the band reckons with.
const WORST_MEMORY_SHARE: f64 = 0.85;

/// Reason why a curve predicts nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unpredictable {
    /// The program's duration is 0.
    #[error("the curve has no native duration: record the program with --native-s")]
    NoTime,
    /// The memory is below the curve's first point.
    #[error("the curve begins at {}, and --local is {}: take more", Bytes::from(*least_bytes), Bytes::from(*local_bytes))]
    BelowCurve {
        /// Least memory of the curve.
        least_bytes: u64,
        /// Memory that was asked for.
        local_bytes: u64,
    },
    /// Cache lines need a curve of cache misses.
    #[error(
        "{technology} moves cache lines, whose misses the curve has not: record the program with --of misses"
    )]
    NoMisses {
        /// Name of the technology.
        technology: String,
    },
    /// The queueing model has no solution.
    #[error("{technology}: the queueing model has no solution")]
    Queueing {
        /// Name of the technology.
        technology: String,
        /// Error of the model.
        source: QueueingError,
    },
}

/// End of a figure's range.
#[derive(Clone, Copy)]
enum End {
    Value,
    Low,
    High,
}

impl End {
    fn of(self, estimate: Option<Estimate>) -> f64 {
        let estimate = estimate.unwrap_or_default();
        match self {
            Self::Value => estimate.value,
            Self::Low => estimate.low,
            Self::High => estimate.high,
        }
    }
}

/// Parts of a predicted duration.
struct Parts {
    slowdown: f64,
    page_outs_slowdown: f64,
    faults: f64,
    page_outs: f64,
    /// Delays without the link, as a multiple of the native duration.
    latency: f64,
    /// Transmission and queueing, as a multiple of the native duration.
    link: f64,
}

/// Predicts the duration of a program with `local_bytes` of local memory, if `processes` of its kind share the link.
///
/// # Errors
/// [`Unpredictable`].
pub fn predict(
    program: ProgramCurve<'_>,
    technology: &Technology,
    local_bytes: u64,
    processes: u32,
) -> Result<Prediction, Unpredictable> {
    let curve = program.0;
    if curve.native_wall_s <= 0.0 {
        return Err(Unpredictable::NoTime);
    }
    let local_pages = local_bytes as f64 / curve.page_bytes as f64;
    if technology.granularity == Granularity::Page {
        check_covered(program, local_bytes)?;
    }
    let parts = |memory_pages: f64, end: End| match technology.granularity {
        Granularity::Page => by_page(program, technology, memory_pages, end, processes),
        Granularity::Line => by_line(program, technology, memory_pages, end),
    };
    let expected = parts(local_pages, End::Value)?;
    let low = parts(local_pages, End::Low)?
        .slowdown
        .min(expected.slowdown);
    let worst = parts(local_pages * WORST_MEMORY_SHARE, End::High)?;
    let high = worst.slowdown.max(expected.slowdown);
    let bound_by = if expected.link > expected.latency.max(1.0) {
        BoundBy::Link
    } else if expected.latency > 1.0 {
        BoundBy::Latency
    } else {
        BoundBy::Cpu
    };
    let mut prediction = Prediction {
        technology: technology.name.clone(),
        evidence: technology.evidence,
        local_bytes,
        faults_count: expected.faults.round() as u64,
        page_outs_count: expected.page_outs.round() as u64,
        slowdown: expected.slowdown,
        page_outs_slowdown: expected.page_outs_slowdown,
        low,
        high,
        bound_by,
        sentence: String::new(),
    };
    prediction.sentence = sentence(&curve.program, &prediction, technology);
    Ok(prediction)
}

/// Faults of a program with `local_bytes` of local memory: from exact replacement of the page used least recently to
/// the same with 85 % of the memory.
///
/// # Errors
/// The memory is below the curve's first point.
pub fn fault_band(program: ProgramCurve<'_>, local_bytes: u64) -> Result<FaultBand, Unpredictable> {
    check_covered(program, local_bytes)?;
    let local_pages = local_bytes as f64 / program.0.page_bytes as f64;
    let faults = |memory_pages: f64| program.reuse_faults(memory_pages).round() as u64;
    Ok(FaultBand {
        low_count: faults(local_pages),
        high_count: faults(local_pages * WORST_MEMORY_SHARE),
    })
}

fn check_covered(program: ProgramCurve<'_>, local_bytes: u64) -> Result<(), Unpredictable> {
    let least_bytes = program.least_pages().saturating_mul(program.0.page_bytes);
    if local_bytes < least_bytes {
        return Err(Unpredictable::BelowCurve {
            least_bytes,
            local_bytes,
        });
    }
    Ok(())
}

fn by_page(
    program: ProgramCurve<'_>,
    technology: &Technology,
    memory_pages: f64,
    end: End,
    processes: u32,
) -> Result<Parts, Unpredictable> {
    let curve = program.0;
    let delay_us = end.of(technology.software_us) + end.of(Some(technology.latency_us));
    let link_us = technology
        .link_mbit_per_s
        .map_or(0.0, |rate| rate.us(curve.page_bytes));
    let times = PagingTimes {
        native_s: curve.native_wall_s,
        page_ins: program.reuse_faults(memory_pages),
        page_outs: program.write_backs(memory_pages),
        delay_s: delay_us * 1e-6,
        link_s: link_us * 1e-6,
    };
    let queue = |times: &PagingTimes| match technology.queueing {
        Queueing::None => Ok(times.slowdown_alone()),
        Queueing::Link => times
            .slowdown(processes)
            .map_err(|source| Unpredictable::Queueing {
                technology: technology.name.clone(),
                source,
            }),
    };
    let slowdown = queue(&times)?;
    let without = queue(&PagingTimes {
        page_outs: 0.0,
        ..times
    })?;
    let latency = times.page_ins * times.delay_s / times.native_s;
    Ok(Parts {
        slowdown,
        page_outs_slowdown: (slowdown - without).max(0.0),
        faults: times.page_ins,
        page_outs: times.page_outs,
        latency,
        link: (slowdown - 1.0 - latency).max(0.0),
    })
}

fn by_line(
    program: ProgramCurve<'_>,
    technology: &Technology,
    memory_pages: f64,
    end: End,
) -> Result<Parts, Unpredictable> {
    let curve = program.0;
    if curve.misses_of_bytes.is_none() {
        return Err(Unpredictable::NoMisses {
            technology: technology.name.clone(),
        });
    }
    let all = program.references_to_first(curve.footprint_pages as f64);
    let remote = (all - program.references_to_first(memory_pages)).max(0.0);
    // The most overlap is the best case.
    let overlap = match end {
        End::Value => technology.overlap.map_or(1.0, |overlap| overlap.value),
        End::Low => technology.overlap.map_or(1.0, |overlap| overlap.high),
        End::High => technology.overlap.map_or(1.0, |overlap| overlap.low),
    };
    let longer_us = end.of(Some(technology.latency_us)) - end.of(technology.local_us);
    let latency = remote * longer_us * 1e-6 / overlap / curve.native_wall_s;
    Ok(Parts {
        slowdown: 1.0 + latency,
        page_outs_slowdown: 0.0,
        faults: remote,
        page_outs: 0.0,
        latency,
        link: 0.0,
    })
}

/// The prediction in one sentence, with what it rests on.
fn sentence(program: &str, prediction: &Prediction, technology: &Technology) -> String {
    let local = Bytes::from(prediction.local_bytes);
    let percent = |slowdown: f64| (slowdown - 1.0) * 100.0;
    let number = |percent: f64| match percent {
        small if small < 9.95 => format!("{small:.1}"),
        large => format!("{large:.0}"),
    };
    let rests_on = match technology.evidence {
        Evidence::Measured => match &technology.program {
            // A fault's cost differs by program.
            Some(other) if other != program => {
                format!(
                    "measured with {other}, not with {program}: {}",
                    technology.source
                )
            }
            _ => format!("measured: {}", technology.source),
        },
        Evidence::Paper => "figures of a paper, not measured here".to_owned(),
        Evidence::Assumed => "assumed figures, not measured here".to_owned(),
    };
    let page_outs = percent(1.0 + prediction.page_outs_slowdown);
    let page_outs = match page_outs >= 0.05 {
        true => format!("; {} of that are page-outs", number(page_outs)),
        false => String::new(),
    };
    format!(
        "with {local} local and the rest lent it would run {} % slower on {} ({} to {}; {rests_on}){page_outs}",
        number(percent(prediction.slowdown)),
        technology.label,
        number(percent(prediction.low)),
        number(percent(prediction.high)),
    )
}

#[cfg(test)]
mod tests;
