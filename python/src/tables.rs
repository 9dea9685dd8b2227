//! The dataset's tables, as Arrow streams that any library with Arrow's PyCapsule interface reads.

use crate::error::{Error, raised};
use crate::open::open;
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowSchema;
use arrow::ffi_stream::FFI_ArrowArrayStream;
use arrow::record_batch::RecordBatchIterator;
use gleaner_dataset::{Dataset, Selection, instant_ms};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{DATASET_TABLES, SampleRow, table};
use pyo3::types::PyCapsule;
use pyo3::{Bound, PyAny, PyResult, Python, pyclass, pyfunction, pymethods};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Ids of the dataset's hosts, sorted.
#[pyfunction]
pub(crate) fn hosts(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    py.detach(move || {
        let hosts = open(&path)?.hosts();
        hosts.map_err(|e| raised(&e))
    })
}

/// Names of all tables, each with its number of rows.
#[pyfunction]
pub(crate) fn tables(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(&'static str, u64)>> {
    py.detach(move || {
        let dataset = open(&path)?;
        let tables = DATASET_TABLES.iter();
        Ok(tables.map(|t| (t.name, dataset.rows(t))).collect())
    })
}

/// Times of the first and the last sample, in ms since 1970-01-01 UTC; `None` if there are no samples.
#[pyfunction]
pub(crate) fn span(py: Python<'_>, path: PathBuf) -> PyResult<Option<(i64, i64)>> {
    py.detach(move || {
        let dataset = open(&path)?;
        let files = dataset.manifest().files.iter();
        let samples = files.filter(|file| file.table == SampleRow::TABLE.name);
        let times = samples.map(|file| (file.first_time_ms, file.last_time_ms));
        Ok(times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))))
    })
}

/// Selected rows of a table. Hosts are given by ids or names; times are texts as the program's options take them.
#[pyfunction]
#[pyo3(signature = (path, table, hosts=None, columns=None, from_=None, until=None))]
pub(crate) fn read(
    py: Python<'_>,
    path: PathBuf,
    table: &str,
    hosts: Option<Vec<String>>,
    columns: Option<Vec<String>>,
    from_: Option<&str>,
    until: Option<&str>,
) -> PyResult<Rows> {
    py.detach(move || {
        let dataset = open(&path)?;
        let table = known(table)?;
        let hosts = hosts.map(|hosts| gleaner_cli::host_ids(&hosts, &dataset));
        let selection = Selection {
            hosts: hosts.transpose().map_err(Error::new_err)?,
            from_ms: instant("from_", from_)?,
            until_ms: instant("until", until)?,
            columns,
        };
        // A column that does not exist is reported now, and not by the first batch.
        selection.schema(&table).map_err(|e| raised(&e))?;
        Ok(Rows {
            dataset,
            table,
            selection,
        })
    })
}

/// Selected rows of a table, by Arrow's PyCapsule interface. Each stream reads the rows anew, batch by batch.
#[pyclass(frozen, module = "gleaner._gleaner")]
pub(crate) struct Rows {
    dataset: Dataset,
    table: Table,
    selection: Selection,
}

#[pymethods]
impl Rows {
    /// Upper limit for the number of rows, from the manifest; exact if everything is selected.
    #[getter]
    fn rows_at_most(&self) -> u64 {
        let (table, selection) = (&self.table, &self.selection);
        self.dataset.rows_selected_at_most(table, selection)
    }

    /// Ids of the selected hosts, sorted: all of the dataset's if no hosts were selected.
    fn hosts(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| match &self.selection.hosts {
            Some(hosts) => Ok(hosts.iter().cloned().collect()),
            None => self.dataset.hosts().map_err(|e| raised(&e)),
        })
    }

    /// Rows that are also of these hosts (by id) and of this time, with these columns. Times are in
    /// ms since 1970-01-01 UTC; the end is excluded.
    #[pyo3(signature = (columns=None, hosts=None, from_ms=None, until_ms=None))]
    fn narrowed(
        &self,
        columns: Option<Vec<String>>,
        hosts: Option<BTreeSet<String>>,
        from_ms: Option<i64>,
        until_ms: Option<i64>,
    ) -> PyResult<Self> {
        let before = &self.selection;
        let hosts = match (&before.hosts, hosts) {
            (Some(before), Some(hosts)) => Some(before & &hosts),
            (before, hosts) => hosts.or_else(|| before.clone()),
        };
        let selection = Selection {
            hosts,
            from_ms: before.from_ms.max(from_ms),
            until_ms: [before.until_ms, until_ms].into_iter().flatten().min(),
            columns: columns.or_else(|| before.columns.clone()),
        };
        selection.schema(&self.table).map_err(|e| raised(&e))?;
        Ok(Self {
            dataset: self.dataset.clone(),
            table: self.table,
            selection,
        })
    }

    /// Capsule of the rows' schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.selection.schema(&self.table);
        let schema = schema.map_err(|e| raised(&e))?;
        let schema = FFI_ArrowSchema::try_from(&*schema).map_err(|e| raised(&e))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Capsule of a stream of the rows, from the first. Types are the table's: a requested schema is ignored, as
    /// the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = self.selection.schema(&self.table);
        let batches = self.dataset.select(&self.table, &self.selection);
        let (schema, batches) = (
            schema.map_err(|e| raised(&e))?,
            batches.map_err(|e| raised(&e))?,
        );
        let batches = batches.map(|rows| {
            rows.map_err(|e| ArrowError::ExternalError(gleaner_cli::message(&e).into()))
        });
        let reader = RecordBatchIterator::new(batches, schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

fn known(name: &str) -> PyResult<Table> {
    table(name).ok_or_else(|| {
        let names: Vec<&str> = DATASET_TABLES.iter().map(|t| t.name).collect();
        Error::new_err(format!(
            "there is no table {name:?}: there are {}",
            names.join(", ")
        ))
    })
}

/// Parses the time of a parameter, in ms since 1970-01-01 UTC.
fn instant(parameter: &str, text: Option<&str>) -> PyResult<Option<i64>> {
    let Some(text) = text else {
        return Ok(None);
    };
    let parsed = instant_ms(text).ok_or_else(|| {
        Error::new_err(format!(
            "invalid time {text:?} for {parameter}: give a date (UTC), RFC 3339, or ms since 1970-01-01 UTC"
        ))
    });
    parsed.map(Some)
}
