use super::section;
use crate::clock::Clock;
use crate::page::table::Table;
use crate::page::{Part, Section};
use crate::view::View;
use gleaner_schemas::findings::*;

const GIB: i64 = 1 << 30;
const DAY_MS: i64 = 86_400_000;
/// Tuesday 17 November 2026, 14:10 UTC.
const WORST_MS: i64 = 1_794_924_600_000;

struct TestHost {
    name: &'static str,
    memory_gib: i64,
    used_gib: i64,
    used_at_most_gib: i64,
    short_intervals: i64,
    days: i64,
}

fn findings(hosts: &[TestHost]) -> Findings {
    let mut f = Findings::default();
    for made in hosts {
        let host = || format!("id of {}", made.name);
        let from_time_ms = WORST_MS - WORST_MS % DAY_MS - DAY_MS;
        f.hosts.push(HostSummary {
            host_id: host(),
            host_name: made.name.into(),
            physical_bytes: made.memory_gib * GIB,
            samples_count: 1000,
            from_time_ms,
            to_time_ms: from_time_ms + made.days * DAY_MS,
            coverage_share: 1.0,
            idle_share: Some(0.4),
            ..HostSummary::default()
        });
        let least = (made.memory_gib - made.used_at_most_gib) * GIB;
        for day in 0..made.days {
            f.memory_over_time.push(MemoryPoint {
                host_id: host(),
                time_ms: from_time_ms + day * DAY_MS,
                samples_count: 1,
                available_bytes: ((made.memory_gib - made.used_gib) * GIB) as f64,
                min_available_bytes: least,
                ..MemoryPoint::default()
            });
        }
        f.dips.push(Dip {
            host_id: host(),
            threshold_bytes: made.memory_gib * GIB / 10,
            threshold_share: Some(0.1),
            intervals_count: made.short_intervals,
            samples_count: 1000,
            min_available_bytes: least,
            min_time_ms: WORST_MS,
        });
        if made.short_intervals > 0 {
            f.worst_dips.push(WorstDip {
                host_id: host(),
                threshold_share: Some(0.1),
                min_time_ms: WORST_MS,
                duration_s: 5400.0,
                min_available_bytes: least,
                process_bytes: Some(12 * GIB),
                usual_process_bytes: Some((2 * GIB) as f64),
                ..WorstDip::default()
            });
            // The programs are in an arbitrary order, not in the order of their ranks.
            for (rank, name, gib) in [(2, "chrome", 2), (1, "code", 11)] {
                f.dip_processes.push(DipProcess {
                    host_id: host(),
                    time_ms: WORST_MS,
                    rank,
                    name: name.into(),
                    bytes: gib * GIB,
                    mean_bytes: GIB as f64,
                });
            }
        }
        for (name, active) in [("code", 500), ("cron", 1000)] {
            f.top_processes.push(TopProcess {
                host_id: host(),
                name: name.into(),
                active_samples_count: active,
                mean_bytes: GIB as f64,
                max_bytes: 2 * GIB,
                cpu_s: 1.0,
            });
        }
    }
    f
}

const fn made(name: &'static str, memory_gib: i64, used_at_most_gib: i64, short: i64) -> TestHost {
    TestHost {
        name,
        memory_gib,
        used_gib: memory_gib / 4,
        used_at_most_gib,
        short_intervals: short,
        days: 7,
    }
}

fn fleet() -> Findings {
    let mut hosts = vec![
        made("finch", 16, 15, 0),
        made("heron", 64, 24, 0),
        made("otter", 16, 15, 32),
        made("wren", 128, 40, 0),
        made("swift", 16, 1, 0),
    ];
    hosts[4].days = 2;
    findings(&hosts)
}

fn answered(now: &Findings, before: Option<&Findings>) -> Section {
    section(&View::new(now, before, &Clock::new("UTC").unwrap(), None))
}

fn table(section: &Section, id: &str) -> Table {
    let mut tables = section.parts.iter().filter_map(|part| match part {
        Part::Table(table) if table.id == id => Some(table.clone()),
        _ => None,
    });
    tables.next().unwrap()
}

fn column(table: &Table, label: &str) -> Vec<String> {
    let at = table.columns.iter().position(|c| c.label == label).unwrap();
    let cell = |row: &Vec<crate::page::table::Cell>| {
        format!("{} {}", row[at].text, row[at].unit)
            .trim()
            .replace('\u{a0}', " ")
    };
    table.rows.iter().map(cell).collect()
}

