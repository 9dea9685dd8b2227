//! A lying agent, connected to a memory server.

use super::MOST_GROWN_BYTES;
use super::stage::{HonestRecruiter, Stage};
use crate::host::{Agent, Daemon, Host, MIB, idle, row};
use crate::recruiter::{HOST_ID, grant};
use gleaner_harness::{bytes_at, mutations, now_ms, peak_bytes, wait_for};
use gleaner_schemas::lending::{Outcome, QuotaReason};
use gleaner_schemas::live::{
    Hello, HostState, ListenerRefusal, Message, Owner, OwnerState, Sample, SignOfLife,
};
use gleaner_schemas::rows::SampleRow;
use serde_json::{Value, json, to_value};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of liars at one time. Several save time: after an invalid message the memory server reconnects only
/// a second later.
const LIARS: usize = 12;
/// Fields of a sample that are mutated, since they affect lending. The other fields have the same types.
const FIELDS: [&str; 10] = [
    "type",
    "time_ms",
    "state",
    "since_time_ms",
    "headroom_share",
    "physical_bytes",
    "available_bytes",
    "mem_available_bytes",
    "guest_bytes",
    "balloon_bytes",
];

/// Every message that an agent may send, each with the fields that are not mutated. If you add a message to
/// the protocol, add it here.
fn conversation() -> Vec<(Value, Value)> {
    let Value::Object(sample) = to_value(idle(row(64 << 20))).unwrap() else {
        panic!("a sample is an object");
    };
    let (mutated, kept): (serde_json::Map<_, _>, serde_json::Map<_, _>) = sample
        .into_iter()
        .partition(|(key, _)| FIELDS.contains(&key.as_str()));
    let owner = |state, source: Option<&str>| {
        let since_time_ms = Some(now_ms());
        to_value(Message::Owner(Owner {
            state,
            time_ms: now_ms(),
            absence_ms: Some(1),
            since_time_ms,
            source: source.map(str::to_owned),
        }))
        .unwrap()
    };
    let whole = [
        to_value(Message::Hello(Hello::default())).unwrap(),
        owner(OwnerState::Idle, None),
        owner(OwnerState::InUse, Some("input")),
        to_value(Message::Alive(SignOfLife { time_ms: now_ms() })).unwrap(),
        to_value(Message::Refused(ListenerRefusal::default())).unwrap(),
    ];
    let whole = whole.into_iter().map(|message| (message, json!({})));
    whole.chain([(mutated.into(), kept.into())]).collect()
}

/// Returns all messages of an agent with one mutated field.
fn lines() -> Vec<(String, String)> {
    let lines = conversation().into_iter().flat_map(|(message, kept)| {
        mutations(&message)
            .into_iter()
            .map(move |(name, mut mutated)| {
                if let (Value::Object(fields), Value::Object(kept)) = (&mut mutated, &kept) {
                    fields.extend(kept.clone());
                }
                (format!("{} {name}", message["type"]), mutated.to_string())
            })
    });
    lines.collect()
}

/// Physical memory of this machine, in bytes.
fn machine_bytes() -> u64 {
    bytes_at("/proc/meminfo", "MemTotal")
}

/// A memory server without a cap; the test plays its agent.
struct Victim {
    host: Host,
    honest: HonestRecruiter,
    daemon: Daemon,
    peak_bytes: u64,
}

impl Victim {
    fn start() -> Self {
        let host = Host::new();
        let honest = HonestRecruiter::start();
        host.write_configuration(&format!(
            "host_id = \"{HOST_ID}\"\nrecruiters = [\"{}\"]\nannounce_every = \"1s\"\nrise_after = \"0s\"\n\
             pressure_pause = \"0s\"\nlock_pages = \"never\"\nhuge_pages = false\nlisten = \"127.0.0.1:0\"\n",
            honest.url
        ));
        let daemon = host.daemon_with(&[]);
        let peak_bytes = peak_bytes(daemon.pid());
        Self {
            host,
            honest,
            daemon,
            peak_bytes,
        }
    }

    /// Sends a valid sample, on new connections if necessary, until the quota equals the figure of that
    /// sample.
    #[track_caller]
    fn lends(&self, agent: &mut Agent, bytes: u64, after: &str) {
        let sentinel = || idle(row(i64::try_from(bytes).unwrap()));
        let mut is_lost = !agent.try_say(&sentinel());
        wait_for(after, || {
            agent.stream.set_nonblocking(true).unwrap();
            is_lost |= matches!(agent.stream.read(&mut [0]), Ok(0));
            agent.stream.set_nonblocking(false).unwrap();
            if is_lost {
                *agent = self.host.agent();
                is_lost = !agent.try_say(&sentinel());
            }
            self.is_within_bounds(after);
            is_lost |= !agent.try_alive();
            let quota = self.daemon.status().quota;
            quota.quota_bytes == bytes
        });
    }

    #[track_caller]
    fn is_within_bounds(&self, after: &str) {
        let quota = self.daemon.status().quota;
        let most = quota
            .quota_bytes
            .max(quota.idle_quota_bytes)
            .max(quota.unleased_bytes);
        assert!(most <= machine_bytes(), "{after}: {quota:?}");
        let announced = self.honest.heard().most_quota_bytes;
        assert!(
            announced <= machine_bytes(),
            "{after}: {announced} announced"
        );
    }

    #[track_caller]
    fn stands(&self, agent: Agent) {
        drop(agent);
        wait_for("nothing to be lent without an agent", || {
            let quota = self.daemon.status().quota;
            quota.quota_bytes == 0 && quota.reason == QuotaReason::Unknown
        });
        let grown = peak_bytes(self.daemon.pid()).saturating_sub(self.peak_bytes);
        assert!(grown < MOST_GROWN_BYTES, "{grown} bytes more");
    }
}

