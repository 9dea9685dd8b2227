//! Synthetic clusters obey the rules of real traces, are the same for the same seed, and make a sound dataset.

use crate::obeys::Reader;
use gleaner_dataset::Dataset;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{FileRow, ProcessRow, TABLES};
use gleaner_traces::published::acharya_setia;
use gleaner_traces::synth::{Cluster, Fleet, Parameters, Preset, Record, Rows, SynthError, write};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Monday, 2026-11-02 00:00 UTC.
const MONDAY_MS: i64 = 1_793_577_600_000;
const DAY_MS: i64 = 86_400_000;

fn parameters(hosts: usize, days: u32, interval_ms: i64, seed: u64) -> Parameters {
    Parameters {
        hosts,
        days,
        start_ms: MONDAY_MS,
        interval_ms,
        ..Parameters::of_preset(Preset::Modern, seed).unwrap()
    }
}

fn followed(parameters: &Parameters, host: usize) -> Reader {
    let cluster = Cluster::new(parameters).unwrap();
    let mut reader = Reader::new(parameters.interval_ms);
    for record in cluster.host(host) {
        reader.read(&record);
    }
    reader
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// The rules hold for any seed, kind of host, day of the week and interval.
    #[test]
    fn a_synthetic_trace_obeys_what_a_real_one_does(
        seed in any::<u64>(),
        host in 0usize..52,
        first_day in 0i64..7,
        fleet in prop_oneof![Just(Preset::Modern), Just(Preset::AcharyaSetia)],
        interval_ms in prop_oneof![1 => Just(90_000i64), 4 => 200_000i64..4_000_000],
    ) {
        let parameters = Parameters {
            start_ms: MONDAY_MS + first_day * DAY_MS,
            hosts: 52,
            days: 5,
            interval_ms,
            ..Parameters::of_preset(fleet, seed).unwrap()
        };
        let reader = followed(&parameters, host);
        prop_assert!(reader.samples > 5);
        // Jobs may ask for all memory; the part that does not fit is paged out.
        prop_assert!(reader.least_available_share >= 0.0, "{}", reader.least_available_share);
    }
}

/// Workstations of 1998 have no control groups and no NUMA nodes; their programs have names of that time.
#[test]
fn hosts_of_the_study_obey_it_too_and_have_every_table_of_theirs() {
    let mut parameters = Parameters::of_preset(Preset::AcharyaSetia, 4).unwrap();
    assert_eq!((parameters.hosts, parameters.days), (52, 14));
    assert_eq!(parameters.start_ms, 905_126_400_000); // 1998-09-07
    parameters.days = 3;
    let ids = |preset| -> Vec<String> {
        let cluster = Cluster::new(&Parameters::of_preset(preset, 4).unwrap()).unwrap();
        (0..cluster.parameters().hosts)
            .map(|h| cluster.host(h).host_id().to_owned())
            .collect()
    };
    let (a, b) = (ids(Preset::AcharyaSetiaA), ids(Preset::AcharyaSetiaB));
    assert_eq!(
        [a, b].concat(),
        ids(Preset::AcharyaSetia),
        "both are A's and B's"
    );
    for host in [0, 8, 22, 26, 28, 30, 51] {
        let reader = followed(&parameters, host);
        assert!(reader.samples > 3 * 959, "{}", reader.samples);
        assert!(reader.gaps.is_empty());
        for table in [
            "samples",
            "processes",
            "files",
            "activity",
            "events",
            "hosts",
            "missing_values",
        ] {
            assert!(reader.rows[table] > 0, "no {table}");
        }
        for table in ["numa_nodes", "cgroups"] {
            assert!(!reader.rows.contains_key(table));
        }
    }
}

/// Checks the calibration on the lives of hosts, without rows. `gleaner fidelity` measures everything, on whole traces.
#[test]
fn hosts_of_the_study_use_the_memory_that_its_table_2_says() {
    const STEP_MS: i64 = 90_000;
    let published = acharya_setia().unwrap();
    let mut sums: BTreeMap<String, (f64, [f64; 2])> = BTreeMap::new();
    for seed in 2001..2005 {
        let parameters = Parameters::of_preset(Preset::AcharyaSetia, seed).unwrap();
        let cluster = Cluster::new(&parameters).unwrap();
        for host in 0..parameters.hosts {
            let class = &parameters.fleet.classes[cluster.class_of(host)].name;
            let mut life = cluster.life(host);
            let (count, sum) = sums.entry(class.clone()).or_default();
            for step in 1..=14 * 960 {
                let moment = life.step(parameters.start_ms + step * STEP_MS, STEP_MS);
                assert!(moment.available_bytes() >= 0);
                *count += 1.0;
                sum[0] += moment.kernel_bytes as f64 / 1024.0;
                sum[1] += moment.process_bytes as f64 / 1024.0;
            }
        }
    }
    for class in ["32 MB", "64 MB", "128 MB", "256 MB"] {
        let (count, sum) = sums[class];
        for (at, column, within) in [(0, "kernel, mean", 0.08), (1, "process, mean", 0.25)] {
            let paper = published.get("Table 2", class, column).unwrap().paper;
            let ours = sum[at] / count;
            println!("{class} {column}: {ours:.0} beside {paper}");
            assert!(
                (ours / paper - 1.0).abs() < within,
                "{class} {column}: {ours} {paper}"
            );
        }
    }
}

