use super::section;
use crate::clock::Clock;
use crate::page::figure::Figure;
use crate::page::table::Table;
use crate::page::{Part, Section};
use crate::view::View;
use gleaner_schemas::findings::*;

const GIB: f64 = 1_073_741_824.0;
const HOUR_MS: i64 = 3_600_000;
const WEEK_MS: i64 = 168 * HOUR_MS;
/// Monday 16 November 2026, 00:00 UTC.
const START_MS: i64 = 1_794_787_200_000;

/// Findings of four hosts of 8 GiB for a week. In working hours, little memory is available on idle hosts.
/// `more_gib` is added to the available memory.
fn findings(from_ms: i64, more_gib: f64) -> Findings {
    let mut f = Findings {
        parameters: Parameters {
            from_time_ms: Some(from_ms),
            ..Parameters::default()
        },
        ..Findings::default()
    };
    for host in 0..4 {
        f.hosts.push(HostSummary {
            host_id: host.to_string(),
            physical_bytes: 8 << 30,
            from_time_ms: from_ms,
            to_time_ms: from_ms + WEEK_MS,
            coverage_share: 1.0,
            ..HostSummary::default()
        });
        f.memory_over_time.push(MemoryPoint {
            host_id: host.to_string(),
            time_ms: from_ms,
            samples_count: 1,
            available_bytes: 5.0 * GIB,
            min_available_bytes: 1 << 30,
            ..MemoryPoint::default()
        });
    }
    for hour in 0..168 {
        let at_work = hour / 24 < 5 && (9..17).contains(&(hour % 24));
        let available = if at_work { 16.0 } else { 24.0 } + more_gib;
        f.cluster_over_time.push(ClusterPoint {
            time_ms: from_ms + hour * HOUR_MS,
            cells_count: 6,
            is_after_gap: hour == 100,
            hosts_seen_count: 4.0,
            hosts_idle_count: Some(2.0),
            physical_bytes: 32.0 * GIB,
            available_bytes: available * GIB,
            min_available_bytes: ((available - if hour == 34 { 9.0 } else { 1.0 }) * GIB) as i64,
            harvestable_bytes: Some(12.0 * GIB),
            idle_available_bytes: Some(if at_work { 2.0 } else { 22.0 } * GIB),
            ..ClusterPoint::default()
        });
    }
    for (scope, mean) in [(Scope::All, 22.0 + more_gib), (Scope::Idle, 17.0)] {
        f.cluster_available.push(ClusterAvailable {
            scope,
            cells_count: 1008,
            mean_bytes: mean * GIB,
            sd_bytes: None,
            p1_bytes: (15.0 * GIB) as i64,
            p5_bytes: ((15.5 + more_gib) * GIB) as i64,
            median_bytes: (24.0 * GIB) as i64,
            max_bytes: (25.0 * GIB) as i64,
            share_of_physical: mean / 32.0,
        });
        for (ahead_s, kept) in [(600.0, 14.0), (3600.0, 12.0), (86_400.0, 6.0)] {
            for (probability, part) in [(0.5, 1.0), (0.9, 0.5), (0.99, 0.0)] {
                let part = if scope == Scope::All {
                    part
                } else {
                    part - 0.5
                };
                f.guarantees.push(Guarantee {
                    scope,
                    residence: Residence::Stays,
                    ahead_s,
                    probability,
                    bytes: (kept * f64::max(part, 0.0) * GIB) as i64,
                    mean_now_bytes: 15.0 * GIB,
                    share_of_now: None,
                    cells_count: 1000,
                });
            }
        }
    }
    f
}

fn answered(now: &Findings, before: Option<&Findings>) -> Section {
    section(&View::new(now, before, &Clock::new("UTC").unwrap(), None))
}

fn figure<'a>(section: &'a Section, id: &str) -> Option<&'a Figure> {
    section.parts.iter().find_map(|part| match part {
        Part::Figure(figure) if figure.id == id => Some(figure.as_ref()),
        _ => None,
    })
}

fn table<'a>(section: &'a Section, id: &str) -> Option<&'a Table> {
    section.parts.iter().find_map(|part| match part {
        Part::Table(table) if table.id == id => Some(table),
        _ => None,
    })
}

