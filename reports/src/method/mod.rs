//! The method page: meaning and source of every term, the rules of the advice, and the limits used.

mod terms;

use crate::page::table::{Cell, Table, words};
use crate::questions::short::advice;
use crate::view::View;
use crate::wording::{list, seconds, share, size};

pub(crate) use terms::{DEPARTURES, GROUPS, Group, SOURCES};

/// Sentences with the rules behind the advice to add, move or keep memory.
pub(crate) fn advice_rules() -> Vec<String> {
    vec![
        format!(
            "Add: less than {} of the host’s memory was available in at least {} of its samples. With the advised amount, {} of its memory \
             would have been free at its worst moment.",
            share(advice::SHORT_SHARE),
            share(advice::SHORT_SAMPLES_SHARE),
            share(advice::ROOM_SHARE)
        ),
        format!(
            "Move: the host never used more than {} of its memory, and another host is short. It would keep {} of its memory, of which {} \
             would still have been free at its worst moment.",
            share(advice::SPARE_BELOW_SHARE),
            list(&advice::REST_SHARES.map(share)).replace(" and ", " or "),
            share(advice::ROOM_SHARE)
        ),
        "Keep: neither of these; or the host has too much memory, but no other host needs it. It could be lent.".into(),
        format!(
            "Watch: the host was traced on fewer than {} days, or for less than {} in all. That is too little for advice.",
            advice::LEAST_DAYS,
            seconds(advice::LEAST_TRACED_S)
        ),
        "The advice is based on this period alone: a host that needs memory once a month may not have needed it now. Used memory is what \
         active programs, files in use and the kernel hold, without the cache of files that nobody uses. Check that the modules fit."
            .into(),
    ]
}

/// Table of every limit on which the figures depend.
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
            "idle after this long without the owner’s activity",
            Cell::text(seconds(p.idle_after_s)),
        ),
        (
            "idle below this 5-minute load average",
            Cell::text(p.load_limit.to_string()),
        ),
        (
            "shortest availability period that counts",
            Cell::text(seconds(p.minimum_period_s)),
        ),
        ("headroom, never lent", Cell::text(share(p.headroom_share))),
        (
            "processes of a return: active within",
            Cell::text(seconds(p.return_window_s)),
        ),
        ("sizes of regions", sizes(&p.region_bytes)),
        (
            "regions in forecasts, as shares of each host’s memory",
            shares(&p.region_shares),
        ),
        ("thresholds of dips", sizes(&p.dip_threshold_bytes)),
        (
            "thresholds of dips, as shares of each host’s memory",
            shares(&p.dip_threshold_shares),
        ),
        (
            "intervals in which hosts are compared",
            match p.cluster_cell_s {
                0.0 => Cell::absent(),
                s => Cell::text(seconds(s)),
            },
        ),
        (
            "bootstrap resamples of hosts for a 95 % interval",
            Cell::count(i64::from(p.bootstrap_count)),
        ),
        ("time zone of hours and weekdays", Cell::text(&p.time_zone)),
    ];
    let mut table = Table::new(
        "parameters".into(),
        "Limits used for these figures",
        vec![words("limit"), words("value")],
    );
    table.in_order = true;
    table.with_rows(
        rows.into_iter()
            .map(|(name, value)| vec![Cell::text(name), value])
            .collect(),
    )
}
