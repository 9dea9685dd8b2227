//! Files in use as rows; only changes are stored.

use super::SampleMoment;
use crate::synth::dice::Dice;
use crate::synth::life::Files;
use crate::synth::{PAGE_BYTES, whole_pages};
use gleaner_schemas::rows::FileRow;

/// Number of libraries and programs that daemons map completely.
const LIBRARIES: usize = 4;
/// Probability that a log is written in an interval: while the owner is present, and while the owner is absent.
const WRITES: (f64, f64) = (0.9, 0.6);

/// The files of a host, with the content of their rows.
#[derive(Debug)]
pub(crate) struct FileRows {
    libraries: Vec<FileRow>,
    /// All files in order of popularity; the logs come first.
    catalogue: Vec<FileRow>,
    logs: usize,
    /// Number of files in use according to the rows stored so far.
    told: usize,
}

impl FileRows {
    /// Creates the catalogue; `mapped_bytes` is the size of the files that daemons map.
    pub(crate) fn new(dice: &mut Dice, files: &Files, logs: usize, mapped_bytes: i64) -> Self {
        let row = |dice: &mut Dice, bytes: i64, is_mapped: bool| FileRow {
            file_id: dice.number(),
            open_processes_count: i64::from(!is_mapped),
            mapping_processes_count: i64::from(is_mapped),
            size_bytes: Some((bytes - dice.between(0, PAGE_BYTES)).max(1)),
            cached_bytes: Some(bytes),
            mapped_cached_bytes: Some(if is_mapped { bytes } else { 0 }),
            ..FileRow::default()
        };
        let each_bytes = whole_pages(mapped_bytes / LIBRARIES as i64).max(0);
        let libraries = (0..LIBRARIES).filter(|_| each_bytes > 0);
        Self {
            libraries: libraries.map(|_| row(dice, each_bytes, true)).collect(),
            catalogue: files
                .sizes_bytes()
                .map(|bytes| row(dice, bytes, false))
                .collect(),
            logs,
            told: 0,
        }
    }

    /// Rows to store at a sample: files that changed; if the state is complete, all files in use.
    pub(crate) fn step(
        &mut self,
        dice: &mut Dice,
        at: &SampleMoment,
        files: &Files,
    ) -> Vec<FileRow> {
        let writes = if at.is_present { WRITES.0 } else { WRITES.1 };
        let (before, now) = (self.told, files.in_use());
        self.told = now;
        let mut rows = Vec::new();
        if at.is_whole {
            rows.extend(self.libraries.iter().cloned());
        }
        for (place, file) in self.catalogue.iter_mut().enumerate() {
            let is_written = place < self.logs && dice.chance(writes);
            if is_written {
                file.size_bytes = file.size_bytes.map(|bytes| bytes + dice.between(1, 400));
            }
            let is_news = is_written || at.is_whole || place >= before;
            if place < now && is_news {
                rows.push(file.clone());
            } else if place >= now && place < before && !at.is_whole {
                rows.push(FileRow {
                    file_id: file.file_id,
                    ..FileRow::default()
                });
            } else if place >= now && place >= before {
                break;
            }
        }
        rows
    }
}
