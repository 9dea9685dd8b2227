use super::*;
use crate::peers::GroupMember;
use crate::publish;
use crate::sealer::Progress;
use crate::tables::TableProgress;

const NOW_MS: i64 = 1_800_000_000_000;
const GIB: u64 = 1 << 30;

fn well() -> Status {
    Status {
        name: None,
        version: "0.1.0".to_owned(),
        time_ms: NOW_MS,
        started_time_ms: NOW_MS,
        is_well: true,
        problems: Vec::new(),
        connections_count: 0,
        batches_per_minute: 0,
        journal_bytes: 0,
        dataset_bytes: 0,
        dataset_rows_count: 0,
        dataset_files_count: 0,
        dataset_bytes_per_day: None,
        folder_bytes_per_day: None,
        dataset_failure: None,
        journal_disk_free_bytes: 100 * GIB,
        dataset_disk_free_bytes: 100 * GIB,
        reserve_bytes: GIB,
        days_until_disk_full: None,
        certificate_expiry_time_ms: None,
        seal: Progress::default(),
        publish: None,
        tables: None,
        hosts_count: 0,
        hosts_silent_count: 0,
        hosts_by_state: BTreeMap::new(),
        median_lag_ms: None,
        max_lag_ms: None,
        collectors: Vec::new(),
        hosts: Vec::new(),
    }
}

fn kinds(status: &Status) -> Vec<Kind> {
    let found = problems(status);
    assert!(found.is_sorted_by_key(|problem| problem.severity));
    found.into_iter().map(|problem| problem.kind).collect()
}

#[test]
fn nothing_is_wrong_with_an_empty_collector() {
    assert_eq!(kinds(&well()), []);
}

#[test]
fn a_certificate_is_told_of_a_month_before_its_end() {
    let until = |days: i64| Status {
        certificate_expiry_time_ms: Some(NOW_MS + days * DAY_MS),
        ..well()
    };
    assert_eq!(kinds(&until(31)), []);
    assert_eq!(kinds(&until(30)), [Kind::CertificateEnding]);
    assert!(problems(&until(9))[0].text.contains("ends in 9 days"));
    assert!(problems(&until(-1))[0].text.contains("ended on"));
}

#[test]
fn the_disk_is_told_of_while_there_is_time() {
    let with = |free: u64, days: Option<f64>| Status {
        dataset_disk_free_bytes: free,
        days_until_disk_full: days,
        ..well()
    };
    assert_eq!(kinds(&with(99 * GIB, Some(8.0))), []);
    assert_eq!(kinds(&with(99 * GIB, Some(6.9))), [Kind::DiskNearlyFull]);
    assert_eq!(kinds(&with(2 * GIB, None)), [Kind::DiskNearlyFull]);
    assert_eq!(kinds(&with(GIB, None)), [Kind::DiskFull]);
}

#[test]
fn a_peer_that_does_not_answer_is_named_with_its_address_and_the_time() {
    let peer = |url: &str, failure: Option<&str>| GroupMember {
        url: Some(url.to_owned()),
        failing_since_time_ms: failure.map(|_| 1_795_280_846_000),
        failure: failure.map(str::to_owned),
        ..GroupMember::default()
    };
    let with = |collectors: Vec<GroupMember>| Status {
        collectors,
        ..well()
    };
    let (east, west) = ("https://east:7443", "https://west:7443");
    assert_eq!(kinds(&with(vec![peer(east, None), peer(west, None)])), []);
    let found = problems(&with(vec![
        peer(east, None),
        peer(west, Some("connection refused")),
    ]));
    let expected = "Another collector of the dataset does not answer: https://west:7443: since \
                    2026-11-21 17:07:26 UTC: connection refused.";
    assert_eq!(found[0].text, expected);
    let found = problems(&with(vec![peer(east, Some("a")), peer(west, Some("b"))]));
    assert_eq!(found.len(), 1);
    assert!(found[0].hosts[1].starts_with(west), "{found:?}");
}

#[test]
fn kinds_and_severities_have_the_names_that_json_gives_them() {
    for kind in Kind::ALL {
        assert_eq!(serde_json::json!(kind), kind.name());
        assert_eq!(serde_json::json!(kind.severity()), kind.severity().word());
    }
    for state in State::ALL {
        assert_eq!(serde_json::json!(state), state.name());
    }
    let damaged = Progress {
        lost_journal_bytes: 1,
        damaged_files_count: 2,
        set_aside_batches_count: 3,
        failure: Some("no room".to_owned()),
        merge_failure: Some("no room".to_owned()),
        ..Progress::default()
    };
    let status = Status {
        seal: damaged,
        dataset_failure: Some("torn".to_owned()),
        publish: Some(publish::Progress {
            failure: Some("no route".to_owned()),
            ..publish::Progress::default()
        }),
        tables: Some(TableProgress {
            failure: Some("no room".to_owned()),
            ..TableProgress::default()
        }),
        collectors: vec![GroupMember {
            failing_since_time_ms: Some(NOW_MS),
            failure: Some("no route".to_owned()),
            ..GroupMember::default()
        }],
        ..well()
    };
    let expected = [
        Kind::CannotSeal,
        Kind::DatasetUnreadable,
        Kind::CannotMerge,
        Kind::JournalDamaged,
        Kind::DatasetDamaged,
        Kind::BatchesSetAside,
        Kind::PeerUnreachable,
        Kind::CannotPublish,
        Kind::CannotPublishTables,
    ];
    assert_eq!(kinds(&status), expected);
}
