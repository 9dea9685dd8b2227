//! The largest region that, once available, nearly always stays available for an hour.

use crate::view::View;
use crate::wording::{seconds, share, size};
use gleaner_schemas::findings::{AvailabilityPeriods, Notion, Parameters, Scope};

/// Minimum share of cases in which dependable memory is still available an hour later.
const DEPENDABLE_SHARE: f64 = 0.95;
/// Minimum share of the time for which dependable memory is available.
const USUAL_SHARE: f64 = 0.5;
/// Horizon of an hour, in s.
const AHEAD_S: f64 = 3600.0;

/// A region, the share of the time for which it is available, and the probability that it stays available.
struct Region {
    bytes: i64,
    time_share: f64,
    ahead_s: f64,
    available_probability: f64,
}

pub(super) fn sentence(view: &View) -> String {
    let traced_s = view.longest_trace_s();
    let minimum_s = view.findings.parameters.minimum_period_s;
    if traced_s < minimum_s {
        return format!(
            "This trace is too short to show how long memory stays available: only periods of {} or more count.",
            seconds(minimum_s)
        );
    }
    if traced_s < Parameters::default().minimum_period_s {
        return format!(
            "A trace of {} is too short to show how long memory stays available.",
            seconds(traced_s)
        );
    }
    let regions = regions(view);
    let usual = || regions.iter().filter(|r| r.time_share >= USUAL_SHARE);
    let dependable = usual()
        .filter(|r| r.available_probability >= DEPENDABLE_SHARE)
        .max_by_key(|r| r.bytes);
    let likeliest =
        || usual().max_by(|a, b| a.available_probability.total_cmp(&b.available_probability));
    if let Some(region) = dependable {
        return format!(
            "The memory can be counted on for a while: {}.",
            region.words(view, "in")
        );
    }
    if let Some(region) = likeliest() {
        return format!(
            "The memory can be counted on only to a degree: {}.",
            region.words(view, "in only")
        );
    }
    without_odds(view)
}

impl Region {
    fn words(&self, view: &View, share_of: &str) -> String {
        let on_each = match view.findings.hosts.len() {
            1 => "",
            _ => " on one host",
        };
        let later = match self.ahead_s {
            AHEAD_S => "an hour later".to_owned(),
            other => format!("{} later", seconds(other)),
        };
        format!(
            "a region of {}{on_each} was available {} of the time; once available, it was still available {later} {share_of} {} of cases",
            size(self.bytes),
            share(self.time_share),
            share(self.available_probability)
        )
    }
}

fn regions(view: &View) -> Vec<Region> {
    let odds = || {
        view.findings.availability_odds.iter().filter(|o| {
            o.size_class == "all"
                && o.scope == Scope::All
                && o.notion == Notion::Available
                && o.ahead_s <= AHEAD_S
        })
    };
    let longest = odds().map(|o| o.ahead_s).fold(0.0, f64::max);
    let region = |o: &gleaner_schemas::findings::AvailabilityOdds| {
        let of = pooled(view).find(|p| p.region_bytes == o.region_bytes)?;
        Some(Region {
            bytes: o.region_bytes,
            time_share: of.available_time_share?,
            ahead_s: o.ahead_s,
            available_probability: o.available_probability,
        })
    };
    odds()
        .filter(|o| o.ahead_s == longest)
        .filter_map(region)
        .collect()
}

fn pooled<'a>(view: &View<'a>) -> impl Iterator<Item = &'a AvailabilityPeriods> {
    view.findings
        .availability_periods
        .iter()
        .filter(|p| p.size_class == "all" && p.notion == Notion::Available && p.scope == Scope::All)
}

fn without_odds(view: &View) -> String {
    let dependable = pooled(view)
        .filter_map(|p| Some((p.region_bytes, p.available_time_share?)))
        .filter(|(_, time)| *time >= DEPENDABLE_SHARE)
        .max_by_key(|(region, _)| *region);
    match dependable {
        Some((region, time)) => format!(
            "A region of {} was available {} of the time; how long it stays available was not measured.",
            size(region),
            share(time)
        ),
        None if view.findings.availability_periods.is_empty() => {
            "How long memory stays available was not measured.".into()
        }
        None => format!(
            "No region of a measured size was available for {} of the time: little of the memory can be counted on.",
            share(DEPENDABLE_SHARE)
        ),
    }
}
