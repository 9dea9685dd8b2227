//! Observed time of the hosts, and items that could not be read on them: counted over the fleet, without a
//! row for each host.

use super::time::{self, HostTime};
use crate::imported::Recorders;
use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use crate::wording::{count, seconds, share};
use std::collections::{BTreeMap, HashSet};

/// Number of hosts that the page shows: those with the lowest coverage.
const ROWS_SHOWN: usize = 20;

pub(super) fn coverage_words(view: &View, times: &[HostTime]) -> Option<String> {
    let (from, until) = time::asked_ms(view)?;
    let samples: i64 = times.iter().map(|t| t.host.samples_count).sum();
    let least = times
        .iter()
        .min_by(|a, b| a.covered_share().total_cmp(&b.covered_share()))?;
    let asked = times.iter().map(|t| t.asked_s).sum::<f64>().max(1.0);
    let covered = times.iter().map(|t| t.covered_s).sum::<f64>() / asked;
    let gaps = match view.findings.gaps.len() as i64 {
        0 => "without a gap".to_owned(),
        n => format!(
            "with {} of {} in total",
            count(n, "gap"),
            seconds(view.findings.gaps.iter().map(|g| g.duration_s).sum())
        ),
    };
    let worst = match times.len() {
        1 => String::new(),
        _ => format!(
            "; the least on {}: {}",
            least.host.host_name,
            share(least.covered_share())
        ),
    };
    Some(format!(
        "The figures are based on {}, {gaps}. The samples cover {} of the time from {} to {}{worst}.",
        count(samples, "sample"),
        share(covered),
        view.clock.moment(from),
        view.clock.moment(until),
    ))
}

/// Table of hosts by covered share of the requested time, the lowest first.
pub(super) fn coverage(view: &View, times: &[HostTime]) -> Option<Table> {
    let mut sorted: Vec<&HostTime> = times.iter().collect();
    sorted.sort_by(|a, b| a.covered_share().total_cmp(&b.covered_share()));
    let recorders = Recorders::of(view);
    let rows = sorted.iter().map(|t| {
        let h = t.host;
        [
            Some(view.host_cell(&h.host_id)),
            recorders.cell(view, h),
            Some(Cell::share(t.covered_share())),
            Some(Cell::share(t.share(t.off_s))),
            Some(Cell::share(t.share(t.agent_s))),
            Some(Cell::share(t.share(t.unknown_s))),
            Some(Cell::share(t.share(t.outside_s))),
            Some(Cell::count(h.samples_count)),
            Some(Cell::or_absent(h.sample_interval_s, Cell::seconds)),
            Some(Cell::moment(
                view.clock.moment(h.from_time_ms),
                h.from_time_ms,
            )),
            Some(Cell::moment(view.clock.moment(h.to_time_ms), h.to_time_ms)),
            Some(Cell::or_absent(h.kernel_release.as_deref(), Cell::text)),
        ]
        .into_iter()
        .flatten()
        .collect()
    });
    let mut table = Table::new(
        "coverage".into(),
        "Share of the requested time covered by samples, lowest first",
        [
            Some(words("host")),
            recorders.column(),
            Some(numbers("covered")),
            Some(numbers("asleep or off")),
            Some(recorders.choose(
                numbers("agent not running"),
                numbers("recorder not running"),
                numbers("agent or recorder not running"),
            )),
            Some(numbers("cause not known")),
            Some(numbers("before first or after last sample")),
            Some(numbers("samples")),
            Some(numbers("interval")),
            Some(words("first sample")),
            Some(words("last sample")),
            Some(words("kernel")),
        ]
        .into_iter()
        .flatten()
        .collect(),
    );
    table.rows_shown = ROWS_SHOWN;
    table.with_rows(rows.collect())
}

/// Table of gaps by cause.
pub(super) fn gaps(view: &View) -> Option<Table> {
    let causes = time::by_cause(&view.findings.gaps);
    let recorders = Recorders::of(view);
    let all: f64 = causes.iter().map(|(.., seconds)| seconds).sum();
    let rows = causes.iter().map(|(cause, gaps, hosts, seconds)| {
        vec![
            Cell::text(time::cause_label(cause, recorders)),
            Cell::count(*gaps as i64),
            Cell::count(*hosts as i64),
            Cell::seconds(*seconds),
            Cell::share(seconds / all.max(1.0)),
        ]
    });
    Table::new(
        "gaps".into(),
        "Gaps (times without samples) by cause",
        vec![
            words("cause"),
            numbers("gaps"),
            numbers("hosts"),
            numbers("total length"),
            numbers("share of all gaps"),
        ],
    )
    .with_rows(rows.collect())
}

/// Table of the sources of the owner's activity by state, with the number of hosts and samples.
pub(super) fn sources(view: &View) -> Option<Table> {
    let mut states: BTreeMap<(&str, &str), (HashSet<&str>, i64)> = BTreeMap::new();
    for source in &view.findings.activity_sources {
        let key = (source.source.as_str(), source.state.as_str());
        let entry = states.entry(key).or_default();
        entry.0.insert(&source.host_id);
        entry.1 += source.samples_count;
    }
    let rows = states.iter().map(|((source, state), (hosts, samples))| {
        vec![
            Cell::text(*source),
            Cell::text(*state),
            Cell::count(hosts.len() as i64),
            Cell::count(*samples),
        ]
    });
    Table::new(
        "activity".into(),
        "Sources of the owner’s activity, and their state",
        vec![
            words("source"),
            words("state"),
            numbers("hosts"),
            numbers("samples"),
        ],
    )
    .with_rows(rows.collect())
}

/// Table of items that could not be read, grouped by reason.
pub(super) fn missing_values(view: &View) -> Option<Table> {
    let mut reasons: BTreeMap<(&str, &str, &str), (HashSet<&str>, i64)> = BTreeMap::new();
    for missing in &view.findings.missing_values {
        let key = (
            missing.item.as_str(),
            missing.reason.as_str(),
            missing.detail.as_str(),
        );
        let entry = reasons.entry(key).or_default();
        entry.0.insert(&missing.host_id);
        entry.1 += missing.samples_count;
    }
    let rows = reasons
        .iter()
        .map(|((item, reason, detail), (hosts, samples))| {
            vec![
                Cell::text(item.replace('_', " ")),
                Cell::text(*reason),
                Cell::text(*detail),
                Cell::count(hosts.len() as i64),
                Cell::count(*samples),
            ]
        });
    Table::new(
        "missing-values".into(),
        "Items that could not be read, and the reason",
        vec![
            words("item"),
            words("reason"),
            words("system error"),
            numbers("hosts"),
            numbers("samples"),
        ],
    )
    .with_rows(rows.collect())
}
