//! Exports for policy simulators: the files that result from hand-made hosts.

use gleaner_schemas::availability::{
    AvailabilityQuestion, AvailablePeriod, AvailableSample, HostAvailability,
};
use gleaner_schemas::findings::{EndCause, Scope};
use gleaner_traces::export::ByHost;
use gleaner_traces::export::availability::Availability;
use gleaner_traces::export::fta::Fta;
use gleaner_traces::export::simgrid::SimGrid;
use gleaner_traces::{ExportSummary, Format, Result};
use std::fs;
use std::path::Path;

/// Time of the first sample.
const START_MS: i64 = 1_795_176_000_000;

fn question() -> AvailabilityQuestion {
    AvailabilityQuestion {
        region_bytes: 512,
        scope: Scope::Idle,
        minimum_period_ms: 90_000,
        idle_after_s: 300.0,
        load_limit: 0.3,
        headroom_share: 0.15,
        hosts: None,
        from_ms: None,
        until_ms: None,
        has_samples: true,
    }
}

fn period(from_s: i64, to_s: i64, end: Option<EndCause>) -> AvailablePeriod {
    AvailablePeriod {
        from_ms: START_MS + from_s * 1000,
        to_ms: START_MS + to_s * 1000,
        is_start_known: from_s > 0,
        end,
    }
}

/// A sample of a host that has 1000 bytes of memory.
fn sample(seconds: i64, follows_gap: bool, available_bytes: i64) -> AvailableSample {
    AvailableSample {
        time_ms: START_MS + seconds * 1000,
        follows_gap,
        physical_bytes: 1000,
        available_bytes,
        is_idle: (seconds != 90).then_some(false),
        ..AvailableSample::default()
    }
}

/// Three hosts. The first has a gap, and a clock that was set back; the second has no usable data; the third
/// begins later.
fn hosts() -> [HostAvailability; 3] {
    let host = |host: &str, host_name: &str, from_s: i64, to_s: i64| HostAvailability {
        host_id: host.to_owned(),
        host_name: host_name.to_owned(),
        physical_bytes: 1000,
        cpus_count: None,
        from_ms: START_MS + from_s * 1000,
        to_ms: START_MS + to_s * 1000,
        is_told: true,
        periods: Vec::new(),
        samples: Vec::new(),
    };
    let samples = [
        (0, true, 900),
        (90, false, 900),
        (300, true, 800),
        (390, false, 100),
    ];
    let back = [(360, true, 700), (480, false, 600)];
    let all = samples.into_iter().chain(back);
    [
        HostAvailability {
            cpus_count: Some(4),
            periods: vec![
                period(0, 90, Some(EndCause::SleepOrPower)),
                period(300, 390, Some(EndCause::Owner)),
                period(390, 480, None),
            ],
            samples: all.map(|(s, gap, bytes)| sample(s, gap, bytes)).collect(),
            ..host("aa", "Ada's \"box\"", 0, 480)
        },
        HostAvailability {
            is_told: false,
            samples: vec![sample(0, true, 900)],
            ..host("bb", "blind", 0, 0)
        },
        HostAvailability {
            samples: vec![sample(120, true, 100)],
            ..host("cc", "", 120, 120)
        },
    ]
}

