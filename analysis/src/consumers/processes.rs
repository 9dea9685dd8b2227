//! The names behind the use of memory: active processes, all of one name together.

use crate::error::Result;
use crate::trace::HostTrace;
use gleaner_schemas::findings::TopProcess;
use std::collections::HashMap;

/// What is summed over the samples of one name.
#[derive(Default)]
struct Use {
    /// The sample that is being summed, and what its processes hold.
    sample: Option<usize>,
    bytes: Option<i64>,
    samples_count: i64,
    /// Over samples whose sizes are known.
    known_count: i64,
    sum_bytes: i128,
    max_bytes: i64,
    cpu_ms: i64,
}

impl Use {
    fn add(&mut self, sample: usize, bytes: Option<i64>, cpu_ms: Option<i64>) {
        if self.sample != Some(sample) {
            self.finish();
            self.sample = Some(sample);
            self.samples_count += 1;
        }
        self.bytes = sum(self.bytes, bytes);
        self.cpu_ms += cpu_ms.unwrap_or(0);
    }

    /// Takes the last sample in.
    fn finish(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            self.known_count += 1;
            self.sum_bytes += i128::from(bytes);
            self.max_bytes = self.max_bytes.max(bytes);
        }
    }
}

/// The `most` largest by mean proportional memory (anonymous, shared and file-backed) over the
/// samples in which a process of the name was active. A name whose memory was never known is left out.
pub(crate) fn of_host(trace: &HostTrace<'_>, most: usize) -> Result<Vec<TopProcess>> {
    let rows = &trace.processes.rows;
    let (names, cpu_ms) = (rows.texts("name")?, rows.integers("cpu_ms")?);
    let anon = rows.integers("anon_bytes")?;
    let shmem = rows.integers("shmem_bytes")?;
    let file = rows.integers("file_bytes")?;
    let mut by_name: HashMap<&str, Use> = HashMap::new();
    for (row, sample) in trace.processes.sample_of.iter().enumerate() {
        if let (Some(sample), Some(name)) = (*sample, names.get(row)) {
            let bytes = sum(sum(anon.get(row), shmem.get(row)), file.get(row));
            let used = by_name.entry(name).or_default();
            used.add(sample, bytes, cpu_ms.get(row));
        }
    }
    let mut found: Vec<TopProcess> = Vec::new();
    for (name, mut used) in by_name {
        used.finish();
        if used.known_count > 0 {
            found.push(TopProcess {
                host: trace.host().to_owned(),
                name: name.to_owned(),
                active_samples_count: used.samples_count,
                mean_bytes: used.sum_bytes as f64 / used.known_count as f64,
                max_bytes: used.max_bytes,
                cpu_s: used.cpu_ms as f64 / 1000.0,
            });
        }
    }
    found.sort_by(|a, b| {
        let larger = b.mean_bytes.total_cmp(&a.mean_bytes);
        larger.then_with(|| a.name.cmp(&b.name))
    });
    found.truncate(most);
    Ok(found)
}

/// The sum of what is known; `None` where nothing is.
pub(crate) fn sum(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}
