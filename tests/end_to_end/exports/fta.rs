//! Exports to the Failure Trace Archive, read as its definition says: lines with # name the fields, which are
//! separated by any white space.

use super::{Fleet, Period};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Reads a table: the names of its fields, and the fields of each line. Every line must have as many fields
/// as the header names.
fn table(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = fs::read_to_string(path).unwrap();
    let (comments, rows): (Vec<&str>, Vec<&str>) = text.lines().partition(|l| l.starts_with('#'));
    let fields = |line: &str| -> Vec<String> {
        let fields = line.trim_start_matches('#').split_whitespace();
        fields.map(str::to_owned).collect()
    };
    let names = fields(comments[0]);
    let rows: Vec<Vec<String>> = rows.into_iter().map(fields).collect();
    assert!(rows.iter().all(|row| row.len() == names.len()), "{path:?}");
    (names, rows)
}

fn ms(seconds: &str) -> i64 {
    let (whole, rest) = seconds.split_once('.').unwrap_or((seconds, "000"));
    whole.parse::<i64>().unwrap() * 1000 + rest.parse::<i64>().unwrap()
}

#[test]
fn events_tile_each_host_and_are_the_periods() {
    let fleet = Fleet::new();
    for scope in ["all", "idle"] {
        let (_folder, out) = fleet.exported("fta", scope, &[]);
        let (names, events) = table(&out.join("event_trace.tab"));
        assert_eq!(
            names,
            [
                "event_id",
                "component_id",
                "node_id",
                "platform_id",
                "node_name",
                "event_type",
                "event_start_time",
                "event_stop_time",
                "event_end_reason"
            ]
        );
        let (_, nodes) = table(&out.join("node.tab"));
        assert!(nodes.len() == 4 && nodes.iter().all(|node| node.len() == 16));
        let (_, components) = table(&out.join("component.tab"));
        let (_, platforms) = table(&out.join("platform.tab"));
        assert_eq!((platforms.len(), platforms[0].len()), (1, 5));
        let notes = format!("region_bytes=12884901888;scope={scope};minimum_period=0s");
        assert_eq!(platforms[0][4], notes);

        let mut of_node: BTreeMap<usize, Vec<&Vec<String>>> = BTreeMap::new();
        for event in &events {
            of_node
                .entry(event[2].parse().unwrap())
                .or_default()
                .push(event);
        }
        for (node, events) in &of_node {
            assert_eq!(nodes[*node][0], node.to_string());
            // The events of a node alternate between available and unavailable, without gaps between them.
            assert!(
                events
                    .windows(2)
                    .all(|e| e[0][5] != e[1][5] && e[0][7] == e[1][6])
            );
            let numbers = events.iter().map(|e| e[0].parse::<usize>().unwrap());
            assert!(numbers.eq(0..events.len()));
            let component = components
                .iter()
                .find(|c| c[1] == node.to_string())
                .unwrap();
            let (first, last) = (events[0], events[events.len() - 1]);
            assert_eq!((&first[6], &last[7]), (&component[5], &component[6]));
        }
        let reasons = [
            ("2", "owner"),
            ("3", "load"),
            ("9001", "memory"),
            ("9002", "sleep_or_power"),
            ("9003", "network"),
            ("9004", "agent"),
            ("NULL", ""),
        ];
        let reasons: BTreeMap<&str, &str> = reasons.into_iter().collect();
        let available = events.iter().filter(|e| e[5] == "1").map(|e| Period {
            host: nodes[e[2].parse::<usize>().unwrap()][15].clone(),
            name: e[4].clone(),
            from_ms: ms(&e[6]),
            to_ms: ms(&e[7]),
            ended_by: reasons[e[8].as_str()].to_owned(),
        });
        assert_eq!(available.collect::<Vec<_>>(), fleet.periods(scope, &[]));
        let none = events.iter().filter(|e| e[5] == "0");
        assert!(none.clone().count() > 10 && none.into_iter().all(|e| e[8] == "NULL"));
    }
}
