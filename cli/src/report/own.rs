//! Dataset of this host's own trace, if no dataset is given.

use anyhow::{Context, bail};
use gleaner_agent::args::GlobalArgs;
use gleaner_agent::config::Config;
use gleaner_agent::trace::export;
use gleaner_dataset::Dataset;
use gleaner_schemas::column::Row;
use gleaner_schemas::interval;
use gleaner_schemas::rows::SampleRow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Minimum number of samples for a report. Reports are about the intervals between samples, and two samples
/// make one interval.
const LEAST_SAMPLES: u64 = 2;

/// Exports the trace of this host's agent into a temporary dataset, removed with the returned
/// folder.
///
/// # Errors
/// There is no trace, this user may not read it, or it has too few samples.
pub(super) fn dataset() -> anyhow::Result<TempDir> {
    let config = Config::resolve(GlobalArgs::default())?;
    let folder = tempfile::Builder::new().prefix("gleaner-report-").tempdir();
    let folder = folder.context("cannot make a folder for the trace's export")?;
    let path = folder.path().join("dataset");
    of(&trace_of(config.database), &path, config.sample_interval)?;
    Ok(folder)
}

/// Path of the configured trace, or of the packaged agent's trace if the user has no trace and
/// configured none.
fn trace_of(configured: PathBuf) -> PathBuf {
    let packaged = Path::new("/var/lib/gleaner/trace.db");
    let is_theirs = configured.exists() || configured.file_name() != packaged.file_name();
    if is_theirs || !packaged.exists() {
        return configured;
    }
    packaged.to_owned()
}

fn of(database: &Path, dataset: &Path, interval: Duration) -> anyhow::Result<()> {
    let shown = database.display();
    if let Err(e) = std::fs::File::open(database) {
        match e.kind() {
            ErrorKind::NotFound => bail!(
                "this host has no trace at {shown}: install gleaner-agent, or name a dataset: gleaner report DATASET"
            ),
            ErrorKind::PermissionDenied => bail!(
                "cannot read this host's trace {shown}: {e}; run it by sudo, or as a member of the group gleaner-agent"
            ),
            _ => return Err(e).with_context(|| format!("cannot read this host's trace {shown}")),
        }
    }
    export::export(database, dataset)?;
    let samples = Dataset::open(dataset).map_or(0, |dataset| dataset.rows(&SampleRow::TABLE));
    if samples < LEAST_SAMPLES {
        bail!(
            "this host's trace {shown} is too short: {samples} of {LEAST_SAMPLES} samples so far; the agent takes one each {}",
            interval::format(interval)
        );
    }
    Ok(())
}
