//! Commands and options of the program `gleaner`.

use crate::error::{Error, raised};
use pyo3::{PyResult, Python, pyfunction};
use std::ffi::OsString;

/// Runs a command, given by its arguments, and returns the text that it would print to standard output.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<String> {
    py.detach(move || {
        let mut output = Vec::new();
        gleaner_cli::try_run(with_name(arguments), &mut output).map_err(Error::new_err)?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    })
}

/// Runs a command as the program does, with its output and messages, and returns the exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(move || gleaner_cli::run(with_name(arguments)))
}

/// Parameters that arguments of `gleaner analyze` request, as JSON.
#[pyfunction]
pub(crate) fn parameters(arguments: Vec<OsString>) -> PyResult<String> {
    let parameters = gleaner_cli::parameters(with_name(arguments)).map_err(Error::new_err)?;
    serde_json::to_string(&parameters).map_err(|e| raised(&e))
}

/// Arguments with the program's name in front of them.
fn with_name(arguments: Vec<OsString>) -> impl Iterator<Item = OsString> {
    std::iter::once(OsString::from("gleaner")).chain(arguments)
}