#[test]
fn a_fleet_is_refused_by_line_or_by_what_is_wrong_with_it() {
    let of = |from: &str, to: &str| {
        let text = Preset::Modern.text();
        assert!(text.contains(from), "{from}");
        Fleet::parse(&text.replacen(from, to, 1), "mine.toml")
            .unwrap_err()
            .to_string()
    };
    let key = of("has_lunch", "has_supper");
    assert!(
        key.contains("mine.toml") && key.contains("has_supper") && key.contains("line"),
        "{key}"
    );
    let class = of("class = \"16 GiB laptop\"", "class = \"laptop\"");
    assert!(
        class.contains("\"laptop\"") && class.contains("modern"),
        "{class}"
    );
    let share = of("active_share = 0.7", "active_share = 7.0");
    assert!(share.contains("shares must be 0 to 1"), "{share}");
    let name = of("\"firefox\"", "\"a name that is too long\"");
    assert!(name.contains("15 bytes"), "{name}");
    let error = Parameters::of_fleet(Preset::Modern.fleet().unwrap(), Some("c"), 1).unwrap_err();
    assert!(error.to_string().contains("no cluster \"c\""), "{error}");
}

#[test]
fn intervals_of_a_few_seconds_and_of_a_day_are_traces_too() {
    assert!(followed(&parameters(1, 1, 20_000, 3), 0).samples > 4000);
    assert!(followed(&parameters(4, 30, DAY_MS, 3), 2).samples > 3);
}

#[test]
fn the_smallest_cluster_fills_every_table() {
    let reader = followed(&parameters(1, 2, 90_000, 1), 0);
    let tables: Vec<&str> = TABLES
        .iter()
        .map(|t| t.name)
        .filter(|t| *t != "gaps")
        .collect();
    for table in tables {
        assert!(reader.rows.contains_key(table), "no {table}");
    }
    // A trace of two weeks has gaps as well.
    assert!(
        followed(&parameters(3, 14, 90_000, 1), 1)
            .rows
            .contains_key("gaps")
    );
}

/// Each sample has at least 10 rows of processes and 5 of files on average. The two ways to count available
/// memory sometimes differ a little. Each cause of gaps occurs.
#[test]
fn a_week_of_a_small_cluster_is_plausible() {
    let parameters = parameters(8, 8, 180_000, 43);
    let (mut gaps, mut events) = (BTreeMap::new(), BTreeMap::new());
    let (mut samples, mut processes, mut files) = (0, 0, 0);
    let mut rows = 0;
    for host in 0..parameters.hosts {
        let reader = followed(&parameters, host);
        samples += reader.samples;
        processes += reader.rows[ProcessRow::TABLE.name];
        files += reader.rows[FileRow::TABLE.name];
        rows += reader.rows.values().sum::<usize>();
        for (cause, count) in reader.gaps {
            *gaps.entry(cause).or_insert(0) += count;
        }
        for (kind, count) in reader.events {
            *events.entry(kind).or_insert(0) += count;
        }
        assert!(
            reader.residuals.len() > 10 && reader.residuals.contains(&0),
            "host {host}"
        );
    }
    let a_sample = |count: usize| count as f64 / samples as f64;
    println!(
        "{samples} samples, {:.1} processes, {:.1} files, {:.1} rows a sample; {gaps:?}; {events:?}",
        a_sample(processes),
        a_sample(files),
        a_sample(rows)
    );
    assert!(a_sample(processes) >= 10.0, "{}", a_sample(processes));
    assert!(a_sample(files) >= 5.0, "{}", a_sample(files));
    assert_eq!(
        gaps.keys().collect::<Vec<_>>(),
        ["boot", "sleep", "stopped"]
    );
    for kind in [
        "agent_start",
        "agent_stop",
        "boot",
        "owner_returned",
        "sleep",
        "wake",
    ] {
        assert!(events.contains_key(kind), "no {kind}");
    }
}

