//! Datasets by their paths or URLs.

use crate::error::raised;
use gleaner_dataset::Dataset;
use pyo3::PyResult;
use std::path::Path;

/// Opens the dataset in a folder, or at a URL (`s3://bucket/prefix`).
pub(crate) fn open(path: &Path) -> PyResult<Dataset> {
    gleaner_objects::open(path).map_err(|e| raised(&e))
}
