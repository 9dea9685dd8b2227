//! What a reader should know after ten seconds: how much is idle, and can it be counted on.

use crate::questions::idle::tables::colour;
use crate::view::{Memory, View};
use crate::wording::{bytes, count, seconds, share, size, stored_bytes};
use gleaner_schemas::findings::{AvailabilityPeriods, Category, Notion, Parameters, Scope};

/// A region counts as dependable when it is available for this share of the time.
const DEPENDABLE_SHARE: f64 = 0.95;

/// The top of the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Headline {
    /// The sentence, with numbers.
    pub lead: String,
    /// What qualifies it.
    pub support: Vec<String>,
    /// The figures beside it.
    pub cards: Vec<Card>,
    /// Mean use by category.
    pub bar: Vec<Segment>,
    /// The bar in words.
    pub bar_sentence: String,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Card {
    pub label: &'static str,
    pub value: String,
    pub note: String,
}

/// One category's part of the bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    pub label: &'static str,
    pub colour: &'static str,
    pub bytes: String,
    pub share: String,
    /// For its width.
    pub weight: u64,
}

/// The headline of all hosts, or of one.
pub(crate) fn headline(view: &View) -> Headline {
    let Some(memory) = view.memory() else {
        return Headline {
            lead: "There are no samples to report on.".into(),
            support: vec![
                "Let gleaner-agent run for a while, export its trace and analyse that.".into(),
            ],
            ..Headline::default()
        };
    };
    let hosts = view.findings.hosts.len();
    let whose = match hosts {
        1 => "this host’s".to_owned(),
        n => format!("these {n} hosts’"),
    };
    let lead = format!(
        "On average, {} of {whose} memory was available: {} of {}.",
        share(memory.available_share()),
        bytes(memory.available_bytes()),
        bytes(memory.physical_bytes),
    );
    let support = [
        view.prefix.is_empty().then(|| {
            "Available means that neither the kernel nor any active program or its files were using it.".into()
        }),
        Some(worst(view, &memory)),
        // Pooled over hosts: one host's part of a page about several has no such figure.
        view.prefix.is_empty().then(|| lasting(view)),
        memory.harvestable_bytes.map(|mean| {
            format!(
                "Without pushing anything of the owner’s out of memory, {} of it could have been taken on average \
                 (harvestable).",
                bytes(mean)
            )
        }),
    ];
    let bar = segments(&memory);
    Headline {
        lead,
        support: support.into_iter().flatten().collect(),
        cards: cards(view, &memory),
        bar_sentence: bar_sentence(&bar),
        bar,
    }
}

fn worst(view: &View, memory: &Memory) -> String {
    let least = bytes(memory.least_available_bytes);
    match view.only_host() {
        Some(_) => format!(
            "At the worst moment of the {} traced, {least} was still available.",
            seconds(view.longest_trace_s())
        ),
        None => format!(
            "Had every host’s worst moment come at once, {least} would still have been available."
        ),
    }
}

/// Can we count on it: the largest region that was nearly always there, and for how long at a time.
fn lasting(view: &View) -> String {
    let minimum_s = view.findings.parameters.minimum_period_s;
    if view.longest_trace_s() < minimum_s {
        return format!(
            "Whether it lasts, a trace this short cannot tell: only periods of {} or more count.",
            seconds(minimum_s)
        );
    }
    if view.longest_trace_s() < Parameters::default().minimum_period_s {
        return format!(
            "Whether it lasts, a trace of {} cannot tell.",
            seconds(view.longest_trace_s())
        );
    }
    let dependable = view
        .findings
        .availability_periods
        .iter()
        .filter(|p| {
            p.size_class == "all"
                && p.notion == Notion::Available
                && p.scope == Scope::All
                && p.periods > 0
        })
        .filter(|p| {
            p.available_time_share
                .is_some_and(|s| s >= DEPENDABLE_SHARE)
        })
        .max_by_key(|p| p.region_bytes);
    match dependable {
        Some(periods) => dependable_sentence(view, periods),
        None if view.findings.availability_periods.is_empty() => {
            "How long it lasts was not measured.".into()
        }
        None => format!(
            "No region of the sizes measured was there for {} of the time: count on it only for work that can lose it.",
            share(DEPENDABLE_SHARE)
        ),
    }
}

