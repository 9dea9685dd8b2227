//! The exception of the package.

use pyo3::PyErr;
use pyo3::exceptions::PyException;

pyo3::create_exception!(
    gleaner,
    Error,
    PyException,
    "Failure of Gleaner; its text is the text that the command `gleaner` prints in the same case."
);

/// Exception with the text that the program prints about this error.
pub(crate) fn raised(error: &(dyn std::error::Error + 'static)) -> PyErr {
    Error::new_err(gleaner_cli::message(error))
}
