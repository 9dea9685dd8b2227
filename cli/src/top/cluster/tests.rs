//! Frames of invented fleets, and the effects of keys.

use super::rows::{Fleet, Row, Totals};
use super::{NextStep, WatchedCollector};
use crate::args::{Args, Command};
use crate::top::args::Top;
use crate::top::frames::{render_text, same_as_golden};
use crate::top::ink::Ink;
use crate::top::terminal::Screen;
use clap::Parser;
use gleaner_collector::ask::{GroupTotals, HostStatus, State};
use gleaner_collector::hosts::{Host, Memory};
use gleaner_hosts::derived::Figures;
use gleaner_schemas::commons::{CommonsMember, CommonsView, MemberView};
use gleaner_schemas::live::HostState;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use std::time::{Duration, Instant};

/// Time of all frames: 2026-11-22 14:03:27 UTC.
const NOW_MS: i64 = 1_795_356_207_000;
const URL: &str = "http://127.0.0.1:7480";
const GIB: u64 = 1 << 30;

fn args(more: &[&str]) -> Top {
    let words = ["gleaner", "top", "--cluster"].iter().chain(more);
    match Args::parse_from(words).command {
        Command::Top(top) => top,
        _ => panic!("it is top"),
    }
}

/// Status of the host with number `n`. Of every eight hosts one has an owner who cannot be seen. Of the
/// others, hosts 3, 6, 9 … are idle, hosts 1, 4, 7 … are loaded, and the rest are in use. Every tenth host is
/// silent.
fn host(n: u64) -> HostStatus {
    let physical_bytes = (8 * GIB) << (n % 4);
    let part = |percent: u64| Some(physical_bytes / 100 * percent);
    let process = 10 + n % 50;
    let time_ms = NOW_MS - (n as i64 % 9) * 20_000;
    let state = match n {
        _ if n.is_multiple_of(8) => HostState::Unknown,
        _ if n.is_multiple_of(3) => HostState::Idle {
            since_time_ms: NOW_MS - n as i64 * 600_000,
        },
        _ if n % 3 == 1 => HostState::Loaded,
        _ => HostState::InUse {
            idle_at_time_ms: NOW_MS,
        },
    };
    let is_idle = state.since_time_ms().is_some();
    let memory = Memory {
        time_ms,
        figures: Figures {
            physical_bytes,
            static_kernel_bytes: part(1),
            dynamic_kernel_bytes: part(4),
            process_bytes: part(process),
            file_cache_bytes: part(10),
            guest_bytes: Some(0),
            available_bytes: part(85 - process),
            ..Figures::default()
        },
        harvestable_bytes: part(70 - process),
        quota_bytes: part(70 - process).filter(|_| is_idle).or(Some(0)),
        idle_quota_bytes: part(70 - process),
        state,
        owner_idle_ms: Some(n as i64 * 1000),
        ..Memory::default()
    };
    let is_silent = n.is_multiple_of(10);
    HostStatus {
        host_id: format!("{n:032x}"),
        state: match n {
            _ if is_silent => State::Silent,
            7 => State::Rejected,
            _ => State::Well,
        },
        is_silent,
        lag_ms: None,
        known: Host {
            host_name: Some(format!("desk-{n:04}")),
            memory: (n != 5).then_some(memory),
            ..Host::default()
        },
    }
}

fn fleet(hosts: u64) -> Fleet {
    let rows: Vec<Row> = (1..=hosts).map(|n| Row::of(host(n), NOW_MS)).collect();
    let count = |state| rows.iter().filter(|row| row.state == state).count() as u64;
    let states = [State::Rejected, State::Silent, State::Well];
    Fleet {
        time_ms: NOW_MS,
        version: "0.1.0".to_owned(),
        is_well: true,
        problems: vec![
            (
                "warning",
                "A host was turned away when it last came.".to_owned(),
            ),
            ("notice", "The agents are of 2 versions.".to_owned()),
        ],
        states: states.map(|state| (state, count(state))).to_vec(),
        totals: Totals::of(&rows),
        group: None,
        commonses: None,
        rows,
    }
}

