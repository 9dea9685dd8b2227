//! A record of a host's trace: all rows of one sequence number.

use gleaner_schemas::column::{Row, Table, Value};
use gleaner_schemas::rows::{
    AbsenceRow, ActivityRow, CgroupRow, EventRow, FileRow, GapRow, HostRow, NodeRow, ProcessRow,
    SampleRow,
};

/// A record of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Sequence number in the host's database, from 1.
    pub sequence: i64,
    /// Time of the record, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Rows of the record.
    pub rows: Rows,
}

/// Content of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// The time without samples that ends here.
    Gap(GapRow),
    /// Row of the host.
    Host(Box<HostRow>),
    /// Something that happened.
    Event(EventRow),
    /// Rows of a sample.
    Sample(Box<SampleRows>),
}

/// A sample with all that belongs to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleRows {
    /// Memory, load, cost.
    pub sample: SampleRow,
    /// Rows of the active processes.
    pub processes: Vec<ProcessRow>,
    /// Files in use, as far as they changed.
    pub files: Vec<FileRow>,
    /// Sources of the owner's activity, as far as they have news.
    pub activity: Vec<ActivityRow>,
    /// Absences, as far as they changed.
    pub absences: Vec<AbsenceRow>,
    /// Rows of the NUMA nodes, if there are several.
    pub nodes: Vec<NodeRow>,
    /// Control groups of active processes.
    pub cgroups: Vec<CgroupRow>,
}

impl Record {
    /// Hands every row over, with its table, as values in the order of the table's columns.
    ///
    /// # Errors
    /// The first that `each` gives.
    pub fn try_each<E>(
        &self,
        mut each: impl FnMut(&'static str, Vec<Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.rows {
            Rows::Gap(row) => each(name_of(row), row.to_values()),
            Rows::Host(row) => each(name_of(&**row), row.to_values()),
            Rows::Event(row) => each(name_of(row), row.to_values()),
            Rows::Sample(rows) => {
                hand_over(std::slice::from_ref(&rows.sample), &mut each)?;
                hand_over(&rows.processes, &mut each)?;
                hand_over(&rows.files, &mut each)?;
                hand_over(&rows.activity, &mut each)?;
                hand_over(&rows.absences, &mut each)?;
                hand_over(&rows.nodes, &mut each)?;
                hand_over(&rows.cgroups, &mut each)
            }
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows_count(&self) -> usize {
        match &self.rows {
            Rows::Gap(_) | Rows::Host(_) | Rows::Event(_) => 1,
            Rows::Sample(rows) => {
                1 + rows.processes.len()
                    + rows.files.len()
                    + rows.activity.len()
                    + rows.absences.len()
                    + rows.nodes.len()
                    + rows.cgroups.len()
            }
        }
    }
}

fn name_of<R: Row>(_: &R) -> &'static str {
    const { R::TABLE.name }
}

fn hand_over<R: Row, E>(
    rows: &[R],
    each: &mut impl FnMut(&'static str, Vec<Value>) -> Result<(), E>,
) -> Result<(), E> {
    const fn name(table: &Table) -> &'static str {
        table.name
    }
    rows.iter()
        .try_for_each(|row| each(const { name(&R::TABLE) }, row.to_values()))
}