#[test]
fn a_host_is_the_same_in_any_cluster_and_longer_traces_begin_as_shorter_ones_do() {
    let records = |hosts, days| -> Vec<Record> {
        let cluster = Cluster::new(&parameters(hosts, days, 300_000, 5)).unwrap();
        cluster.host(4).collect()
    };
    let (few, many, longer) = (records(5, 3), records(500, 3), records(5, 6));
    assert_eq!(few, many);
    assert_eq!(few, longer[..few.len()]);
    assert!(longer.len() > few.len());
}

#[test]
fn names_are_32_hex_digits_and_differ() {
    let cluster = Cluster::new(&parameters(200, 1, 90_000, 1)).unwrap();
    let other = Cluster::new(&parameters(200, 1, 90_000, 2)).unwrap();
    let mut names = BTreeSet::new();
    for cluster in [&cluster, &other] {
        for index in 0..200 {
            let host = cluster.host(index);
            names.insert(host.host_id().to_owned());
            names.insert(host.database_id().to_owned());
        }
    }
    assert_eq!(names.len(), 800);
    let is_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    assert!(names.iter().all(|n| n.len() == 32 && n.chars().all(is_hex)));
}

/// Path of every file in a folder, with a hash of the file's bytes.
fn hashes(folder: &Path) -> BTreeMap<String, blake3::Hash> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(folder)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                found.insert(name, blake3::hash(&fs::read(path).unwrap()));
            }
        }
    }
    found
}

#[test]
fn the_seed_decides_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, seed| {
        let cluster = Cluster::new(&parameters(6, 2, 600_000, seed)).unwrap();
        let path = folder.path().join(name);
        let written = write(&cluster, &path, |_| {}).unwrap();
        (written.rows, hashes(&path))
    };
    let first = written("first", 11);
    assert!(first.1.len() > 20);
    assert_eq!(first, written("again", 11));
    let other = written("other", 12);
    assert!(
        other
            .1
            .keys()
            .filter(|k| first.1.contains_key(*k))
            .all(|k| !k.ends_with(".arrow"))
    );
}

#[test]
fn a_dataset_holds_what_the_traces_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dataset");
    let cluster = Cluster::new(&parameters(3, 4, 120_000, 9)).unwrap();
    let mut last = None;
    let written = write(&cluster, &path, |p| last = Some(*p)).unwrap();
    let last = last.unwrap();
    assert_eq!((last.host_days, last.host_days_in_all), (12, 12));
    let dataset = Dataset::open(&path).unwrap();
    let mut rows = 0;
    let mut samples = 0;
    for index in 0..3 {
        let host = cluster.host(index);
        let id = host.host_id().to_owned();
        assert!(dataset.hosts().unwrap().contains(&id));
        for record in host {
            rows += record.rows_count() as u64;
            samples += u64::from(matches!(record.rows, Rows::Sample(_)));
        }
    }
    assert_eq!(written.rows, rows);
    assert_eq!(TABLES.iter().map(|t| dataset.rows(t)).sum::<u64>(), rows);
    assert_eq!(dataset.rows(&TABLES[0]), samples);
    assert_eq!(dataset.dates(&TABLES[0]).len(), 4);
}

#[test]
fn what_no_cluster_can_be_is_refused_and_so_is_a_folder_in_use() {
    for (name, parameters) in [
        ("hosts", parameters(0, 1, 90_000, 1)),
        ("days", parameters(1, 0, 90_000, 1)),
        ("interval", parameters(1, 1, 0, 1)),
        (
            "start",
            Parameters {
                start_ms: -1,
                ..parameters(1, 1, 90_000, 1)
            },
        ),
    ] {
        let error = Cluster::new(&parameters).unwrap_err().to_string();
        assert!(error.starts_with(name), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let cluster = Cluster::new(&parameters(1, 1, 90_000, 1)).unwrap();
    let error = write(&cluster, folder.path(), |_| {}).unwrap_err();
    assert!(matches!(error, SynthError::NotEmpty { .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn hosts_that_are_left_on_sample_day_and_night() {
    let samples = |always_on| {
        let parameters = Parameters {
            always_on,
            ..parameters(12, 3, 90_000, 5)
        };
        let cluster = Cluster::new(&parameters).unwrap();
        let records = (0..12).flat_map(|index| cluster.host(index));
        records
            .filter(|r| matches!(r.rows, Rows::Sample(_)))
            .count()
    };
    let (left_on, as_they_are) = (samples(true), samples(false));
    // A host that is always on has 960 samples per day, except for the few that a reboot costs.
    assert!(left_on > 12 * 3 * 950, "{left_on}");
    assert!(as_they_are < left_on * 9 / 10, "{as_they_are} of {left_on}");
}
