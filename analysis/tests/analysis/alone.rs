//! A measure requested alone has the same result as in a request for all measures: everything it needs is
//! read.

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_schemas::findings::{Findings, Parameters};
use gleaner_schemas::rows::{ClockRow, FileRow, GapRow, ProcessRow, SampleRow};
use serde_json::Value;

/// Two hosts of two days, each with a process, a file, absences of its owner, a sleep, and hours in which no
/// record reached the collector.
fn found(measures: &[&str]) -> Value {
    let mut r = Recording::new();
    for (host, shift) in [("a", 0), ("b", 5)] {
        r.host(host, 600);
        let mut sequence = 0;
        for i in 0..2 * 144 {
            let second = i * 600;
            if (100..106).contains(&i) {
                continue; // asleep
            }
            sequence += 1;
            if i == 106 {
                let slept = GapRow {
                    from_time_ms: NOON + 99 * 600_000,
                    to_time_ms: NOON + 106 * 600_000,
                    cause: "sleep".into(),
                };
                r.row(host, sequence, second, &slept);
                sequence += 1;
            }
            let row = SampleRow {
                owner_idle_ms: Some((i + shift) % 12 * 600_000),
                is_complete_state: i % 144 == 0 || i == 106,
                ..sample(300 + (i + shift) * 7 % 400)
            };
            r.row(host, sequence, second, &row);
            let process = ProcessRow {
                pid: 7,
                name: "editor".into(),
                anon_bytes: Some(80 * MIB),
                ..ProcessRow::default()
            };
            let file = FileRow {
                file_id: 1,
                open_processes_count: i % 5,
                cached_bytes: Some(20 * MIB),
                ..FileRow::default()
            };
            r.row(host, sequence, second, &process);
            r.row(host, sequence, second, &file);
            if !(40..60).contains(&i) {
                r.row(host, sequence, second, &ClockRow::default());
            }
        }
    }
    let parameters = Parameters {
        measures: measures.iter().map(|m| (*m).to_owned()).collect(),
        bootstrap_count: 20,
        ..Parameters::default()
    };
    serde_json::to_value(r.analyzed(&parameters).unwrap()).unwrap()
}

/// Removes findings by other notions of available, which appear only if `notions` is requested.
fn without_notions(key: &str, records: &Value) -> Value {
    let by_notion = ["availability_periods", "availability_odds", "dip_hosts"].contains(&key);
    let records = records.as_array().unwrap().iter();
    let kept = records.filter(|r| !by_notion || r["notion"] == "available");
    kept.cloned().collect()
}

#[test]
fn every_measure_alone_is_what_it_is_among_all() {
    let keys = Findings::keys();
    let whole = found(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    let network = |list: &str| {
        let mut ends = whole[list].as_array().unwrap().iter();
        ends.any(|r| r["ended_by_network_count"].as_i64().unwrap_or(0) > 0)
    };
    assert!(network("availability_periods"), "the silence ends leases");
    for key in keys {
        if key != "missing_measures" {
            let alone = found(&[&key]);
            assert_eq!(alone[&key], without_notions(&key, &whole[&key]), "{key}");
        }
    }
}
