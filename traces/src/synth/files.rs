//! Files that active processes use: they come, grow in the cache, and go. Rows are changes.

use super::dice::Dice;
use super::step::Step;
use super::{PAGE_BYTES, whole_pages};
use gleaner_schemas::rows::FileRow;

/// Files that change in an interval of 90 s: while the owner is there, and while not.
const CHANGES: (f64, f64) = (14.0, 6.0);
/// Share of memory that files in use hold at most.
const MOST_CACHED_SHARE: f64 = 0.12;
const LARGEST_BYTES: f64 = 6.0 * (1u64 << 30) as f64;
const MEDIAN_BYTES: f64 = 300.0 * 1024.0;

#[derive(Clone, Debug, Default)]
struct File {
    /// As a reader of the rows knows it while it is in use.
    row: FileRow,
    is_in_use: bool,
}

/// What files in use hold of the page cache, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cached {
    pub(super) cached: i64,
    /// Of that, what processes map.
    pub(super) mapped: i64,
    /// Of files that went out of use: it stays in the cache.
    pub(super) released: i64,
    /// Of files that came into use or grew.
    pub(super) claimed: i64,
}

/// One host's files.
#[derive(Debug)]
pub(super) struct Files {
    /// By id.
    catalogue: Vec<File>,
    cached: i64,
    mapped: i64,
}

impl Files {
    pub(super) fn new(dice: &mut Dice, count: usize) -> Self {
        let mut catalogue: Vec<File> = (0..count).map(|_| File::new(dice)).collect();
        catalogue.sort_unstable_by_key(|file| file.row.file_id);
        catalogue.dedup_by_key(|file| file.row.file_id);
        Self {
            catalogue,
            cached: 0,
            mapped: 0,
        }
    }

    /// After a boot nothing is cached.
    pub(super) fn boot(&mut self) {
        self.catalogue.iter_mut().for_each(|f| f.is_in_use = false);
        (self.cached, self.mapped) = (0, 0);
    }

    /// Moves on by one step: the rows to store, and what files hold.
    pub(super) fn step(&mut self, dice: &mut Dice, step: &Step<'_>) -> (Vec<FileRow>, Cached) {
        let most_cached = (step.class.memory_gib << 30) as f64 * MOST_CACHED_SHARE;
        let changes = if step.is_present {
            CHANGES.0
        } else {
            CHANGES.1
        };
        let intervals = step.interval_ms as f64 / 90_000.0;
        let change = (changes * intervals.max(0.5) / self.catalogue.len() as f64).min(0.9);
        let mut rows = Vec::new();
        let (mut released, mut claimed) = (0, 0);
        for file in &mut self.catalogue {
            let was_in_use = file.is_in_use;
            let changes = dice.chance(change);
            let (cached_before, mapped_before) = file.held();
            if changes {
                if was_in_use && dice.chance(0.25) {
                    file.is_in_use = false;
                } else {
                    file.change(dice, (self.cached as f64) < most_cached);
                }
            }
            let (cached, mapped) = file.held();
            self.cached += cached - cached_before;
            self.mapped += mapped - mapped_before;
            claimed += (cached - cached_before).max(0);
            released += (cached_before - cached).max(0);
            if file.is_in_use && (changes || step.is_whole) {
                rows.push(file.row.clone());
            } else if was_in_use && !file.is_in_use && !step.is_whole {
                rows.push(FileRow {
                    file_id: file.row.file_id,
                    ..FileRow::default()
                });
            }
        }
        let held = Cached {
            cached: self.cached,
            mapped: self.mapped,
            released,
            claimed,
        };
        (rows, held)
    }
}

impl File {
    fn new(dice: &mut Dice) -> Self {
        let size_bytes = dice.around(MEDIAN_BYTES, 2.4).clamp(1.0, LARGEST_BYTES) as i64;
        let is_mapped = dice.chance(0.6);
        let row = FileRow {
            file_id: dice.number(),
            open_count: i64::from(!is_mapped || dice.chance(0.2)),
            mapped_count: i64::from(is_mapped),
            size_bytes: Some(size_bytes),
            ..FileRow::default()
        };
        Self {
            row,
            is_in_use: false,
        }
    }

    /// What it counts for: its cached bytes, and those mapped.
    fn held(&self) -> (i64, i64) {
        if !self.is_in_use {
            return (0, 0);
        }
        let bytes = |of: Option<i64>| of.unwrap_or(0);
        (
            bytes(self.row.cached_bytes),
            bytes(self.row.mapped_cached_bytes),
        )
    }

    /// Comes into use, or differs from before.
    fn change(&mut self, dice: &mut Dice, may_grow: bool) {
        let size_bytes = self.row.size_bytes.unwrap_or(0);
        let whole_bytes = whole_pages(size_bytes + PAGE_BYTES - 1);
        let before = self.held().0;
        let wanted = if may_grow {
            whole_pages((whole_bytes as f64 * dice.share()) as i64) + PAGE_BYTES
        } else {
            whole_pages(before / 2)
        };
        let cached = wanted.min(whole_bytes);
        if self.is_in_use && cached == before {
            // Cached whole already: it was written to.
            self.row.size_bytes = Some(size_bytes + PAGE_BYTES);
        }
        self.is_in_use = true;
        let mapped = if self.row.mapped_count > 0 {
            whole_pages((cached as f64 * (0.3 + 0.7 * dice.share())) as i64)
        } else {
            0
        };
        self.row.cached_bytes = Some(cached);
        self.row.mapped_cached_bytes = Some(mapped);
    }
}