#[test]
fn mutated_words_of_an_agent_lend_no_more_than_the_machine_has() {
    let lines = lines();
    println!("{} lines", lines.len());
    std::thread::scope(|scope| {
        for number in 0..LIARS {
            let own = lines.iter().skip(number).step_by(LIARS);
            scope.spawn(move || {
                let victim = Victim::start();
                let mut agent = victim.host.agent();
                for (index, (name, line)) in own.enumerate() {
                    let _ = agent.stream.write_all(format!("{line}\n").as_bytes()); // the server may hang up
                    // The figure differs for each sample, so that the quota can only come from this one.
                    victim.lends(&mut agent, (10 + index as u64) * 2 * MIB, name);
                }
                victim.stands(agent);
            });
        }
    });
}

#[test]
fn absurd_figures_of_an_agent_lend_no_more_than_the_machine_has() {
    const MOST: i64 = i64::MAX;
    let victim = Victim::start();
    let mut agent = victim.host.agent();
    let figures = [
        // Figures of one sample: physical, available, MemAvailable, guests.
        (MOST, MOST, MOST, 0),
        (MOST, MOST, MOST, MOST),
        (16 << 30, 1 << 62, 1 << 62, 0),
        (0, 1 << 62, 1 << 62, 0),
        (-1, -1, -1, -1),
        (i64::MIN, MOST, MOST, i64::MIN),
        (16 << 30, 0, 0, MOST),
    ];
    for (index, (physical, available, mem_available, guest)) in figures.into_iter().enumerate() {
        let row = SampleRow {
            physical_bytes: physical,
            available_bytes: available,
            mem_available_bytes: Some(mem_available),
            guest_bytes: guest,
            ..SampleRow::default()
        };
        agent.say(&idle(row));
        // Requests all memory that the false figures would allow, and more.
        for bytes in [1 << 46, 1 << 62, u64::MAX] {
            let outcome = victim
                .honest
                .ask(&grant("c", &format!("{index}-{bytes}"), bytes));
            assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        }
        let name = format!("{physical} {available} {mem_available} {guest}");
        victim.is_within_bounds(&name);
        victim.lends(&mut agent, (10 + index as u64) * 2 * MIB, &name);
    }
    victim.stands(agent);
}

#[test]
fn an_agent_whose_clock_runs_backwards_does_not_undo_the_owners_return() {
    let victim = Victim::start();
    let mut agent = victim.host.agent();
    victim.lends(&mut agent, 64 * MIB, "a sample");
    let lease = victim.honest.lease("c", "k", 8 * MIB);
    assert_eq!(lease.remaining_bytes, 8 * MIB);
    let before_ms = now_ms() - 60_000;
    agent.owner(OwnerState::InUse, Some("input"));
    wait_for("the owner's memory", || {
        victim.daemon.status().leases.is_empty()
    });
    // Samples and other messages with times before the owner's return: each older than the last, and finally
    // out of order and repeated.
    for step in (0..200_i64).chain([3, 3, 2, 7]) {
        let time_ms = before_ms - 1000 * step;
        let state = HostState::Idle {
            since_time_ms: time_ms,
        };
        agent.say(&Message::Sample(Box::new(Sample {
            time_ms,
            state,
            headroom_share: 0.0,
            row: row(1 << 30),
        })));
        agent.say(&Message::Owner(Owner {
            state: OwnerState::Idle,
            time_ms,
            since_time_ms: Some(time_ms),
            ..Owner::default()
        }));
        agent.say(&Message::Hello(Hello::default()));
        let quota = victim.daemon.status().quota;
        assert_eq!(quota.quota_bytes, 0, "{step}: {quota:?}");
    }
    victim.lends(&mut agent, 32 * MIB, "an owner who has left since");
    victim.stands(agent);
}

#[test]
fn a_flood_of_an_agents_words_holds_nobody_up() {
    let mut stage = Stage::start(&[]);
    let has_ended = AtomicBool::new(false);
    let alive = to_value(Message::Alive(SignOfLife { time_ms: 1 })).unwrap();
    let owner = json!({ "type": "owner", "state": "idle", "time_ms": now_ms() });
    let flood = format!("{alive}\n{{\"type\":\"later\"}}\n{owner}\n").repeat(600);
    let agent = stage.agent.clone();
    std::thread::scope(|scope| {
        let (agent, flood, has_ended) = (&agent, &flood, &has_ended);
        scope.spawn(move || {
            while !has_ended.load(Ordering::Relaxed) {
                let mut agent = agent.lock().unwrap();
                if agent.stream.write_all(flood.as_bytes()).is_err() {
                    break;
                }
            }
        });
        // The thread of the flood must end, whatever the result is.
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..50 {
                stage.is_served();
            }
        }));
        has_ended.store(true, Ordering::Relaxed);
        served.unwrap();
    });
    stage.stands();
}

#[test]
fn an_agent_that_ends_no_line_counts_as_silent() {
    let victim = Victim::start();
    let mut agent = victim.host.agent();
    victim.lends(&mut agent, 64 * MIB, "a sample");
    victim.honest.lease("c", "k", 8 * MIB);
    // The line is shorter than the limit, so that the memory server waits for the rest.
    let half = format!("{{\"type\":\"alive\",\"x\":\"{}", "x".repeat(1_000_000));
    agent.stream.write_all(half.as_bytes()).unwrap();
    wait_for("the owner's memory", || {
        // Single bytes follow, but they are no sign of life.
        let _ = agent.stream.write_all(b"x"); // the memory server closes the silent connection
        let lending = victim.daemon.status();
        lending.leases.is_empty() && !lending.is_agent_connected
    });
    assert_eq!(victim.daemon.log().pop().unwrap().cause, "agent_lost");
    victim.stands(agent);
}
