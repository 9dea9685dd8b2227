//! Datasets whose hosts are simulated over a part of their time.

use super::{HostsError, Reading, Timeline, read};
use crate::event::MS;
use crate::parallel;
use gleaner_dataset::Dataset;
use gleaner_policy::idle::IdleRule;
use gleaner_policy::quota::Limits;
use gleaner_schemas::lending::Mode;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A dataset, with the part of its time that is simulated.
#[derive(Clone, Debug)]
pub struct RecordedDataset {
    /// Name of the dataset in the rows.
    pub name: String,
    /// Dataset with the records of the hosts.
    pub dataset: Dataset,
    /// Begin of the simulation, ms since 1970-01-01 UTC.
    pub from_ms: i64,
    /// End of the recorded time, ms since 1970-01-01 UTC.
    pub until_ms: i64,
}

impl RecordedDataset {
    /// Reading of the hosts by an idle rule and a headroom. Timelines contain every mode.
    pub(crate) fn reading(
        &self,
        idle_after_s: f64,
        headroom_share: f64,
        is_always_idle: bool,
    ) -> Reading {
        Reading {
            idle: IdleRule {
                idle_after_ms: (idle_after_s * 1_000.0) as i64,
                ..IdleRule::default()
            },
            limits: Limits {
                mode: Mode::Paper,
                headroom_share,
                ..Limits::default()
            },
            is_always_idle,
            ..Reading::between(self.from_ms, self.until_ms)
        }
    }

    /// Length of the recorded time.
    pub(crate) const fn length_ns(&self) -> u64 {
        self.until_ms.saturating_sub(self.from_ms).unsigned_abs() * MS
    }
}

/// Hosts of each dataset as the reading beside it selects them, in the same order. Equal entries are read once.
///
/// # Errors
/// Name of a dataset that cannot be read, and the error.
pub(crate) fn read_each(
    wanted: &[(&RecordedDataset, Reading)],
    threads: NonZeroUsize,
) -> Result<Vec<Arc<Vec<Timeline>>>, (String, HostsError)> {
    let mut distinct: Vec<&(&RecordedDataset, Reading)> = Vec::new();
    let mut places = Vec::with_capacity(wanted.len());
    for entry in wanted {
        let (dataset, reading) = entry;
        let mut known = distinct.iter();
        let at = known.position(|known| known.0.name == dataset.name && known.1 == *reading);
        places.push(at.unwrap_or(distinct.len()));
        if at.is_none() {
            distinct.push(entry);
        }
    }
    let hosts = parallel::each(threads, &distinct, |(dataset, reading)| {
        let hosts = read(&dataset.dataset, reading).map(Arc::new);
        hosts.map_err(|source| (dataset.name.clone(), source))
    })?;
    let of_entry = |at: usize| hosts.get(at).cloned();
    Ok(places.into_iter().filter_map(of_entry).collect())
}
