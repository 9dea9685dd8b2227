//! Sources with the kernel's own figures: all values that their readings have reach the dataset.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type};
use gleaner_dataset::Dataset;
use gleaner_schemas::column::{Row, Value};
use gleaner_schemas::rows::{HostRow, SampleRow};
use gleaner_traces::import::{ColumnOrigin, ImportError, Importer, MachineList, Readings, Source};
use gleaner_traces::import::{import, kernel};

const START_MS: i64 = 1_700_000_000_000;
const GIB: i64 = 1 << 30;

/// A machine that reboots within the trace, with another kernel.
struct InventedMachine {
    machines: &'static [&'static str],
}

impl Importer for InventedMachine {
    fn source(&self) -> Source<'_> {
        Source {
            name: "invented",
            host_prefix: "",
            available_meaning: kernel::AVAILABLE,
            has_invented_sizes: false,
            fills: &[kernel::AVAILABLE_BYTES, ColumnOrigin::SOURCE],
            columns: &[
                "mem_total_bytes",
                "mem_available_bytes",
                "harvestable_bytes",
                "load5",
                "swap_out_total_pages",
            ],
        }
    }

    fn origin(&self) -> String {
        "http://invented".to_owned()
    }

    fn machines(&mut self) -> Result<MachineList, ImportError> {
        let machines = self.machines.iter().map(|m| (*m).to_owned()).collect();
        Ok(MachineList {
            machines,
            ..MachineList::default()
        })
    }

    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError> {
        if machine == "mute" {
            readings.unreadable("block 1", "it says nothing");
            return Ok(());
        }
        for (i, boot_ms) in [0, 30_000, 900_000].into_iter().enumerate() {
            let mut facts = vec![kernel::headroom()];
            let release = if boot_ms == 900_000 {
                "6.12.2"
            } else {
                "6.12.1"
            };
            facts.push(("kernel_release", Value::Text(release.to_owned())));
            readings.host_is(facts);
            let mut reading = kernel::reading(START_MS + i as i64 * 1_000_000, 8 * GIB, 3 * GIB);
            reading.booted_ms = START_MS - 50_000 + boot_ms;
            let [total, available, harvestable] = kernel::values(8 * GIB, 3 * GIB);
            let load = (i != 1).then_some(0.25);
            readings.push(reading, &[total, available, harvestable, load, Some(7.0)]);
        }
        Ok(())
    }
}

fn integers(rows: &RecordBatch, column: usize) -> Vec<Option<i64>> {
    rows.column(column)
        .as_primitive::<Int64Type>()
        .iter()
        .collect()
}

#[test]
fn what_a_reading_says_beside_memory_is_written_and_what_it_does_not_is_absent() {
    let folder = tempfile::tempdir().unwrap();
    let machines = &["mute", "workstation"];
    let imported = import(&mut InventedMachine { machines }, folder.path(), |_| ()).unwrap();
    assert_eq!(imported.available_meaning, kernel::AVAILABLE);
    assert_eq!(
        (imported.new_rows_count, imported.total.changes_count),
        (3 + 2, 1)
    );
    let host_id = InventedMachine { machines }.source().host_id("workstation");
    let dataset = Dataset::open(folder.path()).unwrap();
    let read = |table, columns: &[&str]| dataset.read_host(table, &host_id, columns).unwrap();

    let columns = [
        "available_bytes",
        "harvestable_bytes",
        "swap_out_total_pages",
        "boottime_ms",
        "anon_bytes",
    ];
    let rows = read(&SampleRow::TABLE, &columns);
    assert_eq!(integers(&rows, 0), [Some(3 * GIB); 3]);
    assert_eq!(integers(&rows, 1), [Some(3 * GIB - 8 * GIB * 15 / 100); 3]);
    assert_eq!(integers(&rows, 2), [Some(7); 3]);
    // The machine's boot time moves by half a minute in one reading; this counts as the same boot.
    assert_eq!(integers(&rows, 3), [50_000, 1_050_000, 1_150_000].map(Some));
    assert_eq!(integers(&rows, 4), [None; 3]);
    let rows = read(&SampleRow::TABLE, &["boot_id", "load5"]);
    let boots = rows.column(0).as_string::<i32>();
    assert_eq!(boots.value(0), boots.value(1));
    assert_ne!(boots.value(1), boots.value(2));
    let loads = rows.column(1).as_primitive::<Float64Type>();
    assert_eq!(
        loads.iter().collect::<Vec<_>>(),
        [Some(0.25), None, Some(0.25)]
    );

    let hosts = read(
        &HostRow::TABLE,
        &["kernel_release", "headroom_share", "host_name", "os_name"],
    );
    let releases = hosts.column(0).as_string::<i32>().iter().flatten();
    assert_eq!(releases.collect::<Vec<_>>(), ["6.12.1", "6.12.2"]);
    assert_eq!(hosts.column(1).as_primitive::<Float64Type>().value(1), 0.15);
    assert_eq!(hosts.column(2).as_string::<i32>().value(0), "workstation");
    assert_eq!(hosts.column(3).null_count(), 2);
}

#[test]
fn a_source_without_a_sample_is_refused_with_what_was_wrong_and_one_without_machines_too() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("dataset");
    let refused = |machines| {
        let refused = import(&mut InventedMachine { machines }, &dataset, |_| ()).unwrap_err();
        assert!(!dataset.exists());
        refused.to_string()
    };
    assert_eq!(
        refused(&["mute"]),
        "none of the 1 machines in http://invented has a row that could be imported; \
         of mute: dropped: no row could be read (block 1: it says nothing)"
    );
    assert!(refused(&[]).starts_with("none of the 0 machines in http://invented"));
}
