//! Origin of one sample's figures, worked by hand.

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_analysis::{AnalysisError, explain};
use gleaner_dataset::{Dataset, Identity, RowsBuilder, SourceColumn, SourceEntry, Writer};
use gleaner_schemas::column::{Row, Value};
use gleaner_schemas::findings::{Explanation, Parameters};
use gleaner_schemas::rows::{FileRow, GapRow, HostRow, ProcessRow, SampleRow};

/// Explains a sample. Host a has samples at 0, 90 and, after a sleep, 900 s; the second has a process and two
/// files.
fn explained(host: &str, at_s: Option<i64>) -> Result<Explanation, AnalysisError> {
    let mut r = Recording::new();
    let described = HostRow {
        host_name: "otter".into(),
        sample_interval_ms: 90_000,
        headroom_share: 0.25,
        ..HostRow::default()
    };
    r.row("a", 0, 0, &described).row("b", 0, 0, &described);
    for (sequence, second) in [(1, 0), (2, 90), (4, 900)] {
        let row = SampleRow {
            // Dynamic kernel is 60 MiB: 984 − 400 − 300 − 10 − 204 − 10.
            mem_total_bytes: 984 * MIB,
            mem_free_bytes: 400 * MIB,
            anon_bytes: Some(300 * MIB),
            buffers_bytes: Some(10 * MIB),
            cached_bytes: Some(204 * MIB),
            reclaimable_kernel_bytes: Some(10 * MIB),
            process_bytes: 324 * MIB,
            owner_idle_ms: Some(second * 1000 + 210_000),
            load5: Some(0.1),
            harvestable_bytes: Some(344 * MIB),
            ..sample(600)
        };
        r.row("a", sequence, second, &row);
    }
    let slept = GapRow {
        from_time_ms: NOON + 90_000,
        to_time_ms: NOON + 900_000,
        cause: "sleep".into(),
    };
    r.row("a", 3, 900, &slept);
    r.row("a", 2, 90, &process());
    for (file_id, mapped) in [(1, Some(24 * MIB)), (2, None)] {
        let file = FileRow {
            file_id,
            open_processes_count: 1,
            cached_bytes: Some(30 * MIB),
            mapped_cached_bytes: mapped,
            ..FileRow::default()
        };
        r.row("a", 2, 90, &file);
    }
    let (_folder, dataset) = r.dataset();
    let at_ms = at_s.map(|s| NOON + s * 1000);
    explain(&dataset, host, at_ms, &Parameters::default())
}

fn process() -> ProcessRow {
    ProcessRow {
        pid: 7,
        name: "editor".into(),
        anon_bytes: Some(300 * MIB),
        file_bytes: Some(5 * MIB),
        ..ProcessRow::default()
    }
}

#[test]
fn each_figure_is_the_sum_of_its_terms() {
    let e = explained("a", Some(100)).unwrap();
    assert_eq!((e.time_ms, e.sequence), (NOON + 90_000, 2));
    let of = |category: &str| {
        e.categories
            .iter()
            .find(|c| c.category == category)
            .unwrap()
    };
    let dynamic = of("dynamic_kernel");
    assert_eq!(
        (dynamic.bytes, dynamic.unexplained_bytes),
        (Some(60 * MIB), Some(0))
    );
    let process = of("process");
    assert_eq!(
        (process.bytes, process.unexplained_bytes),
        (Some(324 * MIB), Some(0))
    );
    let terms: Vec<_> = process.terms.iter().map(|t| t.bytes).collect();
    assert_eq!(terms, [Some(300 * MIB), None, Some(24 * MIB)]);
    // The terms sum to 30 + 30 − 24 = 36, while the sample's file cache is 0.
    assert_eq!(of("file_cache").unexplained_bytes, Some(-36 * MIB));
    assert_eq!(of("available").bytes, Some(600 * MIB));
    assert_eq!(of("available").unexplained_bytes, Some(0));
    // Harvestable memory is 600 MiB less 25 % of 1024.
    assert_eq!(of("harvestable").unexplained_bytes, Some(0));

    assert_eq!(
        (e.idle.verdict.as_str(), e.idle.owner_idle_s),
        ("waiting", Some(300.0))
    );
    let quota = e.quota.unwrap();
    assert_eq!(quota.quota_bytes, 0);
    let headroom = (1024.0 * 0.15 * MIB as f64) as i64;
    assert_eq!(quota.paper_quota_bytes, 600 * MIB - headroom);
    let processes: Vec<_> = e
        .processes
        .iter()
        .map(|p| (&*p.name, p.pid, p.bytes))
        .collect();
    assert_eq!(processes, [("editor", Some(7), Some(305 * MIB))]);
    assert_eq!(e.files.len(), 2);
}

