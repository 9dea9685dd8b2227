//! The three notions of available memory side by side, with the cost of lending that much.
//!
//! This module measures the amounts; `periods` measures, for each notion, how long they last.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::statistics::distribution::Distribution;
use crate::trace::reads::ReadSet;
use gleaner_schemas::findings::{Findings, LendingMode, Notion, NotionSizes, Parameters, Scope};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;

/// Sizes of one notion at each of a host's samples.
pub(crate) struct Sizes<'a> {
    /// Size at each sample; 0 where it is unknown.
    pub(crate) bytes: Cow<'a, [i64]>,
    /// The longest runs of samples at which the size is known, in order.
    pub(crate) known: Vec<Range<usize>>,
}

impl<'a> Sizes<'a> {
    pub(crate) fn of(host: &'a HostHistory<'_>, notion: Notion) -> Self {
        let samples = &host.trace.samples;
        match notion {
            // Available memory is known at every sample, so the list has one range.
            Notion::Available if samples.is_empty() => Self::known_in(&[]),
            Notion::Available => Self {
                bytes: Cow::Borrowed(&samples.available_bytes),
                known: std::iter::once(0..samples.len()).collect(),
            },
            Notion::Paper => Self::known_in(&host.live_files.available_bytes),
            Notion::Harvestable => Self::known_in(&samples.harvestable_bytes),
        }
    }

    fn known_in(bytes: &[Option<i64>]) -> Self {
        let mut known: Vec<Range<usize>> = Vec::new();
        for (at, _) in bytes.iter().enumerate().filter(|(_, b)| b.is_some()) {
            match known.last_mut().filter(|stretch| stretch.end == at) {
                Some(stretch) => stretch.end += 1,
                None => known.push(at..at + 1),
            }
        }
        Self {
            bytes: bytes.iter().map(|b| b.unwrap_or(0)).collect(),
            known,
        }
    }

    /// Distribution over the samples whose size is known and for which `counts` returns true.
    fn distribution(&self, physical_bytes: &[i64], counts: impl Fn(usize) -> bool) -> Distribution {
        let known = self
            .known
            .iter()
            .cloned()
            .flatten()
            .filter(|&at| counts(at));
        Distribution::of(known.map(|at| (self.bytes[at], physical_bytes[at])))
    }
}

/// Sizes by notion, in the order of [`Notion::ALL`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Notions([ByScope; Notion::ALL.len()]);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ByScope {
    all: Distribution,
    idle: Distribution,
}

impl Measure for Notions {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<NotionSizes>(
        ReadSet::SAMPLES.and_files(),
    )];

    fn of_host(host: &HostHistory<'_>, _: &Parameters) -> Result<Self> {
        let physical = &host.trace.samples.physical_bytes;
        let is_idle = host.idleness.by_sample();
        Ok(Self(Notion::ALL.map(|notion| {
            let sizes = Sizes::of(host, notion);
            ByScope {
                all: sizes.distribution(physical, |_| true),
                idle: sizes.distribution(physical, |at| is_idle[at] == Some(true)),
            }
        })))
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.all.merge(&theirs.all);
            mine.idle.merge(&theirs.idle);
        }
    }

    fn write(&self, size_class: &str, _: &Parameters, findings: &mut Findings) {
        for scope in [Scope::All, Scope::Idle] {
            for (notion, by_scope) in Notion::ALL.into_iter().zip(&self.0) {
                let sizes = match scope {
                    Scope::All => &by_scope.all,
                    Scope::Idle => &by_scope.idle,
                };
                let record = record(size_class, scope, notion, sizes, findings);
                findings.notions.extend(record);
            }
        }
    }
}

/// Finding of a notion; `None` without a sample. `findings` must already hold the class' memory
/// context.
fn record(
    size_class: &str,
    scope: Scope,
    notion: Notion,
    sizes: &Distribution,
    findings: &Findings,
) -> Option<NotionSizes> {
    let mode = match (scope, notion) {
        (Scope::Idle, Notion::Paper) => Some(LendingMode::Paper),
        (Scope::Idle, Notion::Harvestable) => Some(LendingMode::Gentle),
        _ => None,
    };
    let mut contexts = findings.memory_context.iter();
    let cost = contexts
        .find(|c| c.host_id.is_none() && c.size_class == size_class && Some(c.mode) == mode);
    Some(NotionSizes {
        size_class: size_class.to_owned(),
        scope,
        notion,
        samples_count: sizes.count,
        mean_bytes: sizes.mean()?,
        mean_share: sizes.mean_share()?,
        median_bytes: sizes.median()?,
        p5_bytes: sizes.quantile(0.05)?,
        mean_quota_bytes: cost.and_then(|c| c.mean_quota_bytes),
        mean_memory_context_bytes: cost.map(|c| c.mean_bytes),
        p99_memory_context_bytes: cost.map(|c| c.p99_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_of_what_is_known() {
        let known = |bytes: &[Option<i64>]| Sizes::known_in(bytes).known;
        let (some, none) = (Some(7), None);
        assert_eq!(known(&[none, some, some, none, some]), [1..3, 4..5]);
        assert_eq!(known(&[some, some]), [0..2]);
        assert!(known(&[none]).is_empty() && known(&[]).is_empty());
        assert_eq!(*Sizes::known_in(&[none, some]).bytes, [0, 7]);
    }
}
