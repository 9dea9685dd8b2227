//! Reads one host's tables in the order in which they were recorded.
//!
//! The dataset returns rows by time; after a clock was set back, old and new rows are mixed. This module
//! sorts them by database (in order of its first sample) and sequence number, which is the order of
//! recording.

use super::samples::{Samples, in_both};
use super::span::{Lead, Span};
use super::{SampleRows, carried};
use crate::error::{AnalysisError, Result};
use crate::trace::frame::{DATABASE, Frame, SEQUENCE, TIME};
use gleaner_dataset::Dataset;
use gleaner_hosts::recorded::{Databases, order};
use gleaner_schemas::column::Table;

/// A host of a dataset, in a span of time.
pub(crate) struct HostReader<'a> {
    dataset: &'a Dataset,
    pub(crate) host: &'a str,
    pub(crate) span: Span,
    /// Samples of the span's first UTC day that are before the span.
    lead: Option<Lead>,
    databases: Databases,
}

impl<'a> HostReader<'a> {
    pub(crate) fn new(dataset: &'a Dataset, host: &'a str, span: Span) -> Self {
        Self {
            dataset,
            host,
            span,
            lead: None,
            databases: Databases::default(),
        }
    }

    /// Lets [`HostReader::read_changes`] return rows from before the span that are still valid in it.
    pub(crate) fn set_lead(&mut self, lead: Lead) {
        self.lead = Some(lead);
    }

    /// The host's rows of `table`; empty if it has none.
    pub(crate) fn read(&mut self, table: &Table, columns: &[&str]) -> Result<Frame> {
        self.read_in(self.span, table, columns)
    }

    /// Reads the rows of a span other than the reader's.
    pub(crate) fn read_in(&mut self, span: Span, table: &Table, columns: &[&str]) -> Result<Frame> {
        let mut frame = self.rows(span, table, &["database_id", SEQUENCE, "time"], columns)?;
        let databases = self.number_databases(&frame)?;
        let sequences = frame.present(SEQUENCE)?;
        let order = order(sequences.len(), |row| (databases[row], sequences[row]));
        frame.set(DATABASE, databases);
        if let Some(order) = order {
            frame.reorder(&order)?;
        }
        Ok(frame)
    }

    /// Reads the rows that belong to `samples`.
    pub(crate) fn read_of_samples(
        &mut self,
        table: &Table,
        columns: &[&str],
        samples: &Samples,
    ) -> Result<SampleRows> {
        self.read_of_samples_in(self.span, table, columns, samples)
    }

    /// Reads rows of a table of changes, which are valid from their sample on: rows from before the span that
    /// are still valid are assigned to its first sample.
    pub(crate) fn read_changes(
        &mut self,
        table: &Table,
        columns: &[&str],
        samples: &Samples,
    ) -> Result<SampleRows> {
        let Some(lead) = self.lead.take() else {
            return self.read_of_samples(table, columns, samples);
        };
        let span = self.span.since_midnight();
        let all = self.read_of_samples_in(span, table, columns, &lead.samples);
        let told = all.and_then(|all| carried::into_span(all, table, &lead));
        self.lead = Some(lead);
        told
    }

    /// Reads rows by sample. The database's name would be a third of the bytes read; it is skipped if there
    /// is only one database.
    fn read_of_samples_in(
        &mut self,
        span: Span,
        table: &Table,
        columns: &[&str],
        samples: &Samples,
    ) -> Result<SampleRows> {
        if samples.database.last() != Some(&0) {
            let rows = self.read_in(span, table, columns)?;
            let sample_of = samples.of_rows(&rows)?;
            return Ok(SampleRows { rows, sample_of });
        }
        let mut rows = self.rows(span, table, &[SEQUENCE, "time"], columns)?;
        let sequences = rows.present(SEQUENCE)?;
        if let Some(order) = order(sequences.len(), |row| sequences[row]) {
            rows.reorder(&order)?;
        }
        // A sample and its rows have the same time; rows of a database without samples have others.
        let keys = rows.present(SEQUENCE)?.iter().zip(rows.present(TIME)?);
        let sample_of = in_both(samples.sequence.iter().zip(&samples.time_ms), keys);
        Ok(SampleRows { rows, sample_of })
    }

    fn rows(
        &self,
        span: Span,
        table: &Table,
        identity: &[&str],
        columns: &[&str],
    ) -> Result<Frame> {
        let wanted = [identity, columns].concat();
        let Span { from_ms, until_ms } = span;
        let batch = (self.dataset).read_host_between(table, self.host, &wanted, from_ms, until_ms);
        let batch = batch.map_err(|source| AnalysisError::Dataset {
            table: table.name,
            host: self.host.to_owned(),
            source,
        })?;
        Frame::new(table.name, self.host, &batch)
    }

    /// Empty frame, as [`HostReader::read`] returns for a host without rows.
    pub(crate) fn nothing(&self, table: &Table, columns: &[&str]) -> Frame {
        let mut wanted = vec![DATABASE, SEQUENCE, TIME];
        wanted.extend(columns);
        Frame::empty(table, self.host, &wanted)
    }

    fn number_databases(&mut self, frame: &Frame) -> Result<Vec<i64>> {
        let ids = frame.texts("database_id")?;
        let number = |id: Option<&str>| self.databases.number(id.unwrap_or_default());
        Ok(ids.iter().map(number).collect())
    }
}
