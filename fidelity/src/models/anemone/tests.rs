//! Tests of our values of Anemone's figures.

use super::*;
use gleaner_traces::published::anemone;
use serde_json::json;

fn value(measured: &Measured, row: &str, column: &str) -> Option<f64> {
    let published = anemone().unwrap();
    let is_there = |f: &&Figure| f.row == row && f.column == column;
    let figure = published.figures.iter().find(is_there).unwrap();
    ours(figure, measured, &published)
}

fn programs() -> Measured {
    let run = |set: &str, program: &str, processes: u32, way: &str, seconds: f64, outcome: &str| {
        json!({"set": set, "program": program, "processes": processes, "way": way, "run": 1,
               "seconds": seconds, "outcome": outcome, "is_quick": false, "made": []})
    };
    let mut runs = vec![
        run("single", "POV-Ray, 54 MiB", 1, "disk", 10.0, "done"),
        run("single", "POV-Ray, 54 MiB", 1, "borrowed", 5.0, "done"),
        run("single", "POV-Ray, 218 MiB", 1, "disk", 60.0, "done"),
        run("single", "POV-Ray, 218 MiB", 1, "borrowed", 10.0, "done"),
        run("single", "POV-Ray, 218 MiB", 1, "borrowed", 30.0, "done"),
        run("single", "ns-2, 64 MiB", 1, "disk", 9.0, "ended itself"),
        run("single", "ns-2, 64 MiB", 1, "borrowed", 3.0, "done"),
    ];
    for (processes, disk_s, borrowed_s) in [(1, 2.0, 2.0), (12, 480.0, 30.0), (18, 360.0, 36.0)] {
        runs.push(run(
            "concurrent",
            "std::sort",
            processes,
            "disk",
            disk_s,
            "done",
        ));
        runs.push(run(
            "concurrent",
            "std::sort",
            processes,
            "borrowed",
            borrowed_s,
            "done",
        ));
    }
    serde_json::from_value(json!({ "programs": runs })).unwrap()
}

#[test]
fn factors_are_of_medians_of_runs_that_ended_well() {
    let measured = programs();
    let factor = |row| value(&measured, row, "disk over borrowed memory");
    assert_eq!(factor("POV-Ray, 3.4 GB"), Some(3.0));
    assert_eq!(factor("NS-2, 1 GB"), None);
    let growth = "factor of the largest size over that of the smallest";
    assert_eq!(value(&measured, "POV-Ray", growth), Some(1.5));
    let sorting = |column| value(&measured, "quicksort", column);
    assert_eq!(
        sorting("time of most processes on disk, over linear"),
        Some(10.0)
    );
    assert_eq!(
        sorting("time on borrowed memory, largest over linear"),
        Some(1.25)
    );
    assert_eq!(
        sorting("disk over borrowed memory with 12 to 18 processes"),
        Some(16.0)
    );
}

#[test]
fn windows_are_compared_without_the_adaptive_one() {
    let row = |window: u32, goodput: f64, retransmissions: f64, seconds: f64| {
        json!({"window": window, "goodput_mib_per_s": goodput,
               "retransmissions_per_1000_pages": retransmissions, "quicksort_s": seconds})
    };
    let rows = [
        row(0, 90.0, 9.0, 1.0),
        row(1, 20.0, 0.0, 8.0),
        row(32, 80.0, 1.0, 4.0),
        row(1024, 60.0, 5.0, 6.0),
    ];
    let measured: Measured = serde_json::from_value(json!({"window": {"rows": rows}})).unwrap();
    let found = |row, column| value(&measured, row, column);
    assert_eq!(
        found("largest window over the smallest", "retransmissions added"),
        Some(5.0)
    );
    assert_eq!(found("best window over the smallest", "goodput"), Some(4.0));
    assert_eq!(found("largest window over the best", "goodput"), Some(0.75));
    assert_eq!(
        found(
            "largest window over the best",
            "completion time of quicksort"
        ),
        Some(1.5)
    );
}

#[test]
fn a_figure_without_a_result_names_its_bench() {
    let published = anemone().unwrap();
    for figure in &published.figures {
        let ours = ours(figure, &Measured::default(), &published);
        let is_of_the_paper = figure.row == "central engine" && figure.column.starts_with("times");
        assert_eq!(ours.is_some(), is_of_the_paper, "{figure:?}");
        assert!(missing(figure).contains("not measured: run bench/"));
    }
}

#[test]
fn a_file_of_another_kind_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nbd.json");
    for (text, fault) in [
        ("{\"nbd\": []}", "no result"),
        ("{\"window\": 3}", "nbd.json"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = Measured::read(std::slice::from_ref(&path))
            .unwrap_err()
            .to_string();
        assert!(error.contains(fault), "{error}");
    }
}

#[test]
fn each_contradiction_has_two_readings() {
    let arithmetic = json!({"control": {"arithmetic_bytes": {"page_in": 374}, "rows": []}});
    let measured = serde_json::from_value(arithmetic).unwrap();
    let readings = readings(&anemone().unwrap(), &measured);
    assert_eq!(readings.len(), 8);
    for pair in readings.chunks(2) {
        assert_eq!(pair[0].quantity, pair[1].quantity);
        assert!(
            (pair[0].value / pair[1].value - 1.0).abs() > 0.05,
            "{pair:?}"
        );
    }
}
