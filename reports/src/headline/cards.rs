//! Cards: the figures next to the headline's sentence.

use crate::change::bytes_than;
use crate::fleet::Fleet;
use crate::imported::Recorders;
use crate::view::View;
use crate::wording::{bytes, count, share, stored_bytes};

/// A figure of the headline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Card {
    pub label: &'static str,
    pub value: String,
    pub note: String,
}

pub(super) fn cards(view: &View, now: &Fleet, before: Option<&Fleet>) -> Vec<Card> {
    let change = |of: fn(&Fleet) -> Option<f64>| bytes_than(view, of(now), before.and_then(of));
    let card = |label, value: Option<f64>, note: String, change: Option<String>| {
        Some(Card {
            label,
            value: bytes(value?),
            note: match change {
                Some(change) => format!("{note}; {change}"),
                None => note,
            },
        })
    };
    let hosts = view.findings.hosts.len() as i64;
    // Traces of other programs may contain provisioned or invented sizes.
    let recorders = Recorders::of(view);
    let word = recorders.choose(
        "installed",
        "as stated by the trace",
        "installed, or as the traces state it,",
    );
    let installed = match view.only_host().and_then(|h| h.cpus_count) {
        Some(cpus) => format!("{word}, with {}", count(cpus, "CPU")),
        None => format!("{word} in {}", count(hosts, "host")),
    };
    let all_bytes: i64 = view.findings.hosts.iter().map(|h| h.physical_bytes).sum();
    let cards = [
        // If hosts could be compared over time, the headline's sentence states this figure, and there is no
        // card.
        card(
            "Physical memory",
            Some(all_bytes as f64).filter(|_| now.dependable_bytes.is_none()),
            installed,
            None,
        ),
        card(
            "Available",
            Some(now.available_bytes),
            format!(
                "{} of {}, on average",
                share(now.available_share),
                bytes(now.physical_bytes)
            ),
            change(|f| Some(f.available_bytes)),
        ),
        card(
            "Available 95\u{a0}% of the time",
            now.dependable_bytes,
            "at least this much".into(),
            change(|f| f.dependable_bytes),
        ),
        card(
            "On idle hosts",
            now.idle_bytes.filter(|_| hosts > 1),
            "available on hosts whose owner was away, on average".into(),
            change(|f| f.idle_bytes),
        ),
        Some(harvestable(now, recorders, change(|f| f.harvestable_bytes))),
        Some(quota(view)),
    ];
    cards.into_iter().flatten().collect()
}

fn harvestable(now: &Fleet, recorders: Recorders, change: Option<String>) -> Card {
    let label = "Harvestable";
    match now.harvestable_bytes {
        Some(mean) => Card {
            label,
            value: bytes(mean),
            note: match change {
                Some(change) => format!("on average; {change}"),
                None => "on average, without paging out owners’ pages".into(),
            },
        },
        None => Card {
            label,
            value: "not known".into(),
            note: recorders
                .choose(
                    "the kernel did not report MemAvailable",
                    "the trace does not contain MemAvailable",
                    "MemAvailable is not known for some hosts",
                )
                .into(),
        },
    }
}

fn quota(view: &View) -> Card {
    let quotas = &view.findings.quotas;
    let total: i64 = quotas.iter().map(|q| q.quota_bytes).sum();
    let (value, note) = match quotas.as_slice() {
        [] => ("not known".into(), "no quota was calculated".into()),
        [only] => (stored_bytes(only.quota_bytes), only.reason.clone()),
        several => {
            let lending = several.iter().filter(|q| q.quota_bytes > 0).count();
            let note = format!(
                "from {lending} of {}, each at its last sample",
                count(several.len() as i64, "host")
            );
            (stored_bytes(total), note)
        }
    };
    Card {
        label: "Lease quota now",
        value,
        note,
    }
}
