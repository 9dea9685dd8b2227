//! Merges the rows of several files of one table and day, host by host, and drops repetitions.

use crate::file::arrow_file::ArrowFile;
use crate::file::index::HostRows;
use crate::rows::order;
use crate::{DatasetError, Result};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use std::iter::Peekable;
use std::sync::Arc;

/// Iterator over the hosts of `files` in order; an item has all rows of a host, sorted.
pub(crate) struct Merge<'a> {
    table: Table,
    wanted: SchemaRef,
    files: Vec<(&'a ArrowFile, Peekable<Hosts<'a>>)>,
}

type Hosts<'a> = Box<dyn Iterator<Item = Result<HostRows>> + 'a>;

impl<'a> Merge<'a> {
    pub(crate) fn new(table: &Table, files: &'a [Arc<ArrowFile>]) -> Self {
        let files = files.iter().map(|file| {
            let hosts: Hosts<'a> = Box::new(file.hosts());
            (&**file, hosts.peekable())
        });
        Self {
            table: *table,
            wanted: Arc::new(schema(table)),
            files: files.collect(),
        }
    }

    /// The rows of the next host, as their places in each file that has some.
    fn next_parts(&mut self) -> Result<Vec<(&'a ArrowFile, HostRows)>> {
        let mut first: Option<String> = None;
        for (_, hosts) in &mut self.files {
            match hosts.peek() {
                Some(Ok(host)) if first.as_ref().is_none_or(|id| host.host_id < *id) => {
                    first = Some(host.host_id.clone());
                }
                Some(Err(_)) => {
                    let error = hosts.next().and_then(Result::err);
                    return error.map_or(Ok(Vec::new()), Err);
                }
                _ => {}
            }
        }
        let mut parts = Vec::new();
        for (file, hosts) in &mut self.files {
            let is_next = |host: &Result<HostRows>| {
                host.as_ref()
                    .is_ok_and(|h| Some(&h.host_id) == first.as_ref())
            };
            if let Some(Ok(host)) = hosts.next_if(is_next) {
                parts.push((*file, host));
            }
        }
        Ok(parts)
    }

    fn next_host(&mut self) -> Result<Option<RecordBatch>> {
        let parts = self.next_parts()?;
        if parts.is_empty() {
            return Ok(None);
        }
        let mut batches = Vec::new();
        for (file, host) in &parts {
            batches.extend(file.read(host, &self.wanted)?);
        }
        let rows = concat_batches(&self.wanted, &batches);
        let rows = if parts.len() == 1 {
            rows // a single file is sorted and holds each row once
        } else {
            rows.and_then(|rows| order::sorted_once(&self.table, &rows, &[]))
        };
        rows.map(Some).map_err(DatasetError::rows(self.table.name))
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_host().transpose()
    }
}
