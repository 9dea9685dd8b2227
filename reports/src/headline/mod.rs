//! Headline, for a reader with ten seconds: the amount of idle memory, and whether it is dependable.

mod bar;
mod cards;
mod lasting;

use crate::change::share_than;
use crate::fleet::{Fleet, least, while_on};
use crate::imported;
use crate::view::View;
use crate::wording::{bytes, count, seconds, share, thousands};
pub(crate) use bar::Segment;
pub(crate) use cards::Card;

/// Mean share of the hosts that are on at the same time. From this share on, the headline does not mention
/// that hosts were off.
const MOSTLY_ON_SHARE: f64 = 0.95;

/// The top of the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Headline {
    /// The headline's sentence, with numbers.
    pub lead: String,
    /// Sentences that qualify `lead`.
    pub support: Vec<String>,
    /// Meaning of available memory, if hosts were imported.
    pub caveat: Option<String>,
    /// Figures next to the sentence.
    pub cards: Vec<Card>,
    /// Segments of the bar: mean use of memory by category.
    pub bar: Vec<Segment>,
    /// The bar in words.
    pub bar_sentence: String,
}

impl Headline {
    /// Returns the sentence for use on its own: with the meaning of available memory if hosts were imported.
    pub(crate) fn lead_alone(&self) -> String {
        match &self.caveat {
            Some(caveat) => format!("{} {caveat}", self.lead),
            None => self.lead.clone(),
        }
    }
}

/// Returns the headline of the report on all hosts.
pub(crate) fn headline(view: &View) -> Headline {
    let (Some(fleet), Some(memory)) = (Fleet::of(view), while_on(view)) else {
        return Headline {
            lead: "There are no samples to report on.".into(),
            support: vec![
                "Let gleaner-agent run for a while, then export its trace and make the report again.".into(),
            ],
            ..Headline::default()
        };
    };
    let before = view.earlier().and_then(|earlier| Fleet::of(&earlier));
    let support = [
        Some(imported::meaning(view)),
        harvestable(view, &fleet),
        idle(view, &fleet),
        hosts_on(view, &fleet),
        worst(view),
        Some(lasting::sentence(view)),
    ];
    let bar = bar::segments(&memory, &fleet);
    Headline {
        lead: lead(view, &fleet, before.as_ref()),
        support: support.into_iter().flatten().collect(),
        caveat: imported::caveat(view),
        cards: cards::cards(view, &fleet, before.as_ref()),
        bar_sentence: bar::sentence(&bar),
        bar,
    }
}

fn lead(view: &View, fleet: &Fleet, before: Option<&Fleet>) -> String {
    let whose = match view.findings.hosts.len() as i64 {
        1 => "this host’s".to_owned(),
        n => format!("these {} hosts’", thousands(n)),
    };
    let dependable = fleet
        .dependable_bytes
        .map(|least| format!(", and at least {} for 95\u{a0}% of the time", bytes(least)));
    let change = share_than(
        view,
        Some(fleet.available_share),
        before.map(|b| b.available_share),
    );
    format!(
        "On average, {} of {whose} memory was available: {} of {}{}{}.",
        share(fleet.available_share),
        bytes(fleet.available_bytes),
        bytes(fleet.physical_bytes),
        dependable.unwrap_or_default(),
        change.map(|c| format!("; {c}")).unwrap_or_default(),
    )
}

fn harvestable(view: &View, fleet: &Fleet) -> Option<String> {
    let whose = match view.only_host() {
        Some(_) => "the owner’s",
        None => "the owners’",
    };
    Some(format!(
        "Of the available memory, {} was harvestable: Linux could have provided it without paging out {whose} pages.",
        bytes(fleet.harvestable_bytes?)
    ))
}

/// Sentence on the part of available memory that is on idle hosts.
fn idle(view: &View, fleet: &Fleet) -> Option<String> {
    let (idle, in_use) = (fleet.idle_bytes?, fleet.in_use_bytes()?);
    Some(match view.only_host() {
        Some(host) => format!(
            "The host was idle for {} of the time.",
            share(host.idle_share?)
        ),
        None => format!(
            "{} of the available memory was on hosts whose owners were away, {} on hosts in use.",
            bytes(idle),
            bytes(in_use)
        ),
    })
}

fn hosts_on(view: &View, fleet: &Fleet) -> Option<String> {
    let hosts = view.findings.hosts.len() as i64;
    let on = fleet.hosts_on_count?.round() as i64;
    ((on as f64) < MOSTLY_ON_SHARE * hosts as f64).then(|| {
        format!(
            "On average, {} of {} were on at the same time; hosts that were asleep, off or without samples do not count.",
            thousands(on),
            count(hosts, "host")
        )
    })
}

fn worst(view: &View) -> Option<String> {
    if let (None, Some(worst)) = (view.only_host(), least(&view.findings.cluster_over_time)) {
        return Some(format!(
            "Available memory was lowest around {}: {}{}.",
            view.clock.moment_to_minute(worst.point.time_ms),
            bytes(worst.point.min_available_bytes as f64),
            worst.caution
        ));
    }
    let least = bytes(view.memory()?.least_available_bytes);
    Some(match view.only_host() {
        Some(_) => format!(
            "At the worst moment of the {} traced, {least} was still available.",
            seconds(view.longest_trace_s())
        ),
        None => format!(
            "If every host’s worst moment had come at the same time, {least} would still have been available."
        ),
    })
}

#[cfg(test)]
mod tests;
