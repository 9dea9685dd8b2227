//! Native part of the Python package `gleaner`: functions over a dataset. The package's Python code
//! (`python/gleaner`) adds classes, options and frames.
//!
//! ```text
//! command: the program's own commands and options ─► gleaner_cli
//! analysis: whole, or by ranges of hosts           ─► gleaner_analysis
//! tables: rows as Arrow streams                    ─► gleaner_dataset
//! ```
//!
//! Functions release the interpreter's lock while they work, so that other Python threads run. A path is that of
//! a folder, or a URL (`s3://bucket/prefix`); parameters and findings are JSON texts, so that Python's side needs no copy of their types.
//!
//! Rooms, from the top; each uses only those after it: `_gleaner`, `analysis`, `command`, `tables`, `open`, `error`.

mod analysis;
mod command;
mod error;
mod open;
mod tables;

/// Native functions of the package `gleaner`, which documents them in its own classes and functions.
#[pyo3::pymodule]
mod _gleaner {
    #[pymodule_export]
    use super::analysis::{analyze, analyze_part, finish, merge, plans};
    #[pymodule_export]
    use super::command::{main, parameters, run};
    #[pymodule_export]
    use super::error::Error;
    #[pymodule_export]
    use super::tables::{Rows, hosts, read, span, tables};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
