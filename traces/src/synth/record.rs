//! A record of a host's trace: all rows of one sequence number.

use gleaner_schemas::column::{Row, Table, Value};
use gleaner_schemas::rows::{
    ActivityRow, CgroupRow, EventRow, FileRow, GapRow, HostRow, MissingValueRow, NumaNodeRow,
    ProcessRow, SampleRow,
};

/// A record of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Sequence number in the host's database, from 1.
    pub sequence: i64,
    /// Time of the record, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Rows that have the record's sequence number.
    pub rows: Rows,
}

/// Rows of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// A time without samples, which ends at this record's time.
    Gap(GapRow),
    /// Inventory of the host.
    Host(Box<HostRow>),
    /// An event on the host.
    Event(EventRow),
    /// A sample, with its rows in other tables.
    Sample(Box<SampleRows>),
}

/// A sample with all rows that belong to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleRows {
    /// Row of the sample itself: memory, load, and the agent's cost.
    pub sample: SampleRow,
    /// Rows of the active processes.
    pub processes: Vec<ProcessRow>,
    /// Files in use whose rows changed.
    pub files: Vec<FileRow>,
    /// Sources of the owner's activity whose rows changed.
    pub activity: Vec<ActivityRow>,
    /// Missing values that changed.
    pub missing_values: Vec<MissingValueRow>,
    /// NUMA nodes, if there are several.
    pub numa_nodes: Vec<NumaNodeRow>,
    /// Control groups of active processes.
    pub cgroups: Vec<CgroupRow>,
}

impl Record {
    /// Passes every row to `each`, together with the name of its table. The row's values are in the order of
    /// the table's columns.
    ///
    /// # Errors
    /// The first error that `each` returns.
    pub fn try_each<E>(
        &self,
        mut each: impl FnMut(&'static str, Vec<Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.rows {
            Rows::Gap(row) => each(name_of(row), row.to_values()),
            Rows::Host(row) => each(name_of(&**row), row.to_values()),
            Rows::Event(row) => each(name_of(row), row.to_values()),
            Rows::Sample(rows) => {
                pass_rows(std::slice::from_ref(&rows.sample), &mut each)?;
                pass_rows(&rows.processes, &mut each)?;
                pass_rows(&rows.files, &mut each)?;
                pass_rows(&rows.activity, &mut each)?;
                pass_rows(&rows.missing_values, &mut each)?;
                pass_rows(&rows.numa_nodes, &mut each)?;
                pass_rows(&rows.cgroups, &mut each)
            }
        }
    }

    /// Number of rows in all tables.
    #[must_use]
    pub fn rows_count(&self) -> usize {
        match &self.rows {
            Rows::Gap(_) | Rows::Host(_) | Rows::Event(_) => 1,
            Rows::Sample(rows) => {
                1 + rows.processes.len()
                    + rows.files.len()
                    + rows.activity.len()
                    + rows.missing_values.len()
                    + rows.numa_nodes.len()
                    + rows.cgroups.len()
            }
        }
    }
}

fn name_of<R: Row>(_: &R) -> &'static str {
    const { R::TABLE.name }
}

fn pass_rows<R: Row, E>(
    rows: &[R],
    each: &mut impl FnMut(&'static str, Vec<Value>) -> Result<(), E>,
) -> Result<(), E> {
    const fn name(table: &Table) -> &'static str {
        table.name
    }
    rows.iter()
        .try_for_each(|row| each(const { name(&R::TABLE) }, row.to_values()))
}
