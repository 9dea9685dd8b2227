//! What every term means and where it comes from: `templates/method.html` and the limits that the figures rest on.

use crate::page::table::{Cell, Table, words};
use crate::view::View;
use crate::wording::{list, seconds, share, size};

/// Every limit that the figures rest on.
pub(crate) fn parameters(view: &View) -> Option<Table> {
    let p = &view.findings.parameters;
    let all = |told: Vec<String>| match told.as_slice() {
        [] => Cell::absent(),
        told => Cell::text(list(told)),
    };
    let sizes = |bytes: &[i64]| all(bytes.iter().map(|b| size(*b)).collect());
    let shares = |of: &[f64]| all(of.iter().map(|s| share(*s)).collect());
    let rows = vec![
        (
            "idle after, without the owner's activity",
            Cell::text(seconds(p.idle_after_s)),
        ),
        (
            "idle below, 5-minute load average",
            Cell::text(p.load_limit.to_string()),
        ),
        (
            "shortest availability period that counts",
            Cell::text(seconds(p.minimum_period_s)),
        ),
        ("headroom, never lent", Cell::text(share(p.headroom_share))),
        (
            "a return's processes: active within",
            Cell::text(seconds(p.return_window_s)),
        ),
        ("sizes of regions", sizes(&p.region_bytes)),
        (
            "regions that are forecast, of each host's memory",
            shares(&p.region_shares),
        ),
        ("thresholds of dips", sizes(&p.dip_threshold_bytes)),
        (
            "thresholds of dips, of each host's memory",
            shares(&p.dip_threshold_shares),
        ),
        (
            "stretches in which hosts are put side by side",
            match p.cluster_cell_s {
                0.0 => Cell::absent(),
                s => Cell::text(seconds(s)),
            },
        ),
        (
            "resamples of hosts for an interval",
            Cell::count(i64::from(p.bootstrap_count)),
        ),
        ("time zone of hours and weekdays", Cell::text(&p.time_zone)),
    ];
    let mut table = Table::new(
        "parameters".into(),
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
