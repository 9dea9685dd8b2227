//! Reads a part of a table: some hosts, a range of time, some columns. The rest is neither opened nor decompressed.

use crate::read::dataset::HostPart;
use crate::rows::projected;
use crate::{Dataset, DatasetError, FileEntry, Result};
use arrow::array::AsArray;
use arrow::compute::concat_batches;
use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use arrow::datatypes::{Schema, SchemaRef, TimestampMillisecondType};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::HostRow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NANOSECONDS_PER_MS: i64 = 1_000_000;

/// Rows and columns to read from a table; by default all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Ids of hosts; `None`: all hosts.
    pub hosts: Option<BTreeSet<String>>,
    /// Earliest selected time, ms since 1970-01-01 UTC; `None`: no limit.
    pub from_ms: Option<i64>,
    /// End of the selected time, itself not selected, ms since 1970-01-01 UTC; `None`: no limit.
    pub until_ms: Option<i64>,
    /// Columns of the result, in this order; `None`: all columns.
    pub columns: Option<Vec<String>>,
}

impl Selection {
    /// Schema of the rows selected from `table`. A column that is named twice occurs once.
    ///
    /// # Errors
    /// [`DatasetError::UnknownColumn`]; it lists all columns that the table does not have.
    pub fn schema(&self, table: &Table) -> Result<SchemaRef> {
        let whole = schema(table);
        let Some(columns) = &self.columns else {
            return Ok(Arc::new(whole));
        };
        let (mut names, mut unknown) = (Vec::new(), Vec::new());
        for column in columns.iter().map(String::as_str) {
            if whole.index_of(column).is_err() {
                unknown.push(column);
            } else if !names.contains(&column) {
                names.push(column);
            }
        }
        if unknown.is_empty() {
            return projected(table, &names);
        }
        Err(DatasetError::UnknownColumn {
            table: table.name.to_owned(),
            column: unknown.join(", "),
        })
    }

    /// Returns false only if the file certainly has no selected rows.
    fn may_be_in(&self, file: &FileEntry) -> bool {
        let starts_in_time = self.until_ms.is_none_or(|ms| file.first_time_ms < ms);
        let ends_in_time = self.from_ms.is_none_or(|ms| file.last_time_ms >= ms);
        let has_host = |hosts: &BTreeSet<String>| hosts.iter().any(|host| file.may_hold(host));
        starts_in_time && ends_in_time && self.hosts.as_ref().is_none_or(has_host)
    }

    /// Returns true if the file has rows outside the selected time.
    fn cuts(&self, file: &FileEntry) -> bool {
        self.from_ms.is_some_and(|ms| file.first_time_ms < ms)
            || self.until_ms.is_some_and(|ms| file.last_time_ms >= ms)
    }
}

/// Parses a point in time, and returns it in ms since 1970-01-01 UTC. `text` is such a number, a date
/// (meaning its first moment in UTC), or RFC 3339 (UTC if it has no offset).
#[must_use]
pub fn instant_ms(text: &str) -> Option<i64> {
    match text.parse() {
        Ok(ms) => Some(ms),
        Err(_) => Some(
            string_to_timestamp_nanos(text)
                .ok()?
                .div_euclid(NANOSECONDS_PER_MS),
        ),
    }
}

