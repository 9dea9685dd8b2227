//! What the end-to-end tests share: where the built programs lie, and when two places hold the same rows.
//!
//! Rooms, from the top; each uses only those after it: `fuzz`, `mutate`, `same_rows`.

pub mod fuzz;
pub mod mutate;
mod same_rows;

pub use same_rows::same_rows;

use arrow::array::AsArray;
use std::path::PathBuf;

/// The built program `name`, from the profile that the running test was built with.
///
/// # Errors
/// When it is not there: `cargo test --workspace` builds it, `cargo test -p gleaner-tests` does not.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let test =
        std::env::current_exe().map_err(|e| format!("cannot tell where the test lies: {e}"))?;
    let folder = test
        .ancestors()
        .nth(2)
        .ok_or("the test lies in no target folder")?;
    let program = folder.join(name);
    if program.exists() {
        Ok(program)
    } else {
        Err(format!(
            "{} is missing: run `cargo build --workspace` first",
            program.display()
        ))
    }
}

/// Root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The integer columns of `batch`, absent values as `None`.
///
/// # Panics
/// When a column is not of 64-bit integers.
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
