//! The analysis: of a whole dataset, or of ranges of its hosts whose parts are merged.

use crate::error::raised;
use gleaner_analysis::Part;
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, Parameters};
use pyo3::exceptions::PyValueError;
use pyo3::pybacked::PyBackedBytes;
use pyo3::{PyResult, Python, pyfunction};
use std::path::{Path, PathBuf};

/// Parameters with all defaults chosen, which depend on the whole fleet. Parameters are JSON texts.
#[pyfunction]
pub(crate) fn resolve(py: Python<'_>, path: PathBuf, parameters: &str) -> PyResult<String> {
    let parameters = parsed(parameters)?;
    py.detach(move || {
        let dataset = open(&path)?;
        let resolved = gleaner_analysis::resolve(&[&dataset], &parameters);
        let resolved = resolved.map_err(|e| raised(&e))?;
        serde_json::to_string(&resolved).map_err(|e| raised(&e))
    })
}

/// Findings of the dataset in the folder `path`, as the JSON that `gleaner analyze --json` prints.
#[pyfunction]
pub(crate) fn analyze(py: Python<'_>, path: PathBuf, parameters: &str) -> PyResult<String> {
    let parameters = parsed(parameters)?;
    py.detach(move || {
        let dataset = open(&path)?;
        let findings = gleaner_analysis::analyze(&dataset, &parameters, &mut |_| {});
        document(&findings.map_err(|e| raised(&e))?)
    })
}

/// Part of the findings: of the hosts from index `first` to before `until`, in the order of host ids. The
/// parameters must be resolved.
#[pyfunction]
pub(crate) fn analyze_part(
    py: Python<'_>,
    path: PathBuf,
    parameters: &str,
    first: usize,
    until: usize,
) -> PyResult<Vec<u8>> {
    let parameters = parsed(parameters)?;
    py.detach(move || {
        let dataset = open(&path)?;
        let hosts = first..until;
        let part = gleaner_analysis::analyze_part(&dataset, &parameters, hosts, &mut |_| {});
        to_bytes(&part.map_err(|e| raised(&e))?)
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
            let part = from_bytes(part, at)?;
            let merged = whole.merge(part, &format!("part {at}"));
            merged.map_err(|e| raised(&e))?;
        }
        to_bytes(&whole)
    })
}

/// Findings of a part that contains every host, as the JSON that `gleaner analyze --json` prints.
#[pyfunction]
pub(crate) fn finish(py: Python<'_>, part: PyBackedBytes) -> PyResult<String> {
    py.detach(move || {
        let findings = from_bytes(&part, 0)?.finish();
        document(&findings.map_err(|e| raised(&e))?)
    })
}

fn open(path: &Path) -> PyResult<Dataset> {
    Dataset::open(path).map_err(|e| raised(&e))
}

fn from_bytes(bytes: &[u8], at: usize) -> PyResult<Part> {
    Part::from_bytes(bytes, &format!("part {at}")).map_err(|e| raised(&e))
}

fn to_bytes(part: &Part) -> PyResult<Vec<u8>> {
    part.to_bytes().map_err(|e| raised(&e))
}

fn document(findings: &Findings) -> PyResult<String> {
    let text = serde_json::to_string_pretty(findings).map_err(|e| raised(&e))?;
    Ok(text + "\n")
}

/// Parses parameters. Absent keys have their defaults; unknown keys are rejected.
fn parsed(text: &str) -> PyResult<Parameters> {
    gleaner_cli::parameters_of_json(text).map_err(PyValueError::new_err)
}
