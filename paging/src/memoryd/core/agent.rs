//! The agent's socket (docs/live.md): samples and the owner's returns.

use super::pressure::MeminfoFigures;
use crate::clock;
use gleaner_hosts::derived::{Figures, unsigned};
use gleaner_policy::accounting::Categories;
use gleaner_policy::idle::Verdict;
use gleaner_policy::lending::{Cause, Event};
use gleaner_schemas::live::{HostState, Message, Owner, OwnerState, SILENT_AFTER_MS, Sample};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Pause between attempts to connect to the agent.
const AGAIN_MS: i64 = 1000;
/// Maximum length of a line; a sample has a few KiB.
const LONGEST_LINE: usize = 1 << 20;

/// Maximum number of reads from the agent before other inputs are handled.
const MOST_READS: usize = 4;
/// Maximum length of an agent's text that is quoted in the log.
const MOST_SAID_CHARS: usize = 300;

/// The connection to the agent.
#[derive(Debug)]
pub(super) struct Agent {
    path: PathBuf,
    stream: Option<UnixStream>,
    line: Vec<u8>,
    /// Time of the agent's last message, or of the last attempt to connect.
    heard_ms: i64,
    /// Reason, as logged last, why there is no agent.
    lost: Option<String>,
    /// True in measurements: the host counts as idle at every sample.
    always_idle: bool,
}

impl Agent {
    pub(super) fn new(path: &Path, always_idle: bool) -> Self {
        Self {
            path: path.to_owned(),
            stream: None,
            line: Vec::new(),
            heard_ms: i64::MIN,
            lost: None,
            always_idle,
        }
    }

    pub(super) fn stream(&self) -> Option<&UnixStream> {
        self.stream.as_ref()
    }

    /// Time at which the agent counts as silent or, if there is no agent, of the next attempt to connect.
    pub(super) fn due_ms(&self) -> i64 {
        let after = if self.stream.is_some() {
            SILENT_AFTER_MS
        } else {
            AGAIN_MS
        };
        self.heard_ms.saturating_add(after)
    }

    /// Connects to the agent if there is no connection, or disconnects an agent that is silent.
    pub(super) fn tick(&mut self, now_ms: i64) -> Vec<Event> {
        if now_ms < self.due_ms() {
            return Vec::new();
        }
        if self.stream.is_some() {
            // The agent may have sent messages that were not read yet, because this host slept or was too
            // busy.
            let mut events = self.read_messages(now_ms);
            if now_ms >= self.due_ms() && self.stream.is_some() {
                events.push(self.lose(now_ms, format!("silent for {SILENT_AFTER_MS} ms")));
            }
            return events;
        }
        self.heard_ms = now_ms;
        let connect = || {
            let stream = UnixStream::connect(&self.path)?;
            stream.set_nonblocking(true)?;
            io::Result::Ok(stream)
        };
        match connect() {
            Ok(stream) => {
                self.stream = Some(stream);
                self.line.clear();
            }
            Err(e) => self.tell(e.to_string()),
        }
        Vec::new()
    }

    /// Reads the agent's messages; if there are very many, the remainder follows in the next call.
    pub(super) fn read_messages(&mut self, now_ms: i64) -> Vec<Event> {
        let mut events = Vec::new();
        let mut buffer = [0; 16 << 10];
        for _ in 0..MOST_READS {
            let Some(stream) = &mut self.stream else {
                return events;
            };
            match stream.read(&mut buffer) {
                Ok(0) => {
                    events.push(self.lose(now_ms, "it has ended".to_owned()));
                    return events;
                }
                Ok(read) => self.process_bytes(&buffer[..read], now_ms, &mut events),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return events,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    events.push(self.lose(now_ms, e.to_string()));
                    return events;
                }
            }
        }
        events
    }

    fn process_bytes(&mut self, mut bytes: &[u8], now_ms: i64, events: &mut Vec<Event>) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let message = serde_json::from_slice(&self.line);
            self.line.clear();
            match message {
                Ok(Message::Refused(refused)) => {
                    events.push(self.lose(now_ms, format!("it refused: {}", refused.reason)));
                    return;
                }
                Ok(message) => {
                    self.heard_ms = now_ms;
                    self.lost = None;
                    events.extend(self.event(message));
                }
                // The message cannot be read, and it may have reported the owner's return. So the agent
                // counts as lost.
                Err(e) => {
                    // A decoder's error quotes the whole faulty text.
                    let why: String = e.to_string().chars().take(MOST_SAID_CHARS).collect();
                    events.push(self.lose(now_ms, format!("it sent an unreadable message: {why}")));
                    return;
                }
            }
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > LONGEST_LINE {
            events.push(self.lose(now_ms, "its line has no end".to_owned()));
        }
    }

    fn event(&self, message: Message) -> Option<Event> {
        match message {
            Message::Sample(sample) => Some(self.of_sample(&sample)),
            Message::Owner(owner) => Some(of_owner(&owner)),
            _ => None,
        }
    }

    fn of_sample(&self, sample: &Sample) -> Event {
        let verdict = match sample.state {
            _ if self.always_idle => Verdict::Idle {
                since_ms: clock::on_boot_clock(sample.time_ms),
            },
            HostState::Idle { since_time_ms } => Verdict::Idle {
                since_ms: clock::on_boot_clock(since_time_ms),
            },
            HostState::InUse { idle_at_time_ms } => Verdict::Waiting {
                at_ms: clock::on_boot_clock(idle_at_time_ms),
            },
            HostState::Loaded => Verdict::Loaded,
            HostState::Unknown => Verdict::Unknown,
        };
        let (categories, mem_available_bytes) = (
            Figures::from(&sample.row).known(),
            sample.row.mem_available_bytes.map(unsigned),
        );
        let (categories, mem_available_bytes) = match MeminfoFigures::read() {
            Some(machine) => within(machine.total_bytes, categories, mem_available_bytes),
            None => (categories, mem_available_bytes),
        };
        Event::Sample {
            categories,
            mem_available_bytes,
            headroom_share: sample.headroom_share,
            verdict,
        }
    }

    /// Drops the connection to the agent; from now on the owner counts as present.
    fn lose(&mut self, now_ms: i64, why: String) -> Event {
        self.stream = None;
        self.line.clear();
        self.heard_ms = now_ms;
        self.tell(why);
        Event::Returned(Cause::AgentLost)
    }

    /// Logs a fault once, and not again at every attempt.
    fn tell(&mut self, why: String) {
        if self.lost.as_ref() != Some(&why) {
            eprintln!(
                "gleaner-memoryd: no agent at {}: {why}; nothing is lent",
                self.path.display()
            );
            self.lost = Some(why);
        }
    }
}

