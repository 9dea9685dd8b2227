use super::*;
use crate::clock::Clock;
use crate::view::ask;
use gleaner_schemas::findings::*;

/// Hosts with 16 GiB, traced for a day: 12 GiB available for three quarters of the day, 4 GiB for
/// the rest.
fn fleet(hosts: usize) -> Findings {
    let mut findings = Findings::default();
    for host in (0..hosts).map(|i| i.to_string()) {
        for (time_ms, samples_count, gib) in [(0, 3, 12_i64), (64_800_000, 1, 4)] {
            findings.memory_over_time.push(MemoryPoint {
                host_id: host.clone(),
                time_ms,
                samples_count,
                process_bytes: Some(((16 - gib) << 30) as f64),
                available_bytes: (gib << 30) as f64,
                min_available_bytes: gib << 30,
                ..MemoryPoint::default()
            });
        }
        findings.hosts.push(HostSummary {
            host_id: host,
            physical_bytes: 16 << 30,
            to_time_ms: 86_400_000,
            coverage_share: 1.0,
            ..HostSummary::default()
        });
    }
    findings
}

/// Findings of two such hosts, including the findings on all hosts together.
fn together(available_gib: f64) -> Findings {
    let available = |scope, gib: f64| ClusterAvailable {
        scope,
        cells_count: 144,
        mean_bytes: gib * GIB,
        sd_bytes: None,
        p1_bytes: 0,
        p5_bytes: (8.0 * GIB) as i64,
        median_bytes: 0,
        max_bytes: 0,
        share_of_physical: gib / 32.0,
    };
    Findings {
        cluster_available: vec![
            available(Scope::All, available_gib),
            available(Scope::Idle, available_gib / 4.0),
        ],
        cluster_over_time: vec![ClusterPoint {
            time_ms: 54_000_000,
            cells_count: 144,
            hosts_seen_count: 1.25,
            available_bytes: available_gib * GIB,
            min_available_bytes: 7 << 30,
            harvestable_bytes: Some(available_gib / 2.0 * GIB),
            ..ClusterPoint::default()
        }],
        ..fleet(2)
    }
}

const GIB: f64 = 1_073_741_824.0;

fn region(gib: i64, time_share: f64) -> AvailabilityPeriods {
    AvailabilityPeriods {
        size_class: "all".into(),
        region_bytes: gib << 30,
        available_time_share: Some(time_share),
        ..AvailabilityPeriods::default()
    }
}

fn odds(gib: i64, ahead_s: f64, available_probability: f64) -> AvailabilityOdds {
    AvailabilityOdds {
        size_class: "all".into(),
        scope: Scope::All,
        notion: Notion::Available,
        region_bytes: gib << 30,
        ahead_s,
        observed_s: 1e6,
        available_probability,
        low: None,
        high: None,
        lost_to_owner_probability: 0.0,
        lost_to_load_probability: 0.0,
        lost_to_memory_probability: 1.0 - available_probability,
        lost_to_sleep_or_power_probability: 0.0,
        lost_to_network_probability: 0.0,
        lost_to_agent_probability: 0.0,
    }
}

fn said(findings: &Findings) -> Headline {
    said_after(findings, None)
}

fn said_after(findings: &Findings, before: Option<&Findings>) -> Headline {
    let clock = Clock::new("UTC").unwrap();
    let mut headline = headline(&View::new(findings, before, &clock, None));
    headline.lead = headline.lead.replace('\u{a0}', " ");
    headline.support = vec![headline.support.join(" ").replace('\u{a0}', " ")];
    for card in &mut headline.cards {
        card.note = card.note.replace('\u{a0}', " ");
    }
    headline
}

#[track_caller]
fn supports(findings: &Findings, sentence: &str) {
    let support = &said(findings).support[0];
    assert!(support.contains(sentence), "{support}");
}

#[test]
fn the_lead_weighs_each_stretch_by_its_samples() {
    let one = fleet(1);
    assert_eq!(
        said(&one).lead,
        "On average, 62 % of this host’s memory was available: 10.0 GiB of 16.0 GiB."
    );
    supports(
        &one,
        "At the worst moment of the 1 d traced, 4.0 GiB was still available.",
    );
    let two = fleet(2);
    assert_eq!(
        said(&two).lead,
        "On average, 62 % of these 2 hosts’ memory was available: 20.0 GiB of 32.0 GiB."
    );
    supports(
        &two,
        "If every host’s worst moment had come at the same time, 8.0 GiB would still",
    );
}

#[test]
fn a_host_that_was_off_counts_for_the_time_that_it_was_on() {
    let mut findings = fleet(2);
    findings.hosts[1].coverage_share = 0.5;
    assert_eq!(
        said(&findings).lead,
        "On average, 62 % of these 2 hosts’ memory was available: 15.0 GiB of 24.0 GiB."
    );
}

