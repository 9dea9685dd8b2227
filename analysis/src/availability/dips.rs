//! Dips: sample intervals in which available memory lies below a threshold (Acharya & Setia, Table 3).

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::HostTrace;
use crate::trace::reads::ReadSet;
use gleaner_schemas::findings::{Dip, Findings, Parameters};

/// Threshold that available memory may fall below.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Threshold {
    Bytes(i64),
    /// A share of the host's physical memory.
    Share(f64),
}

impl Threshold {
    /// Requested thresholds, absolute ones first.
    pub(crate) fn all(parameters: &Parameters) -> impl Iterator<Item = Self> + '_ {
        let absolute = parameters.dip_threshold_bytes.iter().copied();
        let relative = parameters.dip_threshold_shares.iter().copied();
        absolute.map(Self::Bytes).chain(relative.map(Self::Share))
    }

    /// Bytes of the threshold on a host with this much memory.
    pub(crate) fn on(self, physical_bytes: i64) -> i64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => (physical_bytes as f64 * share).round() as i64,
        }
    }

    /// Fields of a finding for the threshold: bytes or a share; the other is absent.
    pub(crate) const fn asked(self) -> (Option<i64>, Option<f64>) {
        match self {
            Self::Bytes(bytes) => (Some(bytes), None),
            Self::Share(share) => (None, Some(share)),
        }
    }
}

/// Number of samples with less available memory than the threshold; `samples` are pairs of available
/// and physical bytes.
pub(crate) fn intervals_below(
    threshold: Threshold,
    samples: impl Iterator<Item = (i64, i64)>,
) -> i64 {
    let below = |&(bytes, physical): &(i64, i64)| bytes < threshold.on(physical);
    samples.filter(below).count() as i64
}

/// Dips of each host.
pub(crate) struct Dips;

impl HostMeasure for Dips {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<Dip>(ReadSet::FEW)];

    fn write(host: &mut HostHistory<'_>, pass: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        findings.dips.extend(of_host(&host.trace, pass.parameters));
        Ok(())
    }
}

/// Findings of one host: one per threshold, absolute ones first.
fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Vec<Dip> {
    let samples = &trace.samples;
    let available = || samples.available_bytes.iter();
    // Of several equally low samples, the first counts.
    let least = available()
        .zip(&samples.time_ms)
        .min_by_key(|(bytes, _)| **bytes);
    let (Some((&min_available_bytes, &min_time_ms)), Some(&physical_bytes)) =
        (least, samples.physical_bytes.last())
    else {
        return Vec::new();
    };
    let record = |threshold: Threshold| {
        let physical = samples.physical_bytes.iter().copied();
        Dip {
            host_id: trace.host().to_owned(),
            threshold_bytes: threshold.on(physical_bytes),
            threshold_share: threshold.asked().1,
            intervals_count: intervals_below(threshold, available().copied().zip(physical)),
            samples_count: samples.len() as i64,
            min_available_bytes,
            min_time_ms,
        }
    };
    Threshold::all(parameters).map(record).collect()
}
