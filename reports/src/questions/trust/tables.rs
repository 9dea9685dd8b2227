//! What the figures rest on, what is missing from them, and what getting them cost.

use crate::page::table::{Cell, Table, host_cell, host_column, largest_first, numbers, words};
use crate::view::View;
use crate::wording;

/// Samples and coverage.
pub(crate) fn coverage(view: &View) -> Option<Table> {
    let rows = view.findings.hosts.iter().map(|h| {
        vec![
            view.host_cell(&h.host),
            Cell::count(h.samples_count),
            Cell::or_absent(h.sample_interval_s, Cell::seconds),
            Cell::moment(view.clock.moment(h.from_time_ms), h.from_time_ms),
            Cell::moment(view.clock.moment(h.to_time_ms), h.to_time_ms),
            Cell::share(h.coverage_share),
            Cell::or_absent(h.cpus_count, Cell::count),
            Cell::or_absent(h.kernel_release.as_deref(), Cell::text),
        ]
    });
    Table::new(
        format!("{}coverage", view.prefix),
        "What was traced",
        vec![
            words("host"),
            numbers("samples"),
            numbers("every"),
            words("first"),
            words("last"),
            numbers("covered"),
            numbers("CPUs"),
            words("kernel"),
        ],
    )
    .with_rows(rows.collect())
}

/// Gaps, longest first.
pub(crate) fn gaps(view: &View) -> Option<Table> {
    let many = view.only_host().is_none();
    let sorted = largest_first(&view.findings.gaps, |g| g.duration_s);
    let rows = sorted.iter().map(|g| {
        let cells = vec![
            Cell::moment(view.clock.moment(g.from_time_ms), g.from_time_ms),
            Cell::moment(view.clock.moment(g.to_time_ms), g.to_time_ms),
            Cell::seconds(g.duration_s),
            Cell::text(g.cause.replace('_', " ")),
        ];
        host_cell(many, view.host_cell(&g.host), cells)
    });
    Table::new(
        format!("{}gaps", view.prefix),
        "Gaps: times without samples, longest first",
        host_column(
            many,
            vec![
                words("from"),
                words("to"),
                numbers("length"),
                words("cause"),
            ],
        ),
    )
    .with_rows(rows.collect())
}

/// What could not be read.
pub(crate) fn absences(view: &View) -> Option<Table> {
    let many = view.only_host().is_none();
    let sorted = largest_first(&view.findings.absences, |a| a.samples_count as f64);
    let rows = sorted.iter().map(|a| {
        let cells = vec![
            Cell::text(&a.item),
            Cell::text(&a.reason),
            Cell::text(&a.detail),
            Cell::count(a.samples_count),
        ];
        host_cell(many, view.host_cell(&a.host), cells)
    });
    Table::new(
        format!("{}absences", view.prefix),
        "What could not be read, and why",
        host_column(
            many,
            vec![
                words("what"),
                words("why"),
                words("the system said"),
                numbers("samples"),
            ],
        ),
    )
    .with_rows(rows.collect())
}

/// Where the owner's activity was looked for.
pub(crate) fn activity(view: &View) -> Option<Table> {
    let many = view.only_host().is_none();
    let rows = view.findings.activity_sources.iter().map(|a| {
        let cells = vec![
            Cell::text(&a.source),
            Cell::text(&a.state),
            Cell::count(a.samples_count),
        ];
        host_cell(many, view.host_cell(&a.host), cells)
    });
    Table::new(
        format!("{}activity", view.prefix),
        "Sources of the owner's activity",
        host_column(
            many,
            vec![words("source"), words("state"), numbers("samples")],
        ),
    )
    .with_rows(rows.collect())
}

/// Two ways to count available memory, by host; one host's are a sentence.
pub(crate) fn residuals(view: &View) -> Option<Table> {
    if view.only_host().is_some() {
        return None;
    }
    let rows = view.findings.residuals.iter().map(|r| {
        vec![
            view.host_cell(&r.host),
            Cell::bytes(r.mean_bytes),
            Cell::bytes(r.max_abs_bytes as f64),
            Cell::share(r.max_abs_share),
        ]
    });
    Table::new(
        format!("{}residuals", view.prefix),
        "Available memory counted in two ways: what is left over, less the sum of its parts",
        vec![
            words("host"),
            numbers("mean difference"),
            numbers("largest"),
            numbers("largest, of memory"),
        ],
    )
    .with_rows(rows.collect())
}

/// What tracing cost, by host; one host's is a sentence.
pub(crate) fn cost(view: &View) -> Option<Table> {
    if view.only_host().is_some() {
        return None;
    }
    let rows = view.findings.agent_cost.iter().map(|c| {
        vec![
            view.host_cell(&c.host),
            Cell::ms(c.mean_cpu_ms),
            Cell::ms(c.max_cpu_ms),
            Cell::or_absent(c.cpu_share, Cell::share),
            Cell::bytes(c.max_rss_bytes as f64),
        ]
    });
    Table::new(
        format!("{}agent-cost", view.prefix),
        "What tracing cost the host",
        vec![
            words("host"),
            numbers("mean CPU a sample"),
            numbers("most"),
            numbers("of one CPU"),
            numbers("memory, at most"),
        ],
    )
    .with_rows(rows.collect())
}

/// Measures that are not there.
pub(crate) fn not_measured(view: &View) -> Option<Table> {
    let rows = view.findings.not_measured.iter().map(|n| {
        let host = match n.host.as_str() {
            "all" => "all".into(),
            host => view.host_name(host),
        };
        vec![
            Cell::text(n.measure.replace('_', " ")),
            Cell::text(host),
            Cell::text(&n.reason),
        ]
    });
    Table::new(
        format!("{}not-measured", view.prefix),
        "What was not measured",
        vec![words("measure"), words("host"), words("why")],
    )
    .with_rows(rows.collect())
}

/// Every threshold used.
pub(crate) fn parameters(view: &View) -> Option<Table> {
    let p = &view.findings.parameters;
    let sizes = |bytes: &[i64]| match bytes {
        [] => Cell::absent(),
        bytes => Cell::text(wording::list(
            &bytes.iter().map(|b| wording::size(*b)).collect::<Vec<_>>(),
        )),
    };
    let rows = vec![
        (
            "idle after, without the owner's activity",
            Cell::text(wording::seconds(p.idle_after_s)),
        ),
        (
            "idle below, 5-minute load average",
            Cell::text(p.load_limit.to_string()),
        ),
        (
            "shortest availability period that counts",
            Cell::text(wording::seconds(p.minimum_period_s)),
        ),
        (
            "headroom, never lent",
            Cell::text(wording::share(p.headroom_share)),
        ),
        ("sizes of regions", sizes(&p.region_bytes)),
        ("thresholds of dips", sizes(&p.dip_threshold_bytes)),
    ];
    let mut table = Table::new(
        format!("{}parameters", view.prefix),
        "What was asked: the limits that the figures rest on",
        vec![words("limit"), words("value")],
    );
    table.in_order = true;
    table.with_rows(
        rows.into_iter()
            .map(|(name, value)| vec![Cell::text(name), value])
            .collect(),
    )
}