fn dependable_sentence(view: &View, periods: &AvailabilityPeriods) -> String {
    let on_each = match view.findings.hosts.len() {
        1 => "",
        _ => " on one host",
    };
    let time_share = periods.available_time_share.map(share).unwrap_or_default();
    let region = size(periods.region_bytes);
    let length = match periods.restricted_mean_s.or(periods.mean_s) {
        Some(mean) if periods.censored > 0 => {
            format!(", for {} or more at a stretch on average", seconds(mean))
        }
        Some(mean) => format!(", for {} at a stretch on average", seconds(mean)),
        None => String::new(),
    };
    format!(
        "Up to a point it can be counted on: a region of {region}{on_each} was there {time_share} of the time{length}."
    )
}

fn cards(view: &View, memory: &Memory) -> Vec<Card> {
    let in_use = memory.physical_bytes - memory.available_bytes();
    let hosts = view.findings.hosts.len() as i64;
    let mut cards = vec![
        Card {
            label: "Physical memory",
            value: bytes(memory.physical_bytes),
            note: match view.only_host().and_then(|h| h.cpus_count) {
                Some(cpus) => format!("installed, beside {}", count(cpus, "CPU")),
                None => format!("installed in {}", count(hosts, "host")),
            },
        },
        Card {
            label: "In use",
            value: bytes(in_use),
            note: "kernel, active processes and their files, on average".into(),
        },
        Card {
            label: "Available",
            value: bytes(memory.available_bytes()),
            note: format!(
                "on average; at least {}",
                bytes(memory.least_available_bytes)
            ),
        },
    ];
    cards.push(
        match (memory.harvestable_bytes, memory.least_harvestable_bytes) {
            (Some(mean), Some(least)) => Card {
                label: "Harvestable",
                value: bytes(mean),
                note: format!("on average; at least {}", bytes(least)),
            },
            _ => Card {
                label: "Harvestable",
                value: "not known".into(),
                note: "the kernel did not say what it could give (MemAvailable)".into(),
            },
        },
    );
    cards.push(quota_card(view));
    cards
}

