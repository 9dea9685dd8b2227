//! Frames of hosts with invented states.

use super::agent::{AgentEvent, AgentState};
use super::kernel::Reading;
use super::{FrameTime, Host, document, view};
use crate::top::frames::{render_text, same_as_golden};
use crate::top::ink::Ink;
use gleaner_schemas::live::{Hello, HostState, Message, Owner, OwnerState, Sample, SignOfLife};
use gleaner_schemas::rows::SampleRow;
use jiff::tz::TimeZone;
use ratatui::widgets::Paragraph;
use std::path::Path;
use std::time::Duration;

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// Time of all frames: 2026-11-22 14:03:27 UTC.
const TIME_MS: i64 = 1_795_356_207_000;
const NOW: FrameTime = FrameTime {
    time_ms: TIME_MS,
    monotonic_ms: 600_000,
};

fn sample(state: HostState) -> Sample {
    Sample {
        time_ms: TIME_MS - 34_000,
        state,
        headroom_share: 0.15,
        row: SampleRow {
            physical_bytes: 32 * GIB,
            static_kernel_bytes: Some(620 * MIB),
            dynamic_kernel_bytes: 1480 * MIB,
            reserve_bytes: Some(118 * MIB),
            process_bytes: 7 * GIB,
            file_cache_bytes: 2 * GIB,
            guest_bytes: GIB,
            available_bytes: 22 * GIB - (620 + 1480 + 118) * MIB,
            harvestable_bytes: Some(14 * GIB),
            mem_available_bytes: Some(14 * GIB + 5_153_960_755), // harvestable, and 15 % of 32 GiB
            load5: Some(1.42),
            ..SampleRow::default()
        },
    }
}

fn reading(looked: i64) -> Reading {
    Reading {
        time_ms: TIME_MS - 2000 + looked * 2000,
        mem_total_bytes: 32 << 30,
        mem_free_bytes: 9 << 30,
        mem_available_bytes: Some((19 << 30) + (looked as u64 % 7) * (100 << 20)),
        page_cache_bytes: Some(12 << 30),
        anon_bytes: Some(8 << 30),
        swap_total_bytes: Some(8 << 30),
        swap_free_bytes: Some(7 << 30),
        load1: Some(0.31),
        load5: Some(1.42),
        psi_memory_some_total_us: Some(50_000 + 24_000 * looked as u64),
        psi_io_some_total_us: Some(0),
    }
}

/// A watched host without an agent.
fn host() -> Host {
    Host {
        name: "otter".to_owned(),
        zone: TimeZone::UTC,
        reading: Some(reading(1)),
        before: Some(reading(0)),
        looks: (0..40)
            .filter_map(|n| reading(n).mem_available_bytes)
            .collect(),
        ..Host::new(Duration::from_secs(2))
    }
}

/// A host whose agent sent this state.
fn told(state: HostState, owner: Option<Owner>) -> Host {
    let mut host = host();
    let hello = Hello {
        version: 1,
        agent_version: "0.1.0".to_owned(),
        sample_interval_ms: 90_000,
        silent_after_ms: 3000,
        ..Hello::default()
    };
    let messages = [
        Message::Hello(hello),
        Message::Sample(Box::new(sample(state))),
    ];
    for message in messages.into_iter().chain(owner.map(Message::Owner)) {
        host.process_message(AgentEvent::Message(Box::new(message)), NOW);
    }
    host.samples = (0..12)
        .map(|n| (n * 90_000, ((18 + n % 3) * GIB) as u64))
        .collect();
    host
}

fn idle() -> Host {
    let since_time_ms = TIME_MS - 1_345_000;
    told(HostState::Idle { since_time_ms }, None)
}

fn frame(host: &Host, now: FrameTime, width: u16, height: u16) -> String {
    render_text(width, height, |frame| {
        let lines = view::lines(host, now, width.into(), Ink::PLAIN);
        frame.render_widget(Paragraph::new(lines), frame.area());
    })
}

#[test]
fn an_idle_host_on_terminals_of_two_sizes() {
    same_as_golden("host-idle-80", &frame(&idle(), NOW, 80, 24));
    same_as_golden("host-idle-40", &frame(&idle(), NOW, 40, 30));
}

#[test]
fn without_an_agent_it_says_what_to_do_and_shows_what_the_kernel_says() {
    let mut host = host();
    let why = "/run/gleaner/agent.sock: there is no such file; start it with `systemctl start gleaner-agent`";
    host.process_message(AgentEvent::Lost(why.to_owned()), NOW);
    same_as_golden("host-no-agent-80", &frame(&host, NOW, 80, 24));
    let document = serde_json::to_value(document::of(&host, NOW)).unwrap();
    assert!(document["agent"].is_null() && document["quota"].is_null());
    assert_eq!(document["agent_failure"], why);
    assert_eq!(document["kernel"]["mem_free_bytes"], 9_u64 << 30);
}

