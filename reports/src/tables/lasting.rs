//! How long memory stays available, and how long owners stay away.

use super::{Cell, Table, host_cell, host_column, numbers, words};
use crate::view::View;
use gleaner_schemas::findings::{AvailabilityPeriods, Scope};

/// Availability periods by region size, all classes.
pub(crate) fn availability(view: &View) -> Option<Table> {
    let periods = &view.findings.availability_periods;
    let mut classes: Vec<&str> = periods.iter().map(|p| p.size_class.as_str()).collect();
    classes.sort_unstable();
    classes.dedup();
    let one_class = classes.len() <= 1 || (classes.len() == 2 && classes.contains(&"all"));
    let shown = periods
        .iter()
        .filter(|p| !one_class || p.size_class == "all" || classes.len() == 1);
    let mut columns = vec![
        numbers("region"),
        words("counts"),
        numbers("periods"),
        numbers("cut short"),
        numbers("median"),
        numbers("mean"),
        numbers("mean with cuts"),
        numbers("longest"),
        numbers("of the time"),
    ];
    if !one_class {
        columns.insert(0, words("hosts"));
    }
    let mut table = Table::new(
        format!("{}availability", view.prefix),
        "Availability periods: how long a region of a size stays available",
        columns,
    )
    .with_rows(shown.map(|p| availability_row(p, one_class)).collect())?;
    let more = "Counts: all time, or idle time only, which ends with the owner’s return. Cut short: by a gap or an end \
                of the trace, so they lasted longer than was seen, which is what median, mean and longest are of. Mean with \
                cuts: the Kaplan-Meier mean, which counts what a cut period at least lasted. Of the time: the share in which \
                the region was available.";
    table.note = Some(match table.note {
        Some(note) => format!("{note} {more}"),
        None => more.into(),
    });
    Some(table)
}

fn availability_row(periods: &AvailabilityPeriods, one_class: bool) -> Vec<Cell> {
    let scope = match periods.scope {
        Scope::All => "all",
        Scope::Idle => "idle",
    };
    let class = (!one_class).then(|| Cell::text(&periods.size_class));
    let mut cells = Vec::from_iter(class);
    cells.extend([
        Cell::size(periods.region_bytes),
        Cell::text(scope),
        Cell::count(periods.periods),
        Cell::count(periods.censored),
        Cell::or_absent(periods.median_s, Cell::seconds),
        Cell::or_absent(periods.mean_s, Cell::seconds),
        Cell::or_absent(periods.restricted_mean_s, Cell::seconds),
        Cell::or_absent(periods.longest_s, Cell::seconds),
        Cell::or_absent(periods.available_time_share, Cell::share),
    ]);
    cells
}

/// Idle periods, in order of time.
pub(crate) fn idle(view: &View) -> Option<Table> {
    let many = view.only_host().is_none();
    let rows = view.findings.idle_periods.iter().map(|period| {
        let cut = match (period.start_censored, period.end_censored) {
            (false, false) => "whole",
            (true, false) => "start not seen",
            (false, true) => "end not seen",
            (true, true) => "neither end seen",
        };
        host_cell(
            many,
            view.host_name(&period.host),
            vec![
                Cell::moment(view.clock.moment(period.from_time_ms), period.from_time_ms),
                Cell::moment(view.clock.moment(period.to_time_ms), period.to_time_ms),
                Cell::seconds(period.duration_s),
                Cell::text(cut),
            ],
        )
    });
    Table::new(
        format!("{}idle", view.prefix),
        "Idle periods: when the owner was away and the host had nothing to do",
        host_column(
            many,
            vec![words("from"), words("to"), numbers("length"), words("seen")],
        ),
    )
    .with_rows(rows.collect())
}