fn plain(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

#[test]
fn the_answer_says_how_much_and_what_stayed() {
    assert_eq!(
        plain(&answered(&findings(START_MS, 0.0), None).answer),
        "22.0 GiB of 32.0 GiB was available on average (69 %). At nine of ten moments, at least 6.0 GiB of the paper’s quota \
         (available, less a headroom of 15 %) stayed available for an hour, but none of it on hosts whose owners stayed away that long."
    );
    let mut few = findings(START_MS, 0.0);
    few.guarantees.clear();
    assert!(
        plain(&answered(&few, None).answer)
            .ends_with("and at least 15.5 GiB for 95 % of the time.")
    );
    few.cluster_available.clear();
    assert_eq!(
        plain(&answered(&few, None).answer),
        "20.0 GiB of 32.0 GiB was available on average (62 %). The trace is too short to show how much memory can be counted on."
    );
}

#[test]
fn the_areas_of_each_stretch_sum_to_what_is_installed_and_gaps_part_them() {
    let now = findings(START_MS, 0.0);
    let section = answered(&now, None);
    let plot = serde_json::to_value(&figure(&section, "cluster-over-time").unwrap().plot).unwrap();
    let traces = plot["data"].as_array().unwrap();
    let runs = plot["times"].as_array().unwrap();
    let lengths: Vec<usize> = runs.iter().map(|t| t.as_array().unwrap().len()).collect();
    assert_eq!(lengths, [100, 68]);
    for (run, length) in lengths.into_iter().enumerate() {
        let stacked: Vec<_> = traces
            .iter()
            .filter(|t| t["stackgroup"] == format!("run-{run}"))
            .collect();
        assert_eq!(stacked.len(), 3);
        for at in 0..length {
            let sum: f64 = stacked.iter().map(|t| t["y"][at].as_f64().unwrap()).sum();
            assert!((sum - 32.0).abs() < 1e-3, "{sum}");
        }
    }
    let sentence = plain(&figure(&section, "cluster-over-time").unwrap().sentence);
    assert!(
        sentence.starts_with(
            "Available memory of all hosts was lowest around Tue 17 Nov, 10:00 (7.0 GiB)"
        ),
        "{sentence}"
    );
}

#[test]
fn a_dip_within_a_stretch_stays_in_the_figure() {
    let section = answered(&findings(START_MS, 0.0), None);
    let figure = figure(&section, "cluster-over-time").unwrap();
    let plot = serde_json::to_value(&figure.plot).unwrap();
    let traces = plot["data"].as_array().unwrap();
    let least = traces.iter().find(|t| t["name"] == "least available");
    assert_eq!(least.unwrap()["y"][34], 7.0);
}

#[test]
fn the_week_before_lies_under_this_one_hour_by_hour() {
    // The week before was one hour longer, since clocks were set back.
    let earlier_ms = START_MS - WEEK_MS - HOUR_MS;
    let (now, before) = (findings(START_MS, 0.0), findings(earlier_ms, -2.0));
    let section = answered(&now, Some(&before));
    let plot = serde_json::to_value(&figure(&section, "cluster-over-time").unwrap().plot).unwrap();
    let pale: Vec<_> = plot["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|t| t["meta"] == "soft")
        .collect();
    assert_eq!(pale.len(), 2, "one a run");
    let times = &plot["times"][pale[0]["x"][0].as_u64().unwrap() as usize];
    assert_eq!(times[0], START_MS);
    let together = table(&section, "cluster-available").unwrap();
    let change = |label| {
        let at = together.columns.iter().position(|c| c.label == label);
        let cell = &together.rows[0][at.unwrap()];
        format!("{} {}", cell.text, cell.unit)
    };
    assert_eq!(change("change of mean"), "+2.0 GiB");
    assert_eq!(change("change at 95 %"), "+2.0 GiB");
    let alone = answered(&now, None);
    let columns = &table(&alone, "cluster-available").unwrap().columns;
    assert!(columns.iter().all(|c| !c.label.starts_with("change")));
}

#[test]
fn where_nobody_knows_which_hosts_were_idle_it_is_one_area() {
    let mut findings = findings(START_MS, 0.0);
    for point in &mut findings.cluster_over_time {
        point.idle_available_bytes = None;
    }
    findings.cluster_available.retain(|a| a.scope == Scope::All);
    findings.guarantees.retain(|g| g.scope == Scope::All);
    let section = answered(&findings, None);
    let figure = figure(&section, "cluster-over-time").unwrap();
    let labels: Vec<&str> = figure.key.iter().map(|k| k.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "available",
            "in use by owners",
            "least available in each interval",
            "harvestable"
        ]
    );
    assert!(
        figure.sentence.contains("is not known"),
        "{}",
        figure.sentence
    );
    assert!(
        section.answer.ends_with("for an hour."),
        "{}",
        section.answer
    );
}

#[test]
fn a_hole_in_the_data_is_not_the_worst_moment() {
    let mut findings = findings(START_MS, 0.0);
    findings.cluster_over_time[50].hosts_seen_count = 1.0;
    findings.cluster_over_time[50].min_available_bytes = 1;
    let section = answered(&findings, None);
    let sentence = plain(&figure(&section, "cluster-over-time").unwrap().sentence);
    assert!(
        sentence
            .contains("lowest around Tue 17 Nov, 10:00 (7.0 GiB) (times with few hosts excluded)"),
        "{sentence}"
    );
    assert!(sentence.contains("1 to 4 at the same time"), "{sentence}");
}

#[test]
fn nothing_known_says_so_once() {
    let section = answered(&Findings::default(), None);
    assert_eq!(section.parts.len(), 1);
    assert!(section.answer.is_empty());
}
