//! Live file cache: page cache of files that will be used again soon (Acharya & Setia, section 2).
//!
//! The measure looks ahead. In a busy period, all files that are accessed in it count for the whole period.
//! In an idle period, the files count that are accessed in it or in the busy period that follows. A file is
//! accessed in a sample in which an active process has it open or mapped, or if it was opened since the
//! sample before. Pages that active processes map count as process memory, not as file cache. No state is
//! carried across a gap: for an idle period at the end of a run of samples no busy period is known to follow,
//! and its figures are lower bounds ([`gleaner_schemas::findings::LiveFileCache::censored_samples_count`]).
//!
//! Cached bytes of a file that is not in use are an estimate (`cached.rs`). The sum is limited to plausible
//! values: at least the page cache of files in use, which are live by definition, and at most that and all
//! available memory, so that the categories still sum to physical memory when `live_file_cache` and
//! `available_paper` replace `file_cache` and `available`.

mod cached;
mod stretches;

use crate::error::Result;
use crate::trace::HostTrace;
use crate::trace::standing::state_ends;
use cached::{Change, live_bytes};
use gleaner_hosts::derived::{BusyPeriod, Idleness};
use gleaner_schemas::findings::Category;
use stretches::Stretches;

/// Live files by sample; `None` if idleness is unknown, and throughout a trace without files.
#[derive(Debug, Default)]
pub(crate) struct LiveFiles {
    pub(crate) file_cache_bytes: Vec<Option<i64>>,
    /// Available by the paper's notion: available now, less the live files that are not in use now.
    pub(crate) available_bytes: Vec<Option<i64>>,
    /// True if some files that may be live at the sample are unknown.
    pub(crate) is_cut: Vec<bool>,
}

impl LiveFiles {
    pub(super) fn of(
        trace: &HostTrace<'_>,
        idleness: &Idleness,
        busy_periods: &[BusyPeriod],
    ) -> Result<Self> {
        let samples = &trace.samples;
        let changes = changes(trace)?;
        if changes.is_empty() {
            let absent = vec![None; samples.len()];
            return Ok(Self {
                file_cache_bytes: absent.clone(),
                available_bytes: absent,
                is_cut: vec![false; samples.len()],
            });
        }
        let stretches = Stretches::new(samples.len(), &idleness.periods, busy_periods);
        let live = live_bytes(&changes, &trace.segments, &stretches);
        let file_cache_bytes: Vec<Option<i64>> = (0..samples.len())
            .map(|i| {
                stretches.of_sample(i)?;
                let in_use = samples.category(Category::FileCache, i)?.max(0);
                let most = in_use.saturating_add(samples.available_bytes[i].max(0));
                Some(
                    i64::try_from(live[i])
                        .unwrap_or(i64::MAX)
                        .clamp(in_use, most),
                )
            })
            .collect();
        let available_bytes = file_cache_bytes.iter().enumerate().map(|(i, live)| {
            let in_use = samples.category(Category::FileCache, i)?.max(0);
            Some(samples.available_bytes[i] - ((*live)? - in_use))
        });
        let is_cut = |i| stretches.of_sample(i).is_some_and(|s| s.cut);
        Ok(Self {
            available_bytes: available_bytes.collect(),
            is_cut: (0..samples.len()).map(is_cut).collect(),
            file_cache_bytes,
        })
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.file_cache_bytes.iter().all(Option::is_none)
    }
}

/// Rows of `files` that belong to a sample.
fn changes(trace: &HostTrace<'_>) -> Result<Vec<Change>> {
    let rows = &trace.files.rows;
    let file_ids = rows.integers("file_id")?.iter();
    let counts = |column| -> Result<_> { Ok(rows.integers(column)?.iter().map(|n| n > Some(0))) };
    let open = counts("open_processes_count")?;
    let mapped = counts("mapping_processes_count")?;
    let opened = counts("opens_count")?;
    let cached = rows.integers("cached_bytes")?.iter();
    let mapped_cached = rows.integers("mapped_cached_bytes")?.iter();
    let until = state_ends(&trace.samples, &trace.segments);
    let sizes = cached.zip(mapped_cached);
    let states = file_ids.zip(open.zip(mapped).zip(opened)).zip(sizes);
    Ok((trace.files.sample_of.iter())
        .zip(states)
        .filter_map(|(sample, ((file_id, ((open, mapped), opened)), sizes))| {
            let sample = (*sample)?;
            Some(Change {
                file_id: file_id?,
                sample,
                until: until[sample],
                in_use: open || mapped || opened,
                mapped,
                cached_bytes: sizes.0,
                mapped_cached_bytes: sizes.1,
            })
        })
        .collect())
}