#[test]
fn a_host_by_its_name_and_the_last_sample() {
    let error = explained("otter", None).unwrap_err().to_string();
    assert!(error.contains("give one of a, b"), "{error}");
    assert_eq!(explained("a", None).unwrap().time_ms, NOON + 900_000);
    let error = explained("weasel", None).unwrap_err().to_string();
    assert!(error.contains("weasel"), "{error}");
}

#[test]
fn a_time_without_samples_is_said_to_be_one() {
    for (second, why) in [
        (500, "gap (sleep)"),
        (-1, "does not reach"),
        (5000, "does not reach"),
    ] {
        let error = explained("a", Some(second)).unwrap_err().to_string();
        assert!(error.contains(why), "{second}: {error}");
        assert!(
            error.contains("2026-11-20T12:00:00Z to 2026-11-20T12:15:00Z"),
            "{error}"
        );
    }
    // The last sample stands for the interval after it.
    assert_eq!(explained("a", Some(950)).unwrap().time_ms, NOON + 900_000);
}

/// The figures of an imported host are explained by its importer's description. No sum is given if the trace
/// lacks one of its terms.
#[test]
fn an_imported_host_is_explained_by_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(folder.path()).unwrap();
    let identity = |sequence| Identity {
        host_id: "c",
        database_id: "db",
        sequence,
        time_ms: NOON,
    };
    let mut hosts = RowsBuilder::new(&HostRow::TABLE);
    let named = [
        ("host_name", Value::Text("vm".into())),
        ("source", Value::Text("a trace".into())),
    ];
    hosts.push_known(identity(1), &named).unwrap();
    writer
        .append(&HostRow::TABLE, hosts.finish().unwrap())
        .unwrap();
    let mut samples = RowsBuilder::new(&SampleRow::TABLE);
    let known = [
        ("is_complete_state", Value::Flag(false)),
        ("physical_bytes", Value::Integer(8 * MIB)),
        ("available_bytes", Value::Integer(5 * MIB)),
        ("mem_available_bytes", Value::Integer(5 * MIB)),
    ];
    samples.push_known(identity(2), &known).unwrap();
    writer
        .append(&SampleRow::TABLE, samples.finish().unwrap())
        .unwrap();
    writer.seal().unwrap();
    let explained = || {
        let dataset = Dataset::open(folder.path()).unwrap();
        explain(&dataset, "vm", None, &Parameters::default()).unwrap()
    };
    let undescribed = explained();
    let of = |e: &Explanation, category: &str| -> Vec<(String, usize, Option<i64>)> {
        let its = e.categories.iter().filter(|c| c.category == category);
        its.map(|c| (c.meaning.clone(), c.terms.len(), c.unexplained_bytes))
            .collect()
    };
    let made_of = |text: &str| vec![(text.to_owned(), 0, None)];
    let not_said = made_of("of the dataset, which does not say what it is made of");
    assert_eq!(of(&undescribed, "available"), not_said);
    assert_eq!(of(&undescribed, "process"), made_of("not in the trace"));
    let source = undescribed.source.unwrap();
    assert_eq!((source.name.as_str(), source.columns.len()), ("a trace", 0));
    assert!(source.meaning().contains("does not say"), "{source:?}");

    let column = |column: &str, origin: &str| SourceColumn {
        table: "samples".into(),
        column: column.into(),
        origin: origin.into(),
    };
    let described = SourceEntry {
        name: "a trace".into(),
        available_meaning: "Available memory is an upper bound.".into(),
        has_invented_sizes: false,
        columns: vec![
            column("physical_bytes", "what was provisioned"),
            column("available_bytes", "provisioned less used"),
        ],
    };
    writer.describe(described).unwrap();
    let e = explained();
    assert_eq!(of(&e, "physical"), made_of("what was provisioned"));
    assert_eq!(of(&e, "available"), made_of("provisioned less used"));
    assert_eq!(of(&e, "process"), made_of("not in the trace"));
    assert_eq!(
        e.source.unwrap().meaning(),
        "Available memory is an upper bound. Physical memory is: what was provisioned."
    );
}