impl Dataset {
    /// The selected rows of `table`, in batches of one day and host, ordered by day, host, time, sequence and
    /// key; no batch is empty. Files without selected rows are not opened. Batches are read as they are
    /// requested, and the iterator keeps the dataset open.
    ///
    /// # Errors
    /// [`DatasetError::UnknownColumn`] immediately. If a file is torn, altered or unreadable, an error that
    /// names it takes the place of a batch.
    pub fn select(
        &self,
        table: &Table,
        selection: &Selection,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let wanted = selection.schema(table)?;
        let mut days: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, file) in self.files_selected(table, selection) {
            days.entry(&file.date).or_default().push(at);
        }
        let days: Vec<Vec<usize>> = days.into_values().collect();
        let (dataset, table) = (self.clone(), *table);
        let selection = Arc::new(selection.clone());
        Ok(days.into_iter().flat_map(move |files| {
            let wanted = Arc::clone(&wanted);
            dataset.select_day(table, files, Arc::clone(&selection), wanted)
        }))
    }

    /// UTC days on which `table` may have selected rows, as `2026-11-21`, in order.
    #[must_use]
    pub fn dates_selected(&self, table: &Table, selection: &Selection) -> BTreeSet<&str> {
        let files = self.files_selected(table, selection);
        files.map(|(_, file)| file.date.as_str()).collect()
    }

    /// Rows of [`Dataset::select`] that belong to one UTC day.
    ///
    /// # Errors
    /// As [`Dataset::select`].
    pub fn select_date(
        &self,
        table: &Table,
        date: &str,
        selection: &Selection,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let files = self.files_selected(table, selection);
        let of_date = files.filter(|(_, file)| file.date == date);
        let files = of_date.map(|(at, _)| at).collect();
        let wanted = selection.schema(table)?;
        Ok(self.select_day(*table, files, Arc::new(selection.clone()), wanted))
    }

    /// Upper limit for the number of selected rows of `table`, from the manifest. It is exact if everything
    /// is selected.
    #[must_use]
    pub fn rows_selected_at_most(&self, table: &Table, selection: &Selection) -> u64 {
        let files = self.files_selected(table, selection);
        files.map(|(_, file)| file.rows).sum()
    }

    /// Ids of the hosts that had this name in any of their inventories.
    ///
    /// # Errors
    /// A file of table `hosts` that is torn, altered or unreadable.
    pub fn hosts_named(&self, host_name: &str) -> Result<BTreeSet<String>> {
        let mut ids = BTreeSet::new();
        self.each_name(|id, name| {
            if name == host_name {
                ids.insert(id.to_owned());
            }
        })?;
        Ok(ids)
    }

    /// Name of each host in its last inventory, by host id. Hosts without an inventory are absent.
    ///
    /// # Errors
    /// As [`Dataset::hosts_named`].
    pub fn host_names(&self) -> Result<BTreeMap<String, String>> {
        let mut names = BTreeMap::new();
        self.each_name(|id, name| {
            names.insert(id.to_owned(), name.to_owned());
        })?;
        Ok(names)
    }

    /// Calls `take` with the host's id and name of each inventory; a host's inventories are in order of time.
    fn each_name(&self, mut take: impl FnMut(&str, &str)) -> Result<()> {
        let columns = ["host_id", "host_name"].map(str::to_owned).to_vec();
        let selection = Selection {
            columns: Some(columns),
            ..Selection::default()
        };
        for rows in self.select(&HostRow::TABLE, &selection)? {
            let rows = rows?;
            let text = |index: usize| rows.column(index).as_string::<i32>().iter();
            for (id, name) in text(0).zip(text(1)) {
                if let (Some(id), Some(name)) = (id, name) {
                    take(id, name);
                }
            }
        }
        Ok(())
    }

    /// The rows of one host, as [`Dataset::read_host`] returns them, but only from `from_ms` to before
    /// `until_ms`. Files without such rows are not opened.
    ///
    /// # Errors
    /// As [`Dataset::read_host`].
    pub fn read_host_between(
        &self,
        table: &Table,
        host: &str,
        columns: &[&str],
        from_ms: Option<i64>,
        until_ms: Option<i64>,
    ) -> Result<RecordBatch> {
        let wanted = projected(table, columns)?;
        let selection = Selection {
            from_ms,
            until_ms,
            ..Selection::default()
        };
        let is_read = |file: &&FileEntry| selection.may_be_in(file) && file.may_hold(host);
        let days = self.files_by_day(table);
        let days: Vec<Vec<&FileEntry>> = days.map(|f| f.filter(is_read).collect()).collect();
        let files: Vec<&FileEntry> = days.iter().flatten().copied().collect();
        let mut parts = self.parts(&files, host)?.into_iter();
        let days = days.iter().map(|files| {
            let parts: Vec<HostPart> = parts.by_ref().take(files.len()).flatten().collect();
            self.read_selected(table, files, &parts, &selection, &wanted)
        });
        let days = days.collect::<Result<Vec<_>>>()?;
        concat_batches(&wanted, &days).map_err(DatasetError::rows(table.name))
    }

    /// Selected rows of one host: of `parts`, its rows in `files`, which must all be of one day.
    fn read_selected(
        &self,
        table: &Table,
        files: &[&FileEntry],
        parts: &[HostPart],
        selection: &Selection,
        wanted: &SchemaRef,
    ) -> Result<RecordBatch> {
        if !files.iter().any(|file| selection.cuts(file)) {
            return self.read_parts(table, parts, wanted);
        }
        let timed = with_time(table, wanted).map_err(DatasetError::rows(table.name))?;
        let rows = self.read_parts(table, parts, &timed)?;
        cut(&rows, selection, wanted).map_err(DatasetError::rows(table.name))
    }

    /// Files with selected rows, each with its index in the manifest.
    fn files_selected<'a>(
        &'a self,
        table: &Table,
        selection: &Selection,
    ) -> impl Iterator<Item = (usize, &'a FileEntry)> {
        let files = self.manifest().files.iter().enumerate();
        files.filter(move |(_, file)| file.table == table.name && selection.may_be_in(file))
    }

    /// Entries of files, given by their indexes in the manifest.
    fn entries(&self, files: &[usize]) -> Vec<&FileEntry> {
        let all = &self.manifest().files;
        files.iter().filter_map(|at| all.get(*at)).collect()
    }

    /// Selected rows of `files` (indexes in the manifest), which must all be of one day; host by host.
    fn select_day(
        &self,
        table: Table,
        files: Vec<usize>,
        selection: Arc<Selection>,
        wanted: SchemaRef,
    ) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        let hosts = match &selection.hosts {
            Some(hosts) => Ok(hosts.clone()),
            None => self.hosts_of(self.entries(&files).into_iter()),
        };
        let (hosts, error) = match hosts {
            Ok(hosts) => (hosts, None),
            Err(error) => (BTreeSet::new(), Some(error)),
        };
        let ids = hosts.iter().cloned().collect();
        let dataset = self.ordered(ids, self.entries(&files).into_iter());
        let rows = hosts.into_iter().map(move |host| {
            let mut files = dataset.entries(&files);
            files.retain(|file| file.may_hold(&host));
            let parts = dataset.parts(&files, &host)?;
            let parts: Vec<HostPart> = parts.into_iter().flatten().collect();
            dataset.read_selected(&table, &files, &parts, &selection, &wanted)
        });
        let is_empty = |rows: &Result<RecordBatch>| rows.as_ref().is_ok_and(|r| r.num_rows() == 0);
        let rows = rows.filter(move |rows| !is_empty(rows));
        error.map(Err).into_iter().chain(rows)
    }
}

