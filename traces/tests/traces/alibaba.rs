//! Alibaba's machine_usage.csv: its machines come in no order and are read in several passes, and it marks
//! some values as invalid.

use crate::import::{fills_what_it_names, read};
use gleaner_dataset::Dataset;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::SampleRow;
use gleaner_traces::import::alibaba::Alibaba;
use gleaner_traces::import::{ImportError, ImportSummary, Importer, import};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

const START_MS: i64 = 1_514_764_800_000; // 2018-01-01 00:00 UTC
const GIB: i64 = 1 << 30;

fn row(machine: &str, time: &str, memory: &str) -> String {
    format!("{machine},{time},41,{memory},,,43.04,33.08,5")
}

/// Imports `text`, holding at most `rows_at_once` rows in memory.
fn imported(
    text: &[u8],
    dataset: &Path,
    rows_at_once: usize,
) -> Result<ImportSummary, ImportError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machine_usage.csv");
    fs::write(&file, text).unwrap();
    let mut alibaba = Alibaba::new(&file, None).rows_at_once(rows_at_once);
    import(&mut alibaba, dataset, |_| ())
}

fn samples(dataset: &Path, machine: &str) -> Vec<Vec<Option<i64>>> {
    let alibaba = Alibaba::new(Path::new(""), None);
    let columns = ["interval_ms", "physical_bytes", "available_bytes"];
    read(
        dataset,
        &alibaba.source(),
        &SampleRow::TABLE,
        machine,
        &columns,
    )
}

#[test]
fn shares_of_memory_worked_by_hand() {
    let rows = [
        row("m_2", "20", "92"),
        row("m_1", "10", "0"),
        row("m_2", "10", "100"),
        row("m_1", "20", "-1"),  // invalid
        row("m_2", "30", "101"), // also invalid
        row("m_1", "0", "50"),   // before or after the trace
        row("m_2", "40", "12.5"),
        "m_1,30,41".to_owned(),
        row("", "30", "41"),
        row("m_3", "x", "41"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let done = imported(rows.join("\n").as_bytes(), folder.path(), 1 << 20).unwrap();
    let sample = |s: i64, interval_s: Option<i64>, gib: i64| {
        let interval_ms = interval_s.map(|s| s * 1000);
        vec![
            Some(START_MS + s * 1000),
            interval_ms,
            Some(100 * GIB),
            Some(gib),
        ]
    };
    assert_eq!(samples(folder.path(), "m_1"), [sample(10, None, 100 * GIB)]);
    assert_eq!(
        samples(folder.path(), "m_2"),
        [
            sample(10, None, 0),
            sample(20, Some(10), 8 * GIB),
            sample(40, Some(20), 87 * GIB + GIB / 2),
        ]
    );
    let told: Vec<_> = done
        .machines
        .iter()
        .map(|m| (m.host_name.as_str(), m.reason()))
        .collect();
    assert_eq!(
        told,
        [
            (
                "alibaba-m_1",
                "imported (line 4: mem_util_percent is -1: -1 and 101 mark what is not valid)"
                    .to_owned()
            ),
            (
                "alibaba-m_2",
                "imported (line 5: mem_util_percent is 101: -1 and 101 mark what is not valid)"
                    .to_owned()
            ),
            (
                "alibaba-m_3",
                "dropped: no row could be read (line 10: time_stamp is \"x\")".to_owned()
            ),
        ]
    );
    assert_eq!(done.machines[0].repairs.unreadable_count, 3);
    let lost = done.without_machine.first_unreadable.as_deref();
    assert_eq!(lost, Some("line 9: machine_id is \"\""));
    assert_eq!((done.total.rows_count, done.total.samples_count), (10, 4));
    fills_what_it_names(
        &Alibaba::new(Path::new(""), None).source(),
        "m_2",
        folder.path(),
    );

    let again = imported(rows.join("\n").as_bytes(), folder.path(), 2).unwrap();
    assert_eq!(
        (again.new_rows_count, again.existing_rows_count),
        (0, done.new_rows_count)
    );
}

/// However few rows are held in memory, the resulting dataset is the same.
#[test]
fn passes_change_nothing() {
    let rows: Vec<String> = (0..3000)
        .map(|i| {
            row(
                &format!("m_{}", i * 7919 % 23),
                &(10 + i / 23 * 10).to_string(),
                &(i % 103).to_string(),
            )
        })
        .collect();
    let text = format!(
        "machine_id,time_stamp,and,seven,others,,,,\n{}\n",
        rows.join("\n")
    );
    let of = |rows_at_once| {
        let folder = tempfile::tempdir().unwrap();
        let done = imported(text.as_bytes(), folder.path(), rows_at_once).unwrap();
        let dataset = Dataset::open(folder.path()).unwrap();
        assert_eq!(dataset.hosts().unwrap().len(), 23);
        let samples: Vec<_> = (0..23)
            .map(|m| samples(folder.path(), &format!("m_{m}")))
            .collect();
        (done.machines, done.total, samples)
    };
    let whole = of(1 << 20);
    assert_eq!(whole.1.rows_count, 3000);
    assert!(whole.1.unreadable_count > 0);
    for rows_at_once in [1, 200, 1000] {
        assert_eq!(of(rows_at_once), whole);
    }
}

#[test]
fn another_start_is_another_trace() {
    let text = row("m_1", "10", "50");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("usage.csv");
    fs::write(&file, text).unwrap();
    let dataset = folder.path().join("dataset");
    let start = "2018-03-05T00:00:00+08:00".parse().unwrap();
    for start in [None, Some(start)] {
        import(&mut Alibaba::new(&file, start), &dataset, |_| ()).unwrap();
    }
    let dataset = Dataset::open(&dataset).unwrap();
    assert_eq!(dataset.hosts().unwrap().len(), 2);
    let late = Alibaba::new(&file, Some(start));
    assert!(late.source().name.ends_with("from 2018-03-04T16:00:00Z"));
}

#[test]
fn another_file_is_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("dataset");
    for (text, part) in [
        (
            "\n\nm_1,10,41,92\n",
            "machine_usage.csv line 3: 4 columns instead of 9; expected machine_usage.csv of",
        ),
        ("\u{1f},1,2,3,4,5,6,7,8", "line 1: machine_id is"),
        ("", "none of the 0 machines in"),
        (
            "m_1,x,41,92,,,1,1,1",
            "of m_1: dropped: no row could be read (line 1: time_stamp is \"x\")",
        ),
    ] {
        let refused = imported(text.as_bytes(), &dataset, 100)
            .unwrap_err()
            .to_string();
        assert!(refused.contains(part), "{refused}");
        assert!(!dataset.exists());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the file contains, it is rejected or each of its rows is counted; the importer never panics.
    #[test]
    fn whatever_is_in_the_file_is_accounted_for(
        lines in proptest::collection::vec("(m_[0-3]|.?),(-?[0-9]{1,4}|.{0,3}|1e300|NaN),1,(-?[0-9]{1,3}|.{0,3}|1e300),,,,,", 1..40),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let text = [lines.join("\n").as_bytes(), &noise].concat();
        let folder = tempfile::tempdir().unwrap();
        let dataset = folder.path().join("dataset");
        match imported(&text, &dataset, 3) {
            Ok(done) => {
                let m = done.total;
                let left_out = m.unreadable_count + m.repeated_count + m.contradicted_count + m.merged_count + m.without_memory_count;
                prop_assert_eq!(m.rows_count, m.samples_count + left_out);
            }
            Err(_) => prop_assert!(!dataset.exists()),
        }
    }
}
