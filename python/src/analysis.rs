//! The analysis: of a whole dataset, or of ranges of its hosts whose parts are merged.

use crate::error::{Error, raised};
use crate::open::open;
use gleaner_analysis::{AnalysisError, Part, Plan, Progress};
use gleaner_schemas::findings::{Findings, Parameters};
use pyo3::exceptions::PyValueError;
use pyo3::pybacked::PyBackedBytes;
use pyo3::{PyResult, Python, pyfunction};
use std::path::{Path, PathBuf};

/// Plans of the parts of an analysis, as JSON texts. The hosts are divided into `parts` parts of nearly equal
/// size, or (`None`) into parts of at most `hosts` hosts.
#[pyfunction]
pub(crate) fn plans(
    py: Python<'_>,
    path: PathBuf,
    parameters: &str,
    parts: Option<usize>,
    hosts: usize,
) -> PyResult<Vec<String>> {
    let parameters = parsed(parameters)?;
    py.detach(move || {
        let plan = Plan::new(&open(&path)?, &parameters).map_err(|e| raised(&e))?;
        let all = plan.hosts_count();
        let parts = parts.unwrap_or_else(|| all.div_ceil(hosts.max(1)));
        let text = |hosts| {
            let part = plan.part(hosts).map_err(|e| raised(&e))?;
            serde_json::to_string(&part).map_err(|e| raised(&e))
        };
        plan.ranges(parts.clamp(1, all.max(1))).map(text).collect()
    })
}

/// Findings of the dataset at `path`, as the JSON that `gleaner analyze --json` prints. With the folder
/// `records`, the records of single hosts are in Parquet files there.
#[pyfunction]
#[pyo3(signature = (path, parameters, records=None))]
pub(crate) fn analyze(
    py: Python<'_>,
    path: PathBuf,
    parameters: &str,
    records: Option<PathBuf>,
) -> PyResult<String> {
    let parameters = parsed(parameters)?;
    py.detach(move || {
        let dataset = open(&path)?;
        let hosts = dataset.hosts().map_err(|e| raised(&e))?;
        check(hosts.len(), &parameters, records.as_deref())?;
        let findings =
            interruptible(|progress| gleaner_analysis::analyze(&dataset, &parameters, progress))?;
        document(findings, records.as_deref())
    })
}

/// Part of the findings: of the hosts of `plan`, one of [`plans`].
#[pyfunction]
pub(crate) fn analyze_part(py: Python<'_>, path: PathBuf, plan: &str) -> PyResult<Vec<u8>> {
    let plan: Plan =
        serde_json::from_str(plan).map_err(|e| PyValueError::new_err(e.to_string()))?;
    py.detach(move || {
        let dataset = open(&path)?;
        to_bytes(&interruptible(|progress| {
            gleaner_analysis::analyze_part(&dataset, &plan, progress)
        })?)
    })
}

/// Merges parts of the findings into one.
#[pyfunction]
pub(crate) fn merge(py: Python<'_>, parts: Vec<PyBackedBytes>) -> PyResult<Vec<u8>> {
    py.detach(move || {
        let mut parts = parts.iter().enumerate();
        let Some((_, first)) = parts.next() else {
            return Err(PyValueError::new_err("there are no parts to merge"));
        };
        let mut whole = from_bytes(first, 0)?;
        for (at, part) in parts {
            let merged = whole.merge(from_bytes(part, at)?, &format!("part {at}"));
            whole = merged.map_err(|e| raised(&e))?;
        }
        to_bytes(&whole)
    })
}

/// Findings of a part that contains every host, as the JSON that `gleaner analyze --json` prints. `records` is as
/// for [`analyze`].
#[pyfunction]
#[pyo3(signature = (part, records=None))]
pub(crate) fn finish(
    py: Python<'_>,
    part: PyBackedBytes,
    records: Option<PathBuf>,
) -> PyResult<String> {
    py.detach(move || {
        let part = from_bytes(&part, 0)?;
        check(part.hosts_count(), part.parameters(), records.as_deref())?;
        document(part.finish().map_err(|e| raised(&e))?, records.as_deref())
    })
}

/// Runs an analysis, and cancels it if a handler of Python's signals raises an exception: `KeyboardInterrupt` for
/// Ctrl-C. Python runs handlers in its main thread only.
fn interruptible<T>(
    analysis: impl FnOnce(&mut dyn FnMut(Progress<'_>)) -> Result<T, AnalysisError>,
) -> PyResult<T> {
    let mut interrupt = None;
    let done = analysis(&mut |progress| {
        if let Err(exception) = Python::attach(|py| py.check_signals()) {
            interrupt = Some(exception);
            progress.cancel();
        }
    });
    match interrupt {
        Some(exception) => Err(exception),
        None => done.map_err(|e| raised(&e)),
    }
}

fn from_bytes(bytes: &[u8], at: usize) -> PyResult<Part> {
    Part::from_bytes(bytes, &format!("part {at}")).map_err(|e| raised(&e))
}

fn to_bytes(part: &Part) -> PyResult<Vec<u8>> {
    part.to_bytes().map_err(|e| raised(&e))
}

fn check(hosts_count: usize, parameters: &Parameters, records: Option<&Path>) -> PyResult<()> {
    gleaner_cli::check_document(hosts_count, parameters, records).map_err(Error::new_err)
}

fn document(findings: Findings, records: Option<&Path>) -> PyResult<String> {
    gleaner_cli::findings_document(findings, records).map_err(Error::new_err)
}

/// Parses parameters. Absent keys have their defaults; unknown keys are rejected.
fn parsed(text: &str) -> PyResult<Parameters> {
    gleaner_cli::parameters_of_json(text).map_err(PyValueError::new_err)
}