#[test]
fn every_state_of_the_owner_has_its_words_and_its_quota() {
    let owner = |absence_ms| Owner {
        state: OwnerState::InUse,
        time_ms: TIME_MS - 5000,
        absence_ms: Some(absence_ms),
        source: Some("input".to_owned()),
        ..Owner::default()
    };
    let idle = HostState::Idle {
        since_time_ms: TIME_MS - 1_345_000,
    };
    let idle_at_time_ms = TIME_MS + 60_000;
    let silent = FrameTime {
        monotonic_ms: NOW.monotonic_ms + 7000,
        ..NOW
    };
    let idle_quota_bytes = 15 * GIB; // 14 GiB harvestable and 1 GiB lent
    for (host, now, words, quota_bytes) in [
        (
            told(idle, None),
            NOW,
            "idle since 13:41:02 (22 min)",
            idle_quota_bytes,
        ),
        (
            told(idle, Some(owner(1_340_000))),
            NOW,
            "in use; idle at 14:08:22 if nothing happens",
            0,
        ),
        (
            told(idle, Some(owner(1_340_000))),
            NOW,
            "last return 14:03:22, after 22 min away (input)",
            0,
        ),
        (
            told(HostState::InUse { idle_at_time_ms }, None),
            NOW,
            "in use; idle at 14:04:27",
            0,
        ),
        (
            told(HostState::Loaded, None),
            NOW,
            "loaded: the 5-minute load is 1.42, idle is below 0.3",
            0,
        ),
        (
            told(HostState::Unknown, None),
            NOW,
            "unknown, counts as in use",
            0,
        ),
        (
            told(idle, None),
            silent,
            "the agent is silent for 7 s: counts as in use",
            0,
        ),
    ] {
        let frame = frame(&host, now, 100, 30);
        assert!(frame.contains(words), "{words}\n{frame}");
        let lends = if quota_bytes > 0 {
            "15.0 GiB now"
        } else {
            "nothing now; 15.0 GiB once idle"
        };
        assert!(frame.contains(lends), "{lends}\n{frame}");
        let document = serde_json::to_value(document::of(&host, now)).unwrap();
        assert_eq!(document["quota"]["quota_bytes"], quota_bytes, "{words}");
        assert_eq!(
            document["quota"]["idle_quota_bytes"], idle_quota_bytes,
            "{words}"
        );
    }
}

#[test]
fn an_agent_that_goes_and_comes_back_is_told_of() {
    let mut host = idle();
    host.process_message(AgentEvent::Lost("the agent has ended".to_owned()), NOW);
    assert!(frame(&host, NOW, 80, 24).contains("No agent answers: the agent has ended"));
    host.process_message(
        AgentEvent::Message(Box::new(Message::Hello(Hello::default()))),
        NOW,
    );
    let later = frame(&host, NOW, 80, 24);
    assert!(
        later.contains("No sample yet") && !later.contains("No agent"),
        "{later}"
    );
    host.process_message(
        AgentEvent::Message(Box::new(Message::Alive(SignOfLife::default()))),
        NOW,
    );
    assert_eq!(host.samples.len(), 12); // earlier samples stay
    let refused = r#"{"type":"refused","reason":"16 listeners"}"#;
    let refused: Message = serde_json::from_str(refused).unwrap();
    host.process_message(AgentEvent::Message(Box::new(refused)), NOW);
    assert!(frame(&host, NOW, 80, 24).contains("16 listeners"));
}

#[test]
fn no_terminal_is_too_small() {
    let silent = AgentState::default();
    for width in [1, 2, 5, 12, 20, 33] {
        for height in [1, 3, 24] {
            let mut host = idle();
            let _ = frame(&host, NOW, width, height);
            host.told = Some(silent.clone());
            let _ = frame(&host, NOW, width, height);
            host.told = None;
            let _ = frame(&host, NOW, width, height);
            let help = view::help(width.into(), Ink::PLAIN);
            let _ = render_text(width, height, |f| {
                f.render_widget(Paragraph::new(help), f.area())
            });
        }
    }
}

#[test]
fn proc_is_read_as_it_is_and_a_lack_of_it_is_told() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../agent/tests/trees/desktop-6.1-amd64/t1/proc");
    let mut host = host();
    host.look(&tree, NOW);
    let found = host.reading.clone().unwrap();
    assert_eq!(found.time_ms, TIME_MS);
    assert!(found.mem_available_bytes.unwrap() < found.mem_total_bytes);
    assert!(found.load5.is_some() && found.psi_memory_some_total_us.is_some());
    host.look(Path::new("/nowhere"), NOW);
    assert!(frame(&host, NOW, 80, 24).contains("cannot read /nowhere/meminfo"));
    // The counter of waiting grew by 24 ms in two seconds: 1.2 %. A counter that decreased is ignored.
    let (before, now) = (reading(0), reading(1));
    assert_eq!(now.pressure_since(&before), Some((0.012, 0.0)));
    assert_eq!(before.pressure_since(&now), None);
}
