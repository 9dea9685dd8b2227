//! A stand-in for an agent, with its socket. It reports a host with much memory, whose owner leaves and
//! returns when the test says so.

use gleaner_harness::now_ms;
use gleaner_schemas::live::{Hello, HostState, Message, Owner, OwnerState, Sample, SignOfLife};
use gleaner_schemas::rows::SampleRow;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PHYSICAL_BYTES: i64 = 16 << 30;
const AVAILABLE_BYTES: i64 = 8 << 30;
/// Time between samples. It is short, so that a busy machine does not delay them for 3 s: such a silence
/// counts as the owner's return.
const SAMPLE_EVERY: Duration = Duration::from_millis(400);
const TURN: Duration = Duration::from_millis(5);

/// Time at which the owner left; `None`: the owner is present.
type AwaySince = Arc<Mutex<Option<i64>>>;

pub(crate) struct Agent {
    away: AwaySince,
}

impl Agent {
    /// Starts a thread that listens on the socket until the test ends.
    pub(crate) fn start(socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let away: AwaySince = Arc::new(Mutex::new(Some(now_ms() - 3_600_000)));
        let shared = away.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let away = shared.clone();
                std::thread::spawn(move || tell(stream, &away));
            }
        });
        Self { away }
    }

    pub(crate) fn owner_returns(&self) {
        *self.away.lock().unwrap() = None;
    }

    pub(crate) fn owner_leaves(&self) {
        self.away.lock().unwrap().get_or_insert_with(now_ms);
    }
}

/// Sends the same messages as a real agent, until the connection ends.
fn tell(mut stream: UnixStream, away: &AwaySince) {
    let mut say = |message: &Message| {
        let mut line = serde_json::to_vec(message).unwrap();
        line.push(b'\n');
        stream.write_all(&line).is_ok()
    };
    let mut before = *away.lock().unwrap();
    let mut is_well =
        say(&Message::Hello(Hello::default())) && say(&sample(before)) && say(&owner(before));
    let mut sampled_at = Instant::now();
    while is_well {
        std::thread::sleep(TURN);
        let now = *away.lock().unwrap();
        if now != before {
            before = now;
            is_well = say(&owner(now)) && say(&sample(now));
        }
        if sampled_at.elapsed() > SAMPLE_EVERY {
            sampled_at = Instant::now();
            is_well &= say(&sample(now)) && say(&Message::Alive(SignOfLife { time_ms: now_ms() }));
        }
    }
}

fn sample(away_since: Option<i64>) -> Message {
    let state = match away_since {
        Some(since_time_ms) => HostState::Idle { since_time_ms },
        None => HostState::InUse {
            idle_at_time_ms: now_ms() + 300_000,
        },
    };
    let row = SampleRow {
        physical_bytes: PHYSICAL_BYTES,
        available_bytes: AVAILABLE_BYTES,
        mem_available_bytes: Some(AVAILABLE_BYTES),
        ..SampleRow::default()
    };
    Message::Sample(Box::new(Sample {
        time_ms: now_ms(),
        state,
        headroom_share: 0.0,
        row,
    }))
}

fn owner(away_since: Option<i64>) -> Message {
    Message::Owner(match away_since {
        Some(_) => Owner {
            state: OwnerState::Idle,
            time_ms: now_ms(),
            since_time_ms: away_since,
            ..Owner::default()
        },
        None => Owner {
            state: OwnerState::InUse,
            time_ms: now_ms(),
            source: Some("input".to_owned()),
            ..Owner::default()
        },
    })
}
