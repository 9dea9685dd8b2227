//! Time for which memory stays available, and time for which owners are away.

use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use gleaner_schemas::findings::{AvailabilityPeriods, Notion, Scope};

/// Table of availability periods by region size, for all classes.
pub(crate) fn availability(view: &View) -> Option<Table> {
    let periods = &view.findings.availability_periods;
    let mut classes: Vec<&str> = periods.iter().map(|p| p.size_class.as_str()).collect();
    classes.sort_unstable();
    classes.dedup();
    let one_class = classes.len() <= 1 || (classes.len() == 2 && classes.contains(&"all"));
    let mut shown: Vec<&AvailabilityPeriods> = periods
        .iter()
        .filter(|p| p.notion == Notion::Available)
        .filter(|p| !one_class || p.size_class == "all" || classes.len() == 1)
        .collect();
    // All hosts together come first: these rows are on the page, and those of classes if there is
    // room.
    shown.sort_by_key(|p| p.size_class != "all");
    let together = shown.iter().filter(|p| p.size_class == "all").count();
    let mut columns = vec![
        numbers("region"),
        words("time"),
        numbers("periods"),
        numbers("cut short"),
        numbers("median"),
        numbers("mean"),
        numbers("Kaplan-Meier mean"),
        numbers("longest"),
        numbers("share of the time"),
    ];
    if !one_class {
        columns.insert(0, words("hosts’ memory size"));
    }
    let mut table = Table::new(
        format!("{}availability", view.prefix),
        "Availability periods by size of the region",
        columns,
    )
    .with_rows(
        shown
            .into_iter()
            .map(|p| availability_row(p, one_class))
            .collect(),
    )?;
    if together > 0 {
        table.rows_shown = together;
    }
    let more = "Time: “all” is all time; “idle” is idle time only, which ends with the owner’s return. Cut short: by a gap or an end \
                of the trace. Such periods lasted longer than observed; median, mean and longest are of observed lengths. The \
                Kaplan-Meier mean corrects for cut periods. Share of the time: during which the region was available.";
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
        Cell::count(periods.periods_count),
        Cell::count(periods.censored_count),
        Cell::or_absent(periods.median_s, Cell::seconds),
        Cell::or_absent(periods.mean_s, Cell::seconds),
        Cell::or_absent(periods.restricted_mean_s, Cell::seconds),
        Cell::or_absent(periods.longest_s, Cell::seconds),
        Cell::or_absent(periods.available_time_share, Cell::share),
    ]);
    cells
}