fn written(writer: Result<impl ByHost>) -> ExportSummary {
    let mut writer = Box::new(writer.unwrap());
    for host in hosts() {
        writer.add(&host).unwrap();
    }
    writer.finish().unwrap()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn the_archives_tables() {
    let to = tempfile::tempdir().unwrap();
    let exported = written(Fta::create(to.path(), &question()));
    assert_eq!((exported.files, exported.rows), (4, 5 + 2 + 2 + 1));
    let rows = |name: &str| -> Vec<String> {
        let text = read(to.path(), name);
        let mut lines = text.lines().map(|line| line.replace('\t', " "));
        assert!(lines.next().unwrap().starts_with("# "));
        lines.collect()
    };
    let name = "Ada's_\"box\"";
    let expected = [
        format!("0 0 0 0 {name} 1 1795176000 1795176090 9002"),
        format!("1 0 0 0 {name} 0 1795176090 1795176300 NULL"),
        format!("2 0 0 0 {name} 1 1795176300 1795176390 2"),
        format!("3 0 0 0 {name} 0 1795176390 1795176390 NULL"),
        format!("4 0 0 0 {name} 1 1795176390 1795176480 NULL"),
    ];
    assert_eq!(rows("event_trace.tab"), expected);
    let unknown = "NULL NULL NULL NULL";
    assert_eq!(
        rows("node.tab"),
        [
            format!("0 0 {name} NULL NULL 0 NULL NULL 1 4 1000 {unknown} aa"),
            format!("1 0 NULL NULL NULL 0 NULL NULL 1 NULL 1000 {unknown} cc"),
        ]
    );
    assert_eq!(
        rows("component.tab"),
        [
            format!("0 0 0 {name} memory 1795176000 1795176480"),
            "0 1 0 NULL memory 1795176120 1795176120".to_owned(),
        ]
    );
    assert_eq!(
        rows("platform.tab"),
        ["0 gleaner NULL desktop_grid region_bytes=512;scope=idle;minimum_period=1m30s"]
    );
}

#[test]
fn simgrids_platform_and_profiles() {
    let to = tempfile::tempdir().unwrap();
    let exported = written(SimGrid::create(to.path(), &question(), START_MS));
    assert_eq!(exported.files, 5);
    let profile = |name: &str| read(&to.path().join("profiles"), name);
    assert_eq!(
        profile("00000.state"),
        "0 1\n90 0\n300 1\n390 0\n390 1\n480 0\n"
    );
    assert_eq!(profile("00001.state"), "0 0\n");
    // The share is 0 in the gap. After the clock was set back, the time 360 occurs again, and is not written.
    let share = "0 0.900000\n90 0\n300 0.800000\n390 0.100000\n390 0\n480 0.600000\n480 0\n";
    assert_eq!(profile("00000.share"), share);
    assert_eq!(profile("00001.share"), "0 0\n120 0.100000\n120 0\n");
    let platform = read(to.path(), "platform.xml");
    for part in [
        "<prop id=\"origin_time_ms\" value=\"1795176000000\"/>",
        "<prop id=\"scope\" value=\"idle\"/>",
        "<host id=\"aa\" speed=\"1000f\" state_file=\"profiles/00000.state\" speed_file=\"profiles/00000.share\">",
        "<prop id=\"host_name\" value=\"Ada's &quot;box&quot;\"/>",
        "<prop id=\"cpus_count\" value=\"4\"/>",
        "<host id=\"cc\" speed=\"1000f\" state_file=\"profiles/00001.state\"",
        "<prop id=\"traced_from_s\" value=\"120\"/>",
    ] {
        assert!(platform.contains(part), "{part} is not in\n{platform}");
    }
    assert!(!platform.contains("blind"), "{platform}");
}

#[test]
fn columns_as_text() {
    let to = tempfile::tempdir().unwrap();
    let writer = Availability::create(to.path(), &question(), Format::Csv, true);
    let exported = written(writer);
    assert_eq!((exported.files, exported.rows), (2, 3 + 8));
    let periods = read(to.path(), "periods.csv");
    let expected = [
        "host_id,host_name,region_bytes,scope,begin,end,length_ms,is_start_known,ended_by",
        "aa,\"Ada's \"\"box\"\"\",512,idle,2026-11-20T12:00:00Z,2026-11-20T12:01:30Z,90000,false,sleep_or_power",
        "aa,\"Ada's \"\"box\"\"\",512,idle,2026-11-20T12:05:00Z,2026-11-20T12:06:30Z,90000,true,owner",
        "aa,\"Ada's \"\"box\"\"\",512,idle,2026-11-20T12:06:30Z,2026-11-20T12:08:00Z,90000,true,",
    ];
    assert_eq!(periods.lines().collect::<Vec<_>>(), expected);
    let samples = read(to.path(), "samples.csv");
    let lines: Vec<&str> = samples.lines().collect();
    assert_eq!(
        lines[0],
        "host_id,host_name,time,follows_gap,physical_bytes,available_bytes,harvestable_bytes,is_idle,is_in_idle_period,paper_quota_bytes,quota_bytes"
    );
    assert_eq!(lines.len(), 1 + 8);
    assert!(lines[2].ends_with(",2026-11-20T12:01:30Z,false,1000,900,,,,,"));
    assert!(lines[3].ends_with(",2026-11-20T12:05:00Z,true,1000,800,,false,,,"));
}

#[test]
fn no_hosts_leave_whole_and_empty_files() {
    for format in [Format::Parquet, Format::Csv, Format::Arrow] {
        let to = tempfile::tempdir().unwrap();
        let writer = Availability::create(to.path(), &question(), format, true);
        let exported = Box::new(writer.unwrap()).finish().unwrap();
        assert_eq!((exported.files, exported.rows), (2, 0));
        assert!(read(to.path(), "gleaner-export.json").contains("\"is_whole\": true"));
    }
    let to = tempfile::tempdir().unwrap();
    let begun = Fta::create(to.path(), &question()).unwrap();
    // An interrupted export is marked incomplete and has no finished file.
    drop(begun);
    assert!(read(to.path(), "gleaner-export.json").contains("\"is_whole\": false"));
    assert!(!to.path().join("event_trace.tab").exists());
}
