//! Parts that the end-to-end tests share: paths of the built programs, and a comparison of the rows in a
//! dataset with those in databases.
//!
//! Rooms, from the top; each uses only those after it: `fuzz`, `same_rows`.

pub mod fuzz;
mod same_rows;

pub use gleaner_harness::program;
pub use same_rows::same_rows;

use arrow::array::AsArray;
use std::path::PathBuf;

/// Root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Values of all columns of `batch`, which have integers. Absent values are `None`.
///
/// # Panics
/// If a column does not have 64-bit integers.
#[must_use]
pub fn integers(batch: &arrow::array::RecordBatch) -> Vec<Vec<Option<i64>>> {
    batch
        .columns()
        .iter()
        .map(|c| {
            c.as_primitive::<arrow::datatypes::Int64Type>()
                .iter()
                .collect()
        })
        .collect()
}
