//! The files that hold most page cache.
//!
//! `files` holds changes: a row stands for the file's state from its sample until its next row, until
//! a sample that tells the whole state, or until the run of samples ends, whichever comes first. A
//! file neither open nor mapped any more has ended.

use crate::error::Result;
use crate::reader::HostReader;
use crate::samples::Samples;
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::TopFile;
use gleaner_schemas::rows::FileRow;
use std::ops::Range;

/// The `most` largest by mean cached bytes over the samples in which the file was in use. A file whose
/// cached bytes were never known is left out.
pub(crate) fn of_host(
    reader: &mut HostReader<'_>,
    samples: &Samples,
    segments: &[Range<usize>],
    most: usize,
) -> Result<Vec<TopFile>> {
    let rows = reader.read(
        &FileRow::TABLE,
        &[
            "file_id",
            "path",
            "open_count",
            "mapped_count",
            "cached_bytes",
        ],
    )?;
    let sample_of = samples.of_rows(&rows)?;
    let forgotten = forgotten_at(samples, segments);
    let file_ids = rows.present("file_id")?;
    let paths = rows.texts("path")?;
    let open = rows.present("open_count")?;
    let mapped = rows.present("mapped_count")?;
    let cached: Vec<Option<i64>> = rows.integers("cached_bytes")?.iter().collect();
    let mut found = Vec::new();
    for group in rows.groups(&["file_id"])? {
        let changes: Vec<(usize, usize)> = group
            .iter()
            .filter_map(|&row| Some((sample_of[row]?, row)))
            .collect();
        let mut used = Use::default();
        for (i, &(sample, row)) in changes.iter().enumerate() {
            if open[row] > 0 || mapped[row] > 0 {
                let next = changes.get(i + 1).map_or(usize::MAX, |change| change.0);
                let until = next.min(forgotten[sample]);
                used.add(until.saturating_sub(sample), cached[row]);
            }
        }
        if let Some(mean_cached_bytes) = used.mean() {
            let path = group.iter().rev().find_map(|&row| paths.get(row));
            found.push(TopFile {
                host: reader.host.to_owned(),
                file: path.map_or_else(|| file_ids[group[0]].to_string(), str::to_owned),
                samples_count: used.samples as i64,
                mean_cached_bytes,
                max_cached_bytes: used.max_bytes,
            });
        }
    }
    found.sort_by(|a, b| {
        let larger = b.mean_cached_bytes.total_cmp(&a.mean_cached_bytes);
        larger.then_with(|| a.file.cmp(&b.file))
    });
    found.truncate(most);
    Ok(found)
}

/// For each sample, the first one after it at which a state from before holds no longer.
fn forgotten_at(samples: &Samples, segments: &[Range<usize>]) -> Vec<usize> {
    let mut forgotten = vec![0; samples.len()];
    for segment in segments {
        let mut at = segment.end;
        for i in segment.clone().rev() {
            forgotten[i] = at;
            if samples.files_whole[i] {
                at = i;
            }
        }
    }
    forgotten
}

/// What is summed over the samples of one file.
#[derive(Default)]
struct Use {
    samples: usize,
    samples_known: usize,
    sum_bytes: f64,
    max_bytes: i64,
}

impl Use {
    fn add(&mut self, samples: usize, cached_bytes: Option<i64>) {
        self.samples += samples;
        if let Some(bytes) = cached_bytes {
            self.samples_known += samples;
            self.sum_bytes += bytes as f64 * samples as f64;
            self.max_bytes = self.max_bytes.max(bytes);
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.samples_known > 0).then(|| self.sum_bytes / self.samples_known as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_forgotten_at_the_next_whole_one_and_at_gaps() {
        let samples = Samples {
            time_ms: vec![0; 6],
            files_whole: vec![true, false, true, false, true, false],
            ..Default::default()
        };
        assert_eq!(forgotten_at(&samples, &[0..4, 4..6]), [2, 2, 4, 4, 6, 6]);
    }
}
