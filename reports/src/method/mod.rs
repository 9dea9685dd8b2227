//! The method page: what every term means and where it comes from, what advice rests on, the limits that were asked for.

mod terms;

use crate::page::table::{Cell, Table, words};
use crate::questions::short::advice;
use crate::view::View;
use crate::wording::{list, seconds, share, size};

pub(crate) use terms::{DEPARTURES, GROUPS, Group, SOURCES};

/// Rules behind the advice to add, move or leave memory.
pub(crate) fn advice_rules() -> Vec<String> {
    vec![
        format!(
            "Add: in {} or more of its samples less than {} of the host’s memory was available. What is advised would have left {} of it \
             free at its worst moment.",
            share(advice::SHORT_SAMPLES_SHARE),
            share(advice::SHORT_SHARE),
            share(advice::ROOM_SHARE)
        ),
        format!(
            "Move: the host never used more than {} of its memory, and another is short. What is left to it, {} of what it has, would still \
             have been {} free at its worst moment.",
            share(advice::SPARE_BELOW_SHARE),
            list(&advice::REST_SHARES.map(share)).replace(" and ", " or "),
            share(advice::ROOM_SHARE)
        ),
        "Leave: neither; or it has too much, but nobody is short: it could be lent.".into(),
        format!(
            "Watch: it was seen on fewer than {} days, or for less than {} in all. Nothing is advised from so little.",
            advice::LEAST_DAYS,
            seconds(advice::LEAST_TRACED_S)
        ),
        "It is a suggestion from this time alone: who needs memory once a month may not have needed it now. Used is what active programs, \
         files in use and the kernel hold, not the cache of files that nobody uses; whether modules fit is for you to see."
            .into(),
    ]
}

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