#[test]
fn hosts_together_say_what_was_there_at_a_time_and_against_the_week_before() {
    let (now, before) = (together(16.0), together(12.0));
    assert_eq!(
        said(&now).lead,
        "On average, 50 % of these 2 hosts’ memory was available: 16.0 GiB of 32.0 GiB, and at least 8.0 GiB for 95 % of the time."
    );
    let changed = said_after(&now, Some(&before));
    assert!(
        changed
            .lead
            .ends_with("95 % of the time; 12 points more than the time before."),
        "{}",
        changed.lead
    );
    assert!(
        changed.cards[0]
            .note
            .ends_with("4.0 GiB more than the time before")
    );
    assert_eq!(
        said_after(&now, Some(&Findings::default())).lead,
        said(&now).lead,
        "a week before without samples is none"
    );
    for sentence in [
        "Of the available memory, 8.0 GiB was harvestable: Linux could have provided it without paging out the owners’ pages.",
        "4.0 GiB of the available memory was on hosts whose owners were away, 12.0 GiB on hosts in use.",
        "On average, 1 of 2 hosts were on at the same time",
        "Available memory was lowest around Thu 1 Jan, 15:00: 7.0 GiB.",
    ] {
        supports(&now, sentence);
    }
}

#[test]
fn what_can_be_counted_on_is_the_largest_region_that_nearly_always_stays() {
    let mut findings = fleet(1);
    supports(
        &findings,
        "How long memory stays available was not measured.",
    );
    findings.availability_periods = vec![region(2, 0.99), region(4, 0.96), region(8, 0.4)];
    supports(
        &findings,
        "A region of 4 GiB was available 96 % of the time; how long it stays available was not measured.",
    );
    findings.availability_odds = vec![
        odds(2, 3600.0, 0.99),
        odds(4, 3600.0, 0.96),
        odds(8, 3600.0, 0.99),
        odds(4, 600.0, 0.5),
        odds(4, 86_400.0, 0.1),
    ];
    supports(
        &findings,
        "a region of 4 GiB was available 96 % of the time; once available, it was still available an hour later in 96 % of cases.",
    );
    for odds in &mut findings.availability_odds {
        odds.available_probability -= 0.2;
    }
    supports(
        &findings,
        "only to a degree: a region of 2 GiB was available 99.0 % of the time; once available, it was still available \
         an hour later in only 79 % of cases.",
    );
    findings.availability_periods = vec![region(8, 0.4)];
    supports(&findings, "was available for 95 % of the time");
    findings.hosts[0].to_time_ms = 9_000;
    supports(&findings, "only periods of 5 min or more count.");
    findings.parameters.minimum_period_s = 0.0;
    supports(
        &findings,
        "A trace of 9 s is too short to show how long memory stays available.",
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
        "Average use of the memory: process 6.0 GiB (38 %) and available 10.0 GiB (62 %)."
    );
    let value = |label| {
        let card = headline.cards.iter().find(|c| c.label == label);
        card.map(|c| c.value.as_str())
    };
    assert_eq!(value("Harvestable"), Some("not known"));
    assert_eq!(value("Lease quota now"), Some("not known"));
    assert_eq!(value("On idle hosts"), None);
}

#[test]
fn the_bar_agrees_with_the_sentence_and_has_what_no_category_tells_apart() {
    let mut findings = together(16.0);
    for point in &mut findings.memory_over_time {
        point.process_bytes = None;
    }
    let headline = said(&findings);
    let bar: Vec<(&str, String)> = headline
        .bar
        .iter()
        .map(|s| (s.label, s.bytes.replace('\u{a0}', " ")))
        .collect();
    let of = |label, bytes: &str| (label, bytes.to_owned());
    assert_eq!(bar, [of("in use", "16.0 GiB"), of("available", "16.0 GiB")]);
}

#[test]
fn imported_hosts_are_told_by_their_trace() {
    let mut findings = fleet(2);
    let ours = "neither the kernel nor any active program";
    let said = |findings: &Findings| {
        let headline = ask(findings, None, headline);
        let notes = headline.cards.iter().map(|card| card.note.clone());
        let notes: Vec<String> = notes.collect();
        (headline.support[0].clone(), notes.join("; "))
    };
    let (support, notes) = said(&findings);
    assert!(
        support.contains(ours) && notes.contains("installed"),
        "{support} {notes}"
    );
    for host in &mut findings.hosts {
        host.source = Some("a trace".into());
    }
    findings.sources.push(TraceSource {
        name: "a trace".into(),
        hosts_count: 2,
        available_meaning: "Available memory is an upper bound.".into(),
        physical_meaning: Some("100 GiB, which stands for all".into()),
        ..TraceSource::default()
    });
    let (support, notes) = said(&findings);
    assert_eq!(
        support,
        "For 2\u{a0}hosts from a trace: Available memory is an upper bound. Physical memory is: 100 GiB, which stands for all."
    );
    assert!(!notes.contains("installed"), "{notes}");
    assert!(!notes.contains("the kernel did not report"), "{notes}");
    // One of the two hosts was recorded by an agent.
    findings.hosts[0].source = None;
    findings.sources[0].hosts_count = 1;
    let (support, notes) = said(&findings);
    assert!(
        support.contains(ours) && support.contains("1\u{a0}host from a trace"),
        "{support}"
    );
    assert!(
        notes.contains("installed, or as the traces state it,"),
        "{notes}"
    );
}
