//! Materna's CSV, invented from its published description: with quotes, German times and decimal commas.

use crate::import::{fills_what_it_names, read};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{HostRow, SampleRow};
use gleaner_traces::import::archive::Columns;
use gleaner_traces::import::materna::{DIALECT, TRACES, importer};
use gleaner_traces::import::{ImportSummary, import};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

const HEADER: &str = "\"Timestamp\";\"CPU cores\";\"CPU capacity provisioned [MHZ]\";\"CPU usage [MHZ]\";\"CPU usage [%]\";\
    \"Memory capacity provisioned [KB]\";\"Memory usage [KB]\";\"Memory usage [%]\";\"Disk read throughput [KB/s]\";\
    \"Disk write throughput [KB/s]\";\"Disk size [GB]\";\"Network received throughput [KB/s]\";\
    \"Network transmitted throughput [KB/s]\"";

fn row(time: &str, cpus: &str, capacity: &str, usage: &str) -> String {
    format!(
        "\"{time}\";\"{cpus}\";\"5600\";\"112\";\"2,01\";\"{capacity}\";\"{usage}\";\"21,5\";\"0\";\"12\";\"60\";\"1\";\"0\""
    )
}

fn imported(rows: &[String], dataset: &Path) -> ImportSummary {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{HEADER}\r\n{}\r\n", rows.join("\r\n"));
    fs::write(folder.path().join("01.csv"), text).unwrap();
    import(&mut importer(folder.path(), TRACES[0]), dataset, |_| ()).unwrap()
}

#[test]
fn german_times_and_commas_worked_by_hand() {
    let rows = [
        row("04.11.2015 20:40:34", "2", "6291456", "1321205"),
        row("04.11.2015 20:45:34", "2", "6291456", "1321205,5"),
        row("4.11.2015 20:50:34", "2", "6291456", "0"), // no leading zero: also valid
        row("31.04.2015 20:55:34", "2", "6291456", "1"), // no such date
        row("04.11.2015 20:55:34", "2", "6291456", "1.234,5"), // a thousands separator or a decimal point?
        row("04.11.2015 21:00:34", "2,0", "8388608", "8388609"), // above physical, and memory grown
    ];
    let folder = tempfile::tempdir().unwrap();
    let done = imported(&rows, folder.path());
    let m = &done.machines[0].repairs;
    assert_eq!(
        (m.rows_count, m.samples_count, m.unreadable_count),
        (6, 4, 2)
    );
    assert_eq!(
        (m.above_physical_count, m.changes_count, m.gaps_count),
        (1, 1, 0)
    );
    let first = m.first_unreadable.as_deref();
    assert_eq!(first, Some("line 5: Timestamp is \"31.04.2015 20:55:34\""));
    let samples = read(
        folder.path(),
        &TRACES[0],
        &SampleRow::TABLE,
        "01",
        &["physical_bytes", "available_bytes"],
    );
    let start_ms = 1_446_669_634_000; // 2015-11-04 20:40:34 UTC
    let (physical, grown) = (6_291_456 * 1024, 8_388_608 * 1024_i64);
    let expected = [
        (0, physical, physical - 1_321_205 * 1024),
        (5, physical, physical - 1_321_205 * 1024 - 512),
        (10, physical, physical),
        (20, grown, 0),
    ];
    let expected = expected.map(|(minutes, physical, available)| {
        vec![
            Some(start_ms + minutes * 60_000),
            Some(physical),
            Some(available),
        ]
    });
    assert_eq!(samples, expected);
    let hosts = read(
        folder.path(),
        &TRACES[0],
        &HostRow::TABLE,
        "01",
        &["cpus_count"],
    );
    assert_eq!(hosts.len(), 2);
    assert_eq!(done.machines[0].host_name, "materna-1-01");
    fills_what_it_names(&TRACES[0], "01", folder.path());

    let again = imported(&rows, folder.path());
    assert_eq!((again.new_rows_count, again.existing_rows_count), (0, 6));
}

#[test]
fn a_file_of_the_sister_trace_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("1.csv"), crate::import::HEADER).unwrap();
    let dataset = folder.path().join("dataset");
    let refused = import(&mut importer(folder.path(), TRACES[2]), &dataset, |_| ()).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("1.csv line 1: there is no column Timestamp"),
        "{text}"
    );
    assert!(!dataset.exists());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_panics_and_what_is_read_is_within_bounds(line in "[0-9.:,;\" \\-äe]{0,120}", n in -1e20..1e20f64) {
        let columns = Columns::of_header(HEADER, &DIALECT).unwrap();
        let _ = Columns::of_header(&line, &DIALECT);
        let number = n.to_string().replace('.', ",");
        for line in [row(&line, "1", "1", "1"), row("04.11.2015 20:40:34", "1", &number, &number), line] {
            if let Ok(row) = columns.row(&line) {
                prop_assert!((946_684_800_000..4_102_444_800_000).contains(&row.reading.time_ms));
                prop_assert!((0..=1 << 50).contains(&row.reading.physical_bytes));
                prop_assert!((-1 << 50..=1 << 50).contains(&row.reading.available_bytes));
            }
        }
    }
}
