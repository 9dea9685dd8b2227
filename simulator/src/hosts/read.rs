//! Reads the hosts of a dataset as timelines.

use super::footprint::Processes;
use super::samples::Rows;
use super::{HostsError, Reading, Result, Timeline, fold, samples};
use gleaner_dataset::Dataset;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::SampleRow;

/// Timeline of one host. It has no changes if the host has no samples in the time span of `reading`.
///
/// # Errors
/// [`HostsError`]: the dataset cannot be read.
pub fn read_host(dataset: &Dataset, host_id: &str, reading: &Reading) -> Result<Timeline> {
    let samples = samples::read(dataset, host_id, reading)?;
    let processes = Processes::read(dataset, host_id, reading)?;
    Ok(fold::timeline(host_id, &samples, &processes, reading))
}

/// Reads all hosts, ordered by id, that have samples in the time span of `reading`.
///
/// # Errors
/// [`HostsError`]: the dataset cannot be read, or has no samples in that time.
pub fn read(dataset: &Dataset, reading: &Reading) -> Result<Vec<Timeline>> {
    let mut hosts = Vec::new();
    let host_ids = dataset.hosts()?;
    let dataset = &dataset.read_ahead(&host_ids);
    for host_id in &host_ids {
        let host = read_host(dataset, host_id, reading)?;
        hosts.extend((!host.changes.is_empty()).then_some(host));
    }
    if hosts.is_empty() {
        return Err(HostsError::Empty {
            root: dataset.root().to_owned(),
            from_ms: reading.from_ms,
            until_ms: reading.until_ms,
        });
    }
    Ok(hosts)
}

/// Physical memory of each host that has samples before `until_ms`, as in the last of these samples. Hosts
/// are ordered by id.
///
/// # Errors
/// [`HostsError`]: the dataset cannot be read.
pub fn physical_bytes(dataset: &Dataset, until_ms: i64) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    let host_ids = dataset.hosts()?;
    let dataset = &dataset.read_ahead(&host_ids);
    for host_id in &host_ids {
        let span = (None, Some(until_ms));
        let rows = Rows::read(
            dataset,
            &SampleRow::TABLE,
            host_id,
            &["physical_bytes"],
            span,
        )?;
        let said = rows.integers("physical_bytes")?;
        let known = said.iter().flatten().filter_map(|b| u64::try_from(b).ok());
        all.extend(known.filter(|bytes| *bytes > 0).last());
    }
    Ok(all)
}