fn watched(hosts: u64, more: &[&str]) -> WatchedCollector {
    let mut watched = WatchedCollector::idle(&args(more), URL, Ink::PLAIN);
    watched.apply_answer(Ok(fleet(hosts)));
    watched.answered = Instant::now() + Duration::from_secs(3600); // shown as 0 s ago, however slow the machine
    watched
}

fn frame(watched: &mut WatchedCollector, width: u16, height: u16) -> String {
    render_text(width, height, |frame| watched.draw(frame))
}

fn press(watched: &mut WatchedCollector, keys: &[KeyCode]) {
    for key in keys {
        assert_eq!(
            watched.key(KeyEvent::from(*key)),
            NextStep::Continue,
            "{key}"
        );
    }
}

fn typed(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

/// Names in display order.
fn names(frame: &str) -> Vec<&str> {
    let words = frame.lines().filter_map(|line| line.split(' ').next());
    words.filter(|word| word.starts_with("desk-")).collect()
}

#[test]
fn a_fleet_on_terminals_of_three_sizes() {
    let mut watched = watched(1000, &[]);
    same_as_golden("cluster-80", &frame(&mut watched, 80, 24));
    same_as_golden("cluster-40", &frame(&mut watched, 40, 24));
    same_as_golden("cluster-132", &frame(&mut watched, 132, 24));
    press(&mut watched, &[KeyCode::Char('?')]);
    same_as_golden("cluster-help-80", &frame(&mut watched, 80, 24));
}

#[test]
fn keys_scroll_a_thousand_hosts() {
    let mut watched = watched(1000, &[]);
    let first = |watched: &mut WatchedCollector| names(&frame(watched, 80, 24))[0].to_owned();
    assert_eq!(first(&mut watched), "desk-0001");
    press(&mut watched, &[KeyCode::Down, KeyCode::Down, KeyCode::Up]);
    assert_eq!(first(&mut watched), "desk-0002");
    press(&mut watched, &[KeyCode::PageDown]);
    let page = watched.page as u64;
    assert_eq!(first(&mut watched), format!("desk-{:04}", 2 + page));
    press(&mut watched, &[KeyCode::End]);
    let last = frame(&mut watched, 80, 24);
    assert_eq!(names(&last).last(), Some(&"desk-1000"));
    assert!(last.contains("to 1,000 of 1,000"), "{last}");
    press(&mut watched, &[KeyCode::Down, KeyCode::PageDown]);
    assert_eq!(frame(&mut watched, 80, 24), last); // the end of the list
    press(&mut watched, &[KeyCode::Home, KeyCode::PageUp, KeyCode::Up]);
    assert_eq!(first(&mut watched), "desk-0001");
    // The fleet shrinks while the end of the list is shown.
    press(&mut watched, &[KeyCode::End]);
    watched.apply_answer(Ok(fleet(3)));
    assert_eq!(names(&frame(&mut watched, 80, 24)).len(), 3);
}

#[test]
fn columns_sort_and_reverse() {
    let sorted = |column: &str| {
        let mut watched = watched(12, &["--sort", column]);
        let frame = frame(&mut watched, 132, 40);
        names(&frame)[..3].join(" ")
    };
    // Host 7 was rejected. Host 10 is silent, and therefore lends nothing. Host 5 has not reported yet.
    assert_eq!(sorted("state"), "desk-0007 desk-0010 desk-0001");
    assert_eq!(sorted("memory"), "desk-0003 desk-0007 desk-0011");
    assert_eq!(sorted("available"), "desk-0003 desk-0007 desk-0011");
    assert_eq!(sorted("quota"), "desk-0003 desk-0006 desk-0009");
    assert_eq!(sorted("owner"), "desk-0012 desk-0009 desk-0006");
    assert_eq!(sorted("age"), "desk-0008 desk-0007 desk-0006");
    // If hosts are sorted by an amount of memory, silent hosts and those that have not reported come last.
    let mut off = watched(12, &["--sort", "harvestable"]);
    let off = frame(&mut off, 80, 40);
    assert_eq!(names(&off)[10..], ["desk-0010", "desk-0005"]);
    let mut watched = watched(12, &[]);
    press(&mut watched, &[KeyCode::Char('r')]);
    assert_eq!(names(&frame(&mut watched, 80, 40))[0], "desk-0012");
    press(
        &mut watched,
        &[KeyCode::Char('r'), KeyCode::Right, KeyCode::Right],
    );
    assert!(frame(&mut watched, 80, 40).contains("MEMORY↓"));
    press(&mut watched, &[KeyCode::Left, KeyCode::Left, KeyCode::Left]);
    assert!(frame(&mut watched, 80, 40).contains("↓AGE"));
}

#[test]
fn filters_are_typed_kept_and_dropped() {
    let mut watched = watched(1000, &[]);
    press(&mut watched, &typed("/desk-099"));
    let found = frame(&mut watched, 80, 24);
    assert!(
        found.contains("filter: desk-099_") && found.contains("of 10"),
        "{found}"
    );
    press(
        &mut watched,
        &[
            KeyCode::Backspace,
            KeyCode::Char('9'),
            KeyCode::Char('q'),
            KeyCode::Backspace,
        ],
    );
    press(&mut watched, &[KeyCode::Enter]);
    assert!(frame(&mut watched, 80, 24).contains("filter: desk-099"));
    assert_eq!(watched.chosen.len(), 10);
    press(&mut watched, &[KeyCode::Char('i')]);
    assert_eq!(
        watched.chosen.len(),
        watched.fleet.as_ref().unwrap().totals.idle_count
    );
    press(&mut watched, &typed("/ SILENT "));
    assert_eq!(watched.chosen.len(), 0); // the text was appended to the filter
    press(&mut watched, &[KeyCode::Esc]);
    assert_eq!(watched.chosen.len(), 1000);
    press(&mut watched, &typed("/ SILENT "));
    assert_eq!(watched.chosen.len(), 100);
    assert_eq!(
        watched.key(KeyEvent::from(KeyCode::Enter)),
        NextStep::Continue
    );
    assert_eq!(
        watched.key(KeyEvent::from(KeyCode::Char('q'))),
        NextStep::Quit
    );
}

#[test]
fn sums_over_all_collectors_are_shown_beside_those_of_one() {
    let mut watched = watched(20, &[]);
    assert!(!frame(&mut watched, 132, 24).contains("collectors"));
    let mut of_three = GroupTotals {
        collectors_count: 3,
        answering_count: 3,
        ..GroupTotals::default()
    };
    of_three.sums.hosts_count = 75_000;
    of_three.sums.available_bytes = 300 * GIB;
    let shown = |watched: &mut WatchedCollector, group: GroupTotals| {
        let group = Some(group);
        watched.apply_answer(Ok(Fleet { group, ..fleet(20) }));
        frame(watched, 132, 24)
    };
    let text = shown(&mut watched, of_three);
    assert!(
        text.contains("all 3 collectors: 75,000 hosts, 0 silent, 0 idle; available 300"),
        "{text}"
    );
    let one_is_dead = GroupTotals {
        answering_count: 2,
        ..of_three
    };
    let text = shown(&mut watched, one_is_dead);
    assert!(
        text.contains("2 of 3 collectors answer: 75,000 hosts"),
        "{text}"
    );
}

/// Commons of two members, each of which lends 1 GiB.
fn commons(name: &str) -> CommonsView {
    let member = |host_id: &str| MemberView {
        member: CommonsMember {
            host_id: host_id.to_owned(),
            frames: 1 << 14,
            ..CommonsMember::default()
        },
        ..MemberView::default()
    };
    CommonsView {
        name: name.to_owned(),
        epoch: 1_795_356_204,
        is_initiator: true,
        weights_age_ms: Some(3000),
        min_age_ms: Some(40_000),
        weights_sum: 1 << 13,
        members: vec![member("0a"), member("0b")],
    }
}

#[test]
fn commonses_of_the_named_recruiter_are_above_the_hosts() {
    let shown = |commonses: Option<Result<Vec<CommonsView>, String>>| {
        let mut watched = watched(20, &[]);
        watched.apply_answer(Ok(Fleet {
            commonses,
            ..fleet(20)
        }));
        let document: serde_json::Value =
            serde_json::from_str(&watched.text(true, 80).unwrap()).unwrap();
        (frame(&mut watched, 132, 40), document)
    };
    let (text, document) = shown(None);
    assert!(!text.contains("commons"), "{text}");
    assert!(document.get("commonses").is_none());

    let (text, document) = shown(Some(Ok(vec![commons("tools")])));
    let line = "commons tools: 2 members with 2.0 GiB; epoch 1795356204, weights 512.0 MiB of 3 s ago, minimum age 40 s";
    assert!(text.lines().any(|found| found == line), "{text}");
    assert_eq!(document["commonses"][0]["members"][1]["host_id"], "0b");

    let other = CommonsView {
        is_initiator: false,
        weights_age_ms: None,
        min_age_ms: None,
        ..commons("data")
    };
    let (text, _) = shown(Some(Ok(vec![other])));
    let line = "epoch 1795356204 of another recruiter, no weights yet";
    assert!(text.contains(line), "{text}");

    let many = ["a", "b", "c", "d", "e", "f"].map(commons).to_vec();
    let (text, _) = shown(Some(Ok(many)));
    assert!(text.contains("commons d: ") && !text.contains("commons e: "));
    assert!(text.contains("and 2 more commonses"), "{text}");

    let (text, _) = shown(Some(Ok(Vec::new())));
    assert!(text.contains("no commons has members"), "{text}");
    // The hosts are shown even if the recruiter does not answer.
    let (text, document) = shown(Some(Err("the recruiter is gone".to_owned())));
    assert!(text.contains("the recruiter is gone") && text.contains("desk-0001"));
    assert!(document.get("commonses").is_none());
}

#[test]
fn silent_hosts_count_in_no_sum() {
    let totals = fleet(20).totals;
    // The sums cover 20 hosts, less the two silent ones and the one that has not reported.
    assert_eq!(totals.hosts_count, 17);
    let hosts = (1..=20).filter(|n| n % 10 != 0 && *n != 5);
    let physical: u64 = hosts.map(|n| (8 * GIB) << (n % 4)).sum();
    assert_eq!(totals.physical_bytes, physical);
}

#[test]
fn a_collector_that_stops_answering_leaves_what_it_said_last() {
    let mut watched = watched(3, &[]);
    watched.apply_answer(Err(
        "the collector at http://127.0.0.1:7480 does not answer: refused".to_owned(),
    ));
    let found = frame(&mut watched, 80, 24);
    assert!(
        found.contains("does not answer") && found.contains("desk-0003"),
        "{found}"
    );
    watched.apply_answer(Ok(fleet(3)));
    assert!(!frame(&mut watched, 80, 24).contains("does not answer"));
    let mut none = WatchedCollector::idle(&args(&[]), URL, Ink::PLAIN);
    assert!(frame(&mut none, 80, 24).contains("Waiting for the collector's answer"));
}

#[test]
fn names_that_a_terminal_would_obey_are_shown_as_text() {
    let mut watched = watched(1, &[]);
    watched.fleet.as_mut().unwrap().rows[0].host_name = Some("\u{1b}[2Jwiped\u{7}".to_owned());
    let text = watched.text(false, 80).unwrap();
    assert!(
        text.contains("\u{fffd}[2Jwiped") && !text.contains('\u{1b}'),
        "{text}"
    );
    assert!(frame(&mut watched, 80, 24).contains("[2Jwiped"));
}

#[test]
fn no_terminal_is_too_small() {
    let mut watched = watched(30, &[]);
    for width in [1, 2, 5, 12, 20, 33] {
        for height in [1, 2, 3, 24] {
            watched.has_help = !watched.has_help;
            let _ = frame(&mut watched, width, height);
        }
    }
}

#[test]
fn the_document_has_what_the_frame_shows() {
    let watched = watched(20, &["--filter", "silent", "--json"]);
    let document: serde_json::Value =
        serde_json::from_str(&watched.text(true, 80).unwrap()).unwrap();
    assert_eq!(document["totals"]["hosts_count"], 17);
    assert_eq!(document["problems"][0]["severity"], "warning");
    let hosts = document["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 2);
    assert_eq!(hosts[0]["host_name"], "desk-0010");
    assert_eq!(hosts[0]["sample"]["age_ms"], 20_000);
    assert_eq!(hosts[0]["sample"]["owner"], "loaded");
}
