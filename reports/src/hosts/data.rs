//! Basis of the host's figures, the parts missing from them, and the cost of getting them.

use crate::imported::{imported_from, synthetic_fleet};
use crate::page::Part;
use crate::page::table::{Cell, Table, largest_first, numbers, words};
use crate::questions::sentence;
use crate::view::View;
use crate::wording::{count, seconds, share, stored_bytes};

pub(super) fn parts(view: &View) -> Vec<Part> {
    let said = [summary(view), cost(view)];
    let mut parts: Vec<Part> = said.into_iter().flatten().map(Part::Say).collect();
    let tables = [gaps(view), absences(view)];
    parts.extend(tables.into_iter().flatten().map(Part::Table));
    let missing = &view.findings.not_measured;
    parts.extend(missing.iter().map(|n| {
        let measure = n.measure.replace('_', " ");
        Part::Say(format!("Not measured: {measure}. {}", sentence(&n.reason)))
    }));
    parts
}

fn summary(view: &View) -> Option<String> {
    let host = view.only_host()?;
    let missing = view.findings.gaps.iter().map(|g| g.duration_s).sum();
    let gaps = match view.findings.gaps.len() as i64 {
        0 => "without a gap".into(),
        n => format!("with {} of {} together", count(n, "gap"), seconds(missing)),
    };
    let every = host
        .sample_interval_s
        .map(|s| format!(", one every {}", seconds(s)))
        .unwrap_or_default();
    let imported = imported_from(view.findings, host).map(|name| format!("Imported from {name}. "));
    let made_up =
        synthetic_fleet(view.findings, host).map(|name| format!("Made up by a model ({name}). "));
    Some(format!(
        "{}{} from {} to {}{every}: they cover {} of that time, {gaps}.{}",
        imported.or(made_up).unwrap_or_default(),
        count(host.samples_count, "sample"),
        view.clock.moment(host.from_time_ms),
        view.clock.moment(host.to_time_ms),
        share(host.coverage_share),
        host.kernel_release
            .as_ref()
            .map(|kernel| format!(" It runs Linux {kernel}."))
            .unwrap_or_default()
    ))
}

fn cost(view: &View) -> Option<String> {
    let cost = view.findings.agent_cost.first()?;
    let of_cpu = cost
        .cpu_share
        .map(|s| format!(" ({} of one CPU)", share(s)))
        .unwrap_or_default();
    Some(format!(
        "Tracing took {:.1}\u{a0}ms of CPU time a sample on average, {:.1}\u{a0}ms at most{of_cpu}, and {} of memory at most.",
        cost.mean_cpu_ms,
        cost.max_cpu_ms,
        stored_bytes(cost.max_rss_bytes)
    ))
}

fn gaps(view: &View) -> Option<Table> {
    let sorted = largest_first(&view.findings.gaps, |g| g.duration_s);
    let rows = sorted.iter().map(|g| {
        vec![
            Cell::moment(view.clock.moment(g.from_time_ms), g.from_time_ms),
            Cell::moment(view.clock.moment(g.to_time_ms), g.to_time_ms),
            Cell::seconds(g.duration_s),
            Cell::text(g.cause.replace('_', " ")),
        ]
    });
    Table::new(
        format!("{}gaps", view.prefix),
        "Gaps: times without samples, longest first",
        vec![
            words("from"),
            words("to"),
            numbers("length"),
            words("cause"),
        ],
    )
    .with_rows(rows.collect())
}

fn absences(view: &View) -> Option<Table> {
    let sorted = largest_first(&view.findings.absences, |a| a.samples_count as f64);
    let rows = sorted.iter().map(|a| {
        vec![
            Cell::text(a.item.replace('_', " ")),
            Cell::text(&a.reason),
            Cell::text(&a.detail),
            Cell::count(a.samples_count),
        ]
    });
    Table::new(
        format!("{}absences", view.prefix),
        "What could not be read, and why",
        vec![
            words("what"),
            words("why"),
            words("the system said"),
            numbers("samples"),
        ],
    )
    .with_rows(rows.collect())
}