fn quota_card(view: &View) -> Card {
    let quotas = &view.findings.quotas;
    let total: i64 = quotas.iter().map(|q| q.quota_bytes).sum();
    let (value, note) = match quotas.as_slice() {
        [] => ("not known".into(), "no quota was worked out".into()),
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

fn segments(memory: &Memory) -> Vec<Segment> {
    let present = Category::ALL.into_iter().zip(memory.mean_bytes);
    present
        .filter_map(|(category, mean)| Some((category, mean.filter(|mean| *mean > 0.0)?)))
        .map(|(category, mean)| Segment {
            label: category.label(),
            colour: colour(category),
            bytes: bytes(mean),
            share: share(mean / memory.physical_bytes.max(1.0)),
            weight: mean as u64 >> 20,
        })
        .collect()
}

fn bar_sentence(bar: &[Segment]) -> String {
    let parts: Vec<String> = bar
        .iter()
        .map(|s| format!("{} {} ({})", s.label, s.bytes, s.share))
        .collect();
    format!(
        "Where the memory is, on average: {}.",
        crate::wording::list(&parts)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use gleaner_schemas::findings::{Findings, HostSummary, MemoryPoint};

    /// Hosts of 16 GiB, traced for a day: 12 GiB available for three quarters of it, 4 GiB for the rest.
    fn fleet(hosts: usize) -> Findings {
        let mut findings = Findings::default();
        for host in (0..hosts).map(|i| i.to_string()) {
            for (time_ms, samples_count, gib) in [(0, 3, 12_i64), (64_800_000, 1, 4)] {
                findings.memory_over_time.push(MemoryPoint {
                    host: host.clone(),
                    time_ms,
                    samples_count,
                    process_bytes: Some(((16 - gib) << 30) as f64),
                    available_bytes: (gib << 30) as f64,
                    available_min_bytes: gib << 30,
                    ..MemoryPoint::default()
                });
            }
            findings.hosts.push(HostSummary {
                host,
                physical_bytes: 16 << 30,
                to_time_ms: 86_400_000,
                ..HostSummary::default()
            });
        }
        findings
    }

    fn periods(region_gib: i64, share: f64, censored: i64) -> AvailabilityPeriods {
        AvailabilityPeriods {
            size_class: "all".into(),
            scope: Scope::All,
            region_bytes: region_gib << 30,
            periods: 3,
            censored,
            mean_s: Some(7200.0),
            median_s: None,
            longest_s: None,
            restricted_mean_s: Some(10_800.0),
            available_time_share: Some(share),
            ..AvailabilityPeriods::default()
        }
    }

    fn said(findings: &Findings) -> Headline {
        let clock = Clock::new("UTC").unwrap();
        let mut headline = headline(&View::new(findings, None, &clock, None));
        headline.lead = headline.lead.replace('\u{a0}', " ");
        headline.support = vec![headline.support.join(" ").replace('\u{a0}', " ")];
        headline
    }

    #[test]
    fn the_lead_weighs_each_stretch_by_its_samples() {
        let one = said(&fleet(1));
        assert_eq!(
            one.lead,
            "On average, 62 % of this host’s memory was available: 10.0 GiB of 16.0 GiB."
        );
        assert!(
            one.support[0]
                .contains("At the worst moment of the 1 d traced, 4.0 GiB was still available.")
        );
        let two = said(&fleet(2));
        assert_eq!(
            two.lead,
            "On average, 62 % of these 2 hosts’ memory was available: 20.0 GiB of 32.0 GiB."
        );
        assert!(
            two.support[0]
                .contains("Had every host’s worst moment come at once, 8.0 GiB would still")
        );
    }

    #[test]
    fn what_can_be_counted_on_is_the_largest_region_that_was_nearly_always_there() {
        let mut findings = fleet(1);
        assert!(said(&findings).support[0].contains("How long it lasts was not measured."));
        findings.availability_periods =
            vec![periods(2, 0.99, 0), periods(4, 0.96, 1), periods(8, 0.7, 0)];
        let counted = "a region of 4 GiB was there 96 % of the time, for 3 h or more at a stretch on average.";
        assert!(said(&findings).support[0].contains(counted));
        findings.availability_periods = vec![periods(2, 0.99, 0)];
        let whole =
            "a region of 2 GiB was there 99.0 % of the time, for 3 h at a stretch on average.";
        assert!(
            said(&findings).support[0].contains(whole),
            "{:?}",
            said(&findings)
        );
        findings.availability_periods = vec![periods(8, 0.7, 0)];
        assert!(
            said(&findings).support[0]
                .contains("No region of the sizes measured was there for 95 % of the time")
        );
        findings.hosts[0].to_time_ms = 9_000;
        findings.parameters.minimum_period_s = 0.0;
        assert!(
            said(&findings).support[0].contains("Whether it lasts, a trace of 9 s cannot tell.")
        );
    }

    #[test]
    fn the_bar_names_what_is_there_and_leaves_out_what_is_not() {
        let headline = said(&fleet(1));
        let labels: Vec<&str> = headline.bar.iter().map(|s| s.label).collect();
        assert_eq!(labels, ["process", "available"]);
        let sentence = headline.bar_sentence.replace('\u{a0}', " ");
        assert_eq!(
            sentence,
            "Where the memory is, on average: process 6.0 GiB (38 %) and available 10.0 GiB (62 %)."
        );
        assert_eq!(headline.cards[3].value, "not known");
        assert_eq!(headline.cards[4].value, "not known");
    }
}
