//! A host's descriptions of itself, and the gaps that it recorded.

use crate::error::Result;
use crate::trace::frame::{Frame, TIME};
use crate::trace::reader::HostReader;
use crate::trace::span::Span;
use gleaner_hosts::recorded::{Gap, gaps};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{GapRow, HostRow};

/// The host as it last described itself; all absent if it never did.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) host_name: Option<String>,
    pub(crate) kernel_release: Option<String>,
    pub(crate) cpus_count: Option<i64>,
    /// Trace from which the host was imported.
    pub(crate) source: Option<String>,
    /// Headroom that `harvestable_bytes` leaves, as a share of physical memory.
    pub(crate) headroom_share: Option<f64>,
    /// Time and configured interval of each description.
    pub(crate) intervals: Vec<(i64, Option<i64>)>,
}

impl Inventory {
    pub(crate) fn read(reader: &mut HostReader<'_>) -> Result<Self> {
        let columns = [
            "host_name",
            "kernel_release",
            "cpus_count",
            "headroom_share",
            "source",
            "sample_interval_ms",
        ];
        let rows = descriptions(reader, &columns)?;
        let Some(last) = rows.rows_count().checked_sub(1) else {
            return Ok(Self::default());
        };
        let text = |column| Ok(rows.texts(column)?.get(last).map(str::to_owned));
        Ok(Self {
            host_name: text("host_name")?,
            kernel_release: text("kernel_release")?,
            cpus_count: rows.integers("cpus_count")?.get(last),
            source: text("source")?,
            headroom_share: rows.reals("headroom_share")?.get(last),
            intervals: rows
                .present(TIME)?
                .iter()
                .copied()
                .zip(rows.integers("sample_interval_ms")?.iter())
                .collect(),
        })
    }
}

/// The host's descriptions of itself before the span's end; each holds until the next one. If there are none,
/// the host's first description counts.
pub(crate) fn descriptions(reader: &mut HostReader<'_>, columns: &[&str]) -> Result<Frame> {
    let rows = reader.read_in(Span::default(), &HostRow::TABLE, columns)?;
    let before = reader.span.with_all_before();
    let said = rows
        .present(TIME)?
        .iter()
        .map(|&time_ms| before.holds(time_ms));
    let mut said: Vec<bool> = said.collect();
    if !said.contains(&true)
        && let Some(first) = said.first_mut()
    {
        *first = true;
    }
    rows.filter_rows(&said)
}

/// Gaps that the host recorded since the midnight before the span began. A gap is recorded when it ends,
/// which may be after the span.
pub(crate) fn recorded_gaps(reader: &mut HostReader<'_>) -> Result<Vec<Gap>> {
    let told = reader.span.since_midnight().with_all_after();
    let rows = reader.read_in(told, &GapRow::TABLE, &Gap::COLUMNS)?;
    let [from, to, cause] = Gap::COLUMNS;
    let (from, to) = (rows.integers(from)?, rows.integers(to)?);
    Ok(gaps(from.iter(), to.iter(), rows.texts(cause)?.iter()))
}
