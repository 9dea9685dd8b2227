//! What could not be read, and how the sources of the owner's activity did.

use crate::error::Result;
use crate::reader::HostReader;
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::{Absence, ActivitySource};
use gleaner_schemas::rows::{AbsenceRow, ActivityRow};

/// Each item and reason once, in the order in which they were met.
pub(crate) fn absences(reader: &mut HostReader<'_>) -> Result<Vec<Absence>> {
    let rows = reader.read(&AbsenceRow::TABLE, &["item", "reason", "detail"])?;
    rows.groups(&["item", "reason"])?
        .into_iter()
        .map(|group| {
            Ok(Absence {
                host: reader.host.to_owned(),
                item: rows.text("item", group[0])?,
                reason: rows.text("reason", group[0])?,
                detail: rows.text("detail", group[0])?,
                samples_count: group.len() as i64,
            })
        })
        .collect()
}

/// Each source and state once, in the order in which they were met.
pub(crate) fn activity_sources(reader: &mut HostReader<'_>) -> Result<Vec<ActivitySource>> {
    let rows = reader.read(&ActivityRow::TABLE, &["source", "state"])?;
    rows.groups(&["source", "state"])?
        .into_iter()
        .map(|group| {
            Ok(ActivitySource {
                host: reader.host.to_owned(),
                source: rows.text("source", group[0])?,
                state: rows.text("state", group[0])?,
                samples_count: group.len() as i64,
            })
        })
        .collect()
}