/// Schema with the columns of `wanted`, and with the time as the last column if `wanted` lacks it.
fn with_time(table: &Table, wanted: &SchemaRef) -> Result<SchemaRef, ArrowError> {
    if wanted.index_of("time").is_ok() {
        return Ok(Arc::clone(wanted));
    }
    let whole = schema(table);
    let time = whole.field_with_name("time")?.clone();
    let fields = wanted.fields().iter().cloned().chain([Arc::new(time)]);
    let metadata = wanted.metadata.clone();
    let fields = fields.collect::<Vec<_>>();
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

/// Cuts out the rows of the selected time. They are contiguous, because a host's rows are ordered by time.
fn cut(
    rows: &RecordBatch,
    selection: &Selection,
    wanted: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let times = rows.column(rows.schema_ref().index_of("time")?);
    let times = times.as_primitive::<TimestampMillisecondType>().values();
    let before = |ms: i64| times.partition_point(|time| *time < ms);
    let first = selection.from_ms.map_or(0, before);
    let end = selection.until_ms.map_or(times.len(), before).max(first);
    let asked: Vec<usize> = (0..wanted.fields().len()).collect();
    rows.slice(first, end - first)
        .project(&asked)?
        .with_schema(Arc::clone(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_as_people_and_programs_write_them() {
        for (text, ms) in [
            ("1795219200000", 1_795_219_200_000),
            ("-1", -1),
            ("2026-11-21", 1_795_219_200_000),
            ("2026-11-21T00:00:00Z", 1_795_219_200_000),
            ("2026-11-21T02:00:00.250+02:00", 1_795_219_200_250),
            ("2026-11-20 23:59:59", 1_795_219_199_000),
        ] {
            assert_eq!(instant_ms(text), Some(ms), "{text}");
        }
        for text in [
            "",
            "today",
            "2026-13-01",
            "2026-11-21T25:00:00Z",
            "1.5",
            "21.11.2026",
        ] {
            assert_eq!(instant_ms(text), None, "{text}");
        }
    }
}
