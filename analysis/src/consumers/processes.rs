//! The names behind the use of memory: active processes, all of one name together.

use crate::error::Result;
use crate::trace::HostTrace;
use crate::trace::reader::{DATABASE, SEQUENCE};
use gleaner_schemas::findings::TopProcess;

/// The `most` largest by mean proportional memory (anonymous, shared and file-backed) over the
/// samples in which a process of the name was active. A name whose memory was never known is left out.
pub(crate) fn of_host(trace: &HostTrace<'_>, most: usize) -> Result<Vec<TopProcess>> {
    const MEMORY: [&str; 3] = ["anon_bytes", "shmem_bytes", "file_bytes"];
    let rows = &trace.processes.rows;
    let databases = rows.present(DATABASE)?;
    let sequences = rows.present(SEQUENCE)?;
    let names = rows.texts("name")?;
    let cpu_ms: Vec<Option<i64>> = rows.integers("cpu_ms")?.iter().collect();
    let mut bytes: Vec<Option<i64>> = vec![None; rows.rows_count()];
    for column in MEMORY {
        for (sum, part) in bytes.iter_mut().zip(rows.integers(column)?.iter()) {
            *sum = match (*sum, part) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (a, b) => a.or(b),
            };
        }
    }
    let mut found = Vec::new();
    for group in rows.groups(&["name"])? {
        let by_sample =
            group.chunk_by(|&a, &b| (databases[a], sequences[a]) == (databases[b], sequences[b]));
        let sizes: Vec<Option<i64>> = by_sample
            .map(|rows| {
                let known = rows.iter().filter_map(|&row| bytes[row]);
                known.reduce(i64::saturating_add)
            })
            .collect();
        let known: Vec<i64> = sizes.iter().copied().flatten().collect();
        let Some(&max_bytes) = known.iter().max() else {
            continue;
        };
        let cpu_ms: i64 = group.iter().filter_map(|&row| cpu_ms[row]).sum();
        found.push(TopProcess {
            host: trace.host().to_owned(),
            name: names.get(group[0]).unwrap_or_default().to_owned(),
            active_samples_count: sizes.len() as i64,
            mean_bytes: known.iter().map(|&b| b as f64).sum::<f64>() / known.len() as f64,
            max_bytes,
            cpu_s: cpu_ms as f64 / 1000.0,
        });
    }
    found.sort_by(|a, b| {
        let larger = b.mean_bytes.total_cmp(&a.mean_bytes);
        larger.then_with(|| a.name.cmp(&b.name))
    });
    found.truncate(most);
    Ok(found)
}