fn of_owner(owner: &Owner) -> Event {
    match owner.state {
        OwnerState::Idle => Event::Idle {
            since_ms: clock::on_boot_clock(owner.since_time_ms.unwrap_or(owner.time_ms)),
        },
        OwnerState::Unknown => Event::Returned(Cause::OwnerUnknown),
        OwnerState::InUse => Event::Returned(match owner.source.as_deref() {
            Some("load") => Cause::Load,
            Some("gap") => Cause::OwnerUnknown,
            _ => Cause::Owner,
        }),
    }
}

/// Limits an agent's figures by the machine's memory as the kernel reports it. Available and lent memory
/// together are at most that much, and the headroom is a share of at least that much.
fn within(
    machine_bytes: u64,
    said: Categories,
    mem_available_bytes: Option<u64>,
) -> (Categories, Option<u64>) {
    let available_bytes = said.available_bytes.min(machine_bytes);
    let mem_available_bytes = mem_available_bytes.map(|bytes| bytes.min(machine_bytes));
    let most_bytes = available_bytes.max(mem_available_bytes.unwrap_or(0));
    let categories = Categories {
        physical_bytes: said.physical_bytes.max(machine_bytes),
        available_bytes,
        guest_bytes: said.guest_bytes.min(machine_bytes - most_bytes),
        ..said
    };
    (categories, mem_available_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    struct Host {
        _folder: tempfile::TempDir,
        listener: UnixListener,
        agent: Agent,
    }

    fn host() -> Host {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let listener = UnixListener::bind(&path).unwrap();
        Host {
            agent: Agent::new(&path, false),
            _folder: folder,
            listener,
        }
    }

    const LOST: Event = Event::Returned(Cause::AgentLost);

    #[test]
    fn each_word_of_the_agent_means_what_it_says() {
        let Host {
            mut agent,
            listener,
            _folder,
        } = host();
        assert_eq!(agent.tick(0), []);
        let (mut stream, _) = listener.accept().unwrap();
        let mut said = |line: &str| {
            stream.write_all(line.as_bytes()).unwrap();
            agent.read_messages(0)
        };
        assert_eq!(
            said("{\"type\":\"alive\",\"time_ms\":1}\n{\"type\":\"new\"}\n{\"type\":"),
            []
        );
        let events = said(
            "\"owner\",\"state\":\"in_use\",\"time_ms\":9,\"absence_ms\":4,\"source\":\"input\"}\n",
        );
        assert_eq!(events, [Event::Returned(Cause::Owner)]);
        for (word, cause) in [
            ("\"state\":\"in_use\",\"source\":\"load\"", Cause::Load),
            (
                "\"state\":\"in_use\",\"source\":\"gap\"",
                Cause::OwnerUnknown,
            ),
            ("\"state\":\"unknown\"", Cause::OwnerUnknown),
            ("\"state\":\"asleep\"", Cause::OwnerUnknown),
        ] {
            let line = format!("{{\"type\":\"owner\",\"time_ms\":9,{word}}}\n");
            assert_eq!(said(&line), [Event::Returned(cause)], "{word}");
        }
        let now_ms = clock::wall_ms();
        let events = said(&format!(
            "{{\"type\":\"owner\",\"state\":\"idle\",\"time_ms\":{now_ms},\"since_time_ms\":{}}}\n",
            now_ms - 60_000
        ));
        let [Event::Idle { since_ms }] = events[..] else {
            panic!("{events:?}");
        };
        assert!(
            (clock::boot_ms() - since_ms - 60_000).abs() < 5000,
            "{since_ms}"
        );
        let row = serde_json::to_string(&Message::Sample(Box::default())).unwrap();
        let events = said(&format!("{row}\n"));
        assert!(
            matches!(
                events[..],
                [Event::Sample {
                    verdict: Verdict::Unknown,
                    ..
                }]
            ),
            "{events:?}"
        );
    }

    #[test]
    fn silence_garbage_and_the_end_count_as_its_loss() {
        let Host {
            mut agent,
            listener,
            _folder,
        } = host();
        agent.tick(0);
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .write_all(b"{\"type\":\"alive\",\"time_ms\":1}\n")
            .unwrap();
        assert_eq!(agent.read_messages(1000), []);
        assert_eq!((agent.tick(3999), agent.due_ms()), (vec![], 4000));
        // The agent sent messages that were not read in time: it was not silent.
        stream
            .write_all(b"{\"type\":\"alive\",\"time_ms\":2}\n")
            .unwrap();
        assert_eq!(agent.tick(4000), []);
        assert_eq!(agent.tick(7000), [LOST]);
        // The daemon connects to the agent again only a second later.
        assert_eq!(
            (agent.tick(7999), agent.stream().is_some()),
            (vec![], false)
        );
        assert_eq!((agent.tick(8000), agent.stream().is_some()), (vec![], true));
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"garbage\n").unwrap();
        assert_eq!(agent.read_messages(8000), [LOST]);
        agent.tick(9000);
        let (stream, _) = listener.accept().unwrap();
        drop(stream);
        assert_eq!(agent.read_messages(9000), [LOST]);
        agent.tick(10_000);
        let (mut stream, _) = listener.accept().unwrap();
        let _feeder = std::thread::spawn(move || stream.write_all(&vec![b'x'; LONGEST_LINE + 2]));
        let mut events = Vec::new();
        while events.is_empty() {
            events = agent.read_messages(10_000);
        }
        assert_eq!(events, [LOST]);
    }

    #[test]
    fn of_very_much_a_part_is_heard_before_others_have_their_turn() {
        let Host {
            mut agent,
            listener,
            _folder,
        } = host();
        agent.tick(0);
        let (mut stream, _) = listener.accept().unwrap();
        let flood = "{\"type\":\"owner\",\"state\":\"in_use\",\"time_ms\":9}\n".repeat(2000);
        let all = flood.len();
        let feeder =
            std::thread::spawn(move || stream.write_all(flood.as_bytes()).map(|()| stream));
        // The thread ends only after it has sent everything, which the socket accepts without blocking.
        let _stream = feeder.join().unwrap().unwrap();
        let most = (MOST_READS * (16 << 10)).div_ceil(all / 2000);
        let heard = agent.read_messages(0).len();
        assert!(
            heard > 0 && heard <= most && most < 2000,
            "{heard} of {most}"
        );
        let mut all = heard;
        while all < 2000 {
            all += agent.read_messages(0).len();
        }
        assert_eq!((all, agent.read_messages(0)), (2000, vec![]));
    }

    #[test]
    fn figures_beyond_the_machine_are_the_machines() {
        let said = |available_bytes, guest_bytes| Categories {
            physical_bytes: 1,
            available_bytes,
            guest_bytes,
            ..Categories::default()
        };
        for (available, mem_available, guest, expected) in [
            (40, Some(30), 20, (40, Some(30), 20)),
            (40, None, 80, (40, None, 60)),
            (u64::MAX, Some(u64::MAX), u64::MAX, (100, Some(100), 0)),
            (0, Some(90), u64::MAX, (0, Some(90), 10)),
        ] {
            let (found, found_available) = within(100, said(available, guest), mem_available);
            let found_bytes = (found.available_bytes, found_available, found.guest_bytes);
            assert_eq!(found_bytes, expected);
            assert_eq!(found.physical_bytes, 100);
        }
        let larger = Categories {
            physical_bytes: 110,
            ..Categories::default()
        };
        assert_eq!(within(100, larger, None).0.physical_bytes, 110);
    }

    #[test]
    fn of_a_long_message_that_is_none_little_is_logged() {
        let Host {
            mut agent,
            listener,
            _folder,
        } = host();
        agent.tick(0);
        let (mut stream, _) = listener.accept().unwrap();
        let line = format!("\"{}\"\n", "x".repeat(100_000));
        let _feeder = std::thread::spawn(move || stream.write_all(line.as_bytes()));
        let mut events = Vec::new();
        while events.is_empty() {
            events = agent.read_messages(0);
        }
        assert_eq!(events, [LOST]);
        let said = agent.lost.unwrap();
        assert!(said.len() < 2 * MOST_SAID_CHARS, "{} bytes", said.len());
    }
}
