//! GWA-T-13: virtual machines of Materna's data centres, as published by the Grid Workloads Archive: three
//! traces of a month each, one CSV file per machine, with a row every 300 s.
//!
//! ```text
//! "Timestamp";"CPU cores";…;"Memory capacity provisioned [KB]";"Memory usage [KB]";"Memory usage [%]";…
//! "04.11.2015 20:40:34";"2";…;"6291456";"1321205";"21,0";…
//! ```
//!
//! The importer follows the published description of the format, since no file of the archive was available.
//! The archive names no time zone: times are taken as UTC, as other readers of the trace do.

use super::archive::{Archive, Dialect, Time, fills};
use super::{ColumnOrigin, Source};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::path::Path;

/// The columns that each trace fills.
const FILLS: &[ColumnOrigin<'static>] =
    &fills("Memory capacity provisioned less Memory usage [KB]");

const fn source(name: &'static str, host_prefix: &'static str) -> Source<'static> {
    Source {
        name,
        host_prefix,
        available_meaning: "Available memory is what the hypervisor does not count as used. The trace does not say how it counts: \
            where that is memory in active use, as in Bitbrains' traces, it is an upper bound.",
        has_invented_sizes: false,
        fills: FILLS,
        columns: &[],
    }
}

/// The traces: November 2015, December 2015 and January 2016, of 520 to 550 machines each. The same number in
/// two traces denotes two different machines.
pub const TRACES: [Source<'static>; 3] = [
    source("GWA-T-13 Materna 1", "materna-1"),
    source("GWA-T-13 Materna 2", "materna-2"),
    source("GWA-T-13 Materna 3", "materna-3"),
];

/// German notation: day, month, year, and a decimal comma.
pub const DIALECT: Dialect = Dialect {
    time: "Timestamp",
    time_of: |text| {
        let time = DateTime::strptime("%d.%m.%Y %H:%M:%S", text).ok()?;
        let time = TimeZone::UTC.to_timestamp(time).ok()?;
        Some(Time {
            ms: time.as_millisecond() as f64,
            in_seconds: false,
        })
    },
    number_of: |text| match text.split_once(',') {
        None => text.parse().ok(),
        Some((whole, part)) if !whole.contains('.') && part.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{whole}.{part}").parse().ok()
        }
        Some(_) => None,
    },
};

/// Importer of the machines in `folder`, whose trace is `source` (one of [`TRACES`]).
#[must_use]
pub fn importer(folder: &Path, source: Source<'static>) -> Archive {
    Archive::new(folder, source, &DIALECT)
}
