//! GWA-T-12: virtual machines of Bitbrains' data centre, as published by the Grid Workloads Archive: one CSV
//! file per machine, with a row every 300 s.
//!
//! ```text
//! Timestamp [ms];⇥CPU cores;⇥…;⇥Memory capacity provisioned [KB];⇥Memory usage [KB];⇥…
//! 1372629804;⇥1;⇥…;⇥4194304.0;⇥131419.73333333334;⇥…
//! ```
//!
//! "Memory usage" is the active memory, which the hypervisor estimated from a few pages; it is less than the
//! machine's own kernel would report. Available memory computed from it is an **upper bound**. CPU use is no
//! load average, and the trace has no owners, processes or files: all these are absent.

use super::archive::{Archive, Dialect, Time, fills};
use super::{ColumnOrigin, Source};
use std::path::Path;

/// The columns that both traces fill.
const FILLS: &[ColumnOrigin<'static>] =
    &fills("Memory capacity provisioned less Memory usage [KB]; an upper bound");

/// Trace of 500 machines of mixed use, on slower storage.
pub const RND: Source<'static> = Source {
    name: "GWA-T-12 Bitbrains rnd",
    host_prefix: "bitbrains-rnd",
    available_meaning: "Available memory is an upper bound: use is the memory that the hypervisor observed in active use.",
    has_invented_sizes: false,
    fills: FILLS,
    columns: &[],
};

/// Trace of 1,250 machines on fast storage.
pub const FAST_STORAGE: Source<'static> = Source {
    name: "GWA-T-12 Bitbrains fastStorage",
    host_prefix: "bitbrains-fast",
    ..RND
};

/// Limit between the two time units: smaller numbers are seconds, larger ones are ms. In seconds the limit is
/// in the year 5138, in ms in 1973.
const SECONDS_BELOW: f64 = 1e11;

/// Times are in ms by the header, but often in seconds. Numbers have a decimal point.
pub const DIALECT: Dialect = Dialect {
    time: "Timestamp [ms]",
    time_of: |text| {
        let time: f64 = text.parse().ok()?;
        let in_seconds = time < SECONDS_BELOW;
        let ms = if in_seconds { time * 1000.0 } else { time }.round();
        (ms >= 0.0).then_some(Time { ms, in_seconds })
    },
    number_of: |text| text.parse().ok(),
};

/// Importer of the machines in `folder`, whose trace is `source` ([`RND`] or [`FAST_STORAGE`]).
#[must_use]
pub fn importer(folder: &Path, source: Source<'static>) -> Archive {
    Archive::new(folder, source, &DIALECT)
}