fn plain(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

#[test]
fn the_answer_counts_who_is_short_and_who_has_too_much() {
    let now = fleet();
    assert_eq!(
        plain(&answered(&now, None).answer),
        "1 of 4 hosts was short of memory (less than 10 % of their memory available in at least 1 % of samples): otter. 2 hosts never \
         used half of their memory and could spare 96.0 GiB in total. 1 host more: traced for too short a time for advice."
    );
    let mut before = fleet();
    before.dips[0].intervals_count = 20;
    assert!(
        answered(&now, Some(&before))
            .answer
            .contains("otter; in the time before 2 were.")
    );
    let mut short_trace = fleet();
    for host in &mut short_trace.hosts {
        host.coverage_share = 0.01;
    }
    assert_eq!(
        plain(&answered(&short_trace, None).answer),
        "None of 5 hosts was traced for long enough: advice needs 5 days, and 20 hours in all."
    );
    assert!(
        answered(&Findings::default(), None)
            .answer
            .contains("no samples")
    );
}

#[test]
fn each_host_is_advised_with_what_it_rests_on_the_short_first() {
    let section = answered(&fleet(), None);
    let hosts = table(&section, "hosts-overview");
    assert_eq!(
        column(&hosts, "host"),
        ["otter", "wren", "heron", "finch", "swift"]
    );
    assert_eq!(
        column(&hosts, "advice"),
        ["add", "move", "keep", "keep", "watch"]
    );
    assert_eq!(
        column(&hosts, "reason"),
        [
            "less than 10 % of its memory available in 3.2 % of samples, at worst 1.0 GiB on Tue 17 Nov, 14:10 while code held 11.0 GiB; \
             4.0 GiB more would have been enough, which wren could spare",
            "never used more than 31 % of its 128 GiB in 7 d of trace; up to 64 GiB could go to otter",
            "never used more than 38 % of its 64 GiB in 7 d of trace; 32 GiB could be lent",
            "used at most 94 % of its memory",
            "traced for 2 d on 2 days: too short for advice",
        ]
    );
    assert_eq!(column(&hosts, "short")[0], "3.2 %");
    assert_eq!(column(&hosts, "highest use")[1], "31 %");
    assert!(hosts.columns.iter().all(|c| c.label != "change"));
    let mut before = fleet();
    before.hosts.retain(|h| h.host_name != "finch");
    for point in &mut before.memory_over_time {
        point.available_bytes -= GIB as f64;
    }
    let changed = table(&answered(&fleet(), Some(&before)), "hosts-overview");
    assert_eq!(
        column(&changed, "change"),
        ["+1.0 GiB", "+1.0 GiB", "+1.0 GiB", "–", "+1.0 GiB"]
    );
}

#[test]
fn a_time_of_being_short_says_what_held_the_memory() {
    let worst = table(&answered(&fleet(), None), "short-hosts");
    assert_eq!(column(&worst, "host"), ["otter"]);
    assert_eq!(column(&worst, "duration"), ["1 h 30 min"]);
    assert_eq!(column(&worst, "process"), ["+10.0 GiB"]);
    assert_eq!(column(&worst, "file cache"), ["–"]);
    assert_eq!(
        column(&worst, "active programs"),
        ["code 11.0 GiB (usually 1.0 GiB), chrome 2.0 GiB (usually 1.0 GiB)"]
    );
}

/// The share is of the memory that the host had at the time of the dip: 1 GiB is 6.2 % of 16 GiB, and 1.6 %
/// of 64 GiB.
#[test]
fn a_host_that_was_given_less_memory_later_was_short_of_what_it_had() {
    let mut shrunk = fleet();
    shrunk.worst_dips[0].threshold_bytes = 64 * GIB / 10;
    let share = |findings: &Findings| {
        let worst = table(&answered(findings, None), "short-hosts");
        column(&worst, "share")
    };
    assert_eq!(share(&fleet()), ["6.2 %"]);
    assert_eq!(share(&shrunk), ["1.6 %"]);
}

#[test]
fn programs_count_for_the_time_in_which_they_are_active() {
    let programs = table(&answered(&fleet(), None), "programs");
    assert_eq!(column(&programs, "program"), ["cron", "code"]);
    assert_eq!(column(&programs, "mean memory"), ["5.0 GiB", "2.5 GiB"]);
    assert_eq!(column(&programs, "hosts"), ["5", "5"]);
}

#[test]
fn without_a_count_of_dips_only_hosts_that_never_came_near_are_advised() {
    let mut findings = fleet();
    findings.dips.clear();
    let hosts = table(&answered(&findings, None), "hosts-overview");
    let of = |name: &str| {
        let at = column(&hosts, "host").iter().position(|h| h == name);
        let at = at.unwrap();
        (
            column(&hosts, "advice")[at].clone(),
            column(&hosts, "reason")[at].clone(),
        )
    };
    assert_eq!(
        of("finch"),
        ("watch".into(), "shortages were not counted".into())
    );
    assert_eq!(of("heron").0, "keep");
}

#[test]
fn hours_of_the_week_in_which_memory_was_short_are_drawn_when_there_are_any() {
    let mut findings = fleet();
    let figures = |f: &Findings| -> Vec<String> {
        let section = answered(f, None);
        let figures = section.parts.iter().filter_map(|p| match p {
            Part::Figure(figure) => Some(format!("{}: {}", figure.id, plain(&figure.sentence))),
            _ => None,
        });
        figures.collect()
    };
    assert_eq!(figures(&findings).len(), 1);
    for (threshold_share, hour, intervals) in [(0.1, 9, 0), (0.1, 10, 5), (0.25, 10, 50)] {
        findings.dips_by_hour.push(DipsByHour {
            size_class: "all".into(),
            weekday: 2,
            hour,
            threshold_bytes: None,
            threshold_share: Some(threshold_share),
            intervals_count: intervals,
            samples_count: 100,
        });
    }
    let drawn = figures(&findings);
    assert!(
        drawn[0].contains("3 of 5 hosts never used more than half of their memory (lower line)"),
        "{drawn:?}"
    );
    assert!(
        drawn[1].contains("most often on Tuesday from 10:00: in 5.0 % of the samples"),
        "{drawn:?}"
    );
    assert!(
        drawn[1].contains("This happened in 1 of the 2 hours"),
        "{drawn:?}"
    );
    findings.dips_by_hour.truncate(1);
    assert_eq!(figures(&findings).len(), 1);
}

#[test]
fn a_thousand_hosts_are_all_in_the_table() {
    let names: Vec<TestHost> = (0..1000).map(|_| made("same", 16, 15, 2)).collect();
    let mut findings = findings(&names);
    for (number, host) in findings.hosts.iter_mut().enumerate() {
        host.host_id = number.to_string();
    }
    let hosts = table(&answered(&findings, None), "hosts-overview");
    assert_eq!(hosts.shown().len(), 1000);
}
