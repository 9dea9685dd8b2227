//! The files that hold most page cache.
//!
//! The table `files` holds changes; a row for a file neither open nor mapped marks the file's end.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::HostTrace;
use crate::trace::reads::ReadSet;
use crate::trace::standing::StandingTime;
use gleaner_schemas::findings::{Findings, TopFile};

/// Number of files listed per host.
const MOST_LISTED: usize = 15;

/// Files that hold most page cache on each host.
pub(crate) struct TopFiles;

impl HostMeasure for TopFiles {
    const OUTPUTS: &'static [MeasureOutput] =
        &[MeasureOutput::of::<TopFile>(ReadSet::SAMPLES.and_files())];

    fn write(host: &mut HostHistory<'_>, _: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        let files = of_host(&host.trace, MOST_LISTED)?;
        findings.top_files.extend(files);
        Ok(())
    }
}

/// The `most` files with the largest mean of cached bytes over the samples in which they were in use.
/// A file whose cached bytes were never known is left out.
fn of_host(trace: &HostTrace<'_>, most: usize) -> Result<Vec<TopFile>> {
    let rows = &trace.files.rows;
    let standing = StandingTime::new(trace, trace.files.sample_of.clone());
    let file_ids = rows.present("file_id")?;
    let paths = rows.texts("path")?;
    let open = rows.present("open_processes_count")?;
    let mapped = rows.present("mapping_processes_count")?;
    let cached: Vec<Option<i64>> = rows.integers("cached_bytes")?.iter().collect();
    let mut found = Vec::new();
    for group in rows.groups(&["file_id"])? {
        let mut used = Use::default();
        for (row, span) in standing.spans(&group) {
            if open[row] > 0 || mapped[row] > 0 {
                used.add(span.len(), cached[row]);
            }
        }
        if let Some(mean_cached_bytes) = used.mean() {
            let path = group.iter().rev().find_map(|&row| paths.get(row));
            found.push(TopFile {
                host_id: trace.host().to_owned(),
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

/// Sums over one file's samples.
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
