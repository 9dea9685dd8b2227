//! A host for tests: a folder, an agent and a daemon.

use gleaner_harness::{PATIENCE, Running, bytes_at, now_ms, resident_bytes, wait_for_some};
use gleaner_schemas::lending::{LendingState, OwnerCommand, OwnerReply, ReclaimRecord};
use gleaner_schemas::live::{Hello, HostState, Message, Owner, OwnerState, Sample, SignOfLife};
use gleaner_schemas::rows::SampleRow;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(crate) const MIB: u64 = 1 << 20;
/// Size of the memory that the tests lend.
pub(crate) const SIZE: u64 = 64 * MIB;
/// Interval between the steps of a gradual reclaim, each of which gives back one slab. It is so long that no
/// test sees the reclaim finish.
const SHRINK_EVERY: &str = "1m";
/// Maximum time of an immediate reclaim, which takes some milliseconds on an idle machine.
const AT_ONCE_US: u64 = 10_000_000;
const ALIVE_EVERY: Duration = Duration::from_millis(400);

/// Returns true if the error means that a read has timed out.
pub(crate) fn is_early(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// A folder with an agent's socket.
pub(crate) struct Host {
    folder: tempfile::TempDir,
    agents: UnixListener,
}

impl Host {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Other users must reach the owner's socket.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let agents = UnixListener::bind(folder.path().join("agent.sock")).unwrap();
        let host = Self { folder, agents };
        host.configure("");
        host
    }

    /// Writes a configuration: the lines that all tests need, and `more`.
    pub(crate) fn configure(&self, more: &str) {
        let slow = format!("shrink_step = \"2MiB\"\nshrink_every = \"{SHRINK_EVERY}\"\n");
        let text = format!("lock_pages = \"always\"\n{slow}{more}\n");
        std::fs::write(self.path("memoryd.toml"), text).unwrap();
    }

    /// Writes a configuration that consists only of `text`.
    pub(crate) fn write_configuration(&self, text: &str) {
        std::fs::write(self.path("memoryd.toml"), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a daemon that lends [`SIZE`], all of it written, after the first sample.
    pub(crate) fn daemon(&self) -> Daemon {
        self.daemon_with(&["--standalone", "64MiB", "--fill"])
    }

    /// Starts a daemon with these options of `run`.
    pub(crate) fn daemon_with(&self, options: &[&str]) -> Daemon {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner-memoryd"));
        for (option, file) in [
            ("--config", "memoryd.toml"),
            ("--agent-socket", "agent.sock"),
            ("--socket", "memoryd.sock"),
            ("--state-folder", "state"),
        ] {
            command.arg(option).arg(self.path(file));
        }
        command.arg("run").args(options);
        let daemon = Daemon {
            running: Running::start(&mut command),
            socket: self.path("memoryd.sock"),
        };
        wait_for_some("the owner's socket", || {
            UnixStream::connect(&daemon.socket).ok()
        });
        daemon
    }

    /// Accepts the daemon's next connection to the agent.
    pub(crate) fn agent(&self) -> Agent {
        let (stream, _) = self.agents.accept().unwrap();
        let mut agent = Agent { stream };
        agent.say(&Message::Hello(Hello::default()));
        agent
    }
}

/// Sample of a host that has `available_bytes` bytes available.
pub(crate) fn row(available_bytes: i64) -> SampleRow {
    SampleRow {
        physical_bytes: 16 << 30,
        available_bytes,
        mem_available_bytes: Some(available_bytes),
        ..SampleRow::default()
    }
}

/// Message with a sample of an idle host that has the figures in `row`.
pub(crate) fn idle(row: SampleRow) -> Message {
    let time_ms = now_ms();
    Message::Sample(Box::new(Sample {
        time_ms,
        state: HostState::Idle {
            since_time_ms: time_ms,
        },
        headroom_share: 0.0,
        row,
    }))
}

/// The agent's end of a connection.
pub(crate) struct Agent {
    pub(crate) stream: UnixStream,
}

impl Agent {
    pub(crate) fn say(&mut self, message: &Message) {
        assert!(self.try_say(message), "nobody listens to the agent");
    }

    /// Sends a message; returns false if the daemon no longer reads.
    pub(crate) fn try_say(&mut self, message: &Message) -> bool {
        let mut line = serde_json::to_vec(message).unwrap();
        line.push(b'\n');
        self.stream.write_all(&line).is_ok()
    }

    /// Sends a sample of an idle host with much available memory.
    pub(crate) fn sample(&mut self) {
        self.say(&idle(row(8 << 30)));
    }

    pub(crate) fn owner(&mut self, state: OwnerState, source: Option<&str>) {
        self.say(&Message::Owner(Owner {
            state,
            time_ms: now_ms(),
            source: source.map(str::to_owned),
            ..Owner::default()
        }));
    }

    pub(crate) fn alive(&mut self) {
        self.say(&Message::Alive(SignOfLife { time_ms: now_ms() }));
    }

    /// Sends a sign of life; returns false if the daemon no longer reads.
    pub(crate) fn try_alive(&mut self) -> bool {
        self.try_say(&Message::Alive(SignOfLife { time_ms: now_ms() }))
    }

    /// Sends signs of life in the background, until the daemon no longer reads them.
    pub(crate) fn stays(mut self) {
        std::thread::spawn(move || {
            while self.try_alive() {
                std::thread::sleep(ALIVE_EVERY);
            }
        });
    }

    /// Sends a sample, and waits until [`SIZE`] is lent and all of it is written.
    #[track_caller]
    pub(crate) fn lend(&mut self, daemon: &Daemon) -> LendingState {
        self.sample();
        wait_for_some("all of it lent and written", || {
            self.alive();
            let lending = daemon.status();
            (lending.resident_bytes >= SIZE).then_some(lending)
        })
    }
}

/// A running `gleaner-memoryd`.
pub(crate) struct Daemon {
    pub(crate) running: Running,
    socket: PathBuf,
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.running.id()
    }

    pub(crate) fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).unwrap()
    }

    /// Sends a command, and returns the reply.
    #[track_caller]
    pub(crate) fn ask(&self, command: OwnerCommand) -> OwnerReply {
        let mut stream = self.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut line = serde_json::to_vec(&command).unwrap();
        line.push(b'\n');
        stream.write_all(&line).unwrap();
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply).unwrap();
        serde_json::from_str(&reply).unwrap()
    }

    #[track_caller]
    pub(crate) fn lending(&self, command: OwnerCommand) -> LendingState {
        match self.ask(command) {
            OwnerReply::Lending(lending) => *lending,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn status(&self) -> LendingState {
        self.lending(OwnerCommand::Status)
    }

    #[track_caller]
    pub(crate) fn log(&self) -> Vec<ReclaimRecord> {
        match self.ask(OwnerCommand::Log) {
            OwnerReply::Log { reclaims } => reclaims,
            other => panic!("{other:?}"),
        }
    }

    /// Checks that all memory is given back, by the daemon's status and by the kernel's count of its memory.
    #[track_caller]
    pub(crate) fn has_reclaimed_all(&self, cause: &str, lines: usize) -> ReclaimRecord {
        let line = wait_for_some(cause, || {
            let log = self.log();
            (log.len() >= lines).then(|| log.last().cloned().unwrap())
        });
        assert_eq!((line.cause.as_str(), line.bytes), (cause, SIZE));
        assert_eq!((line.remaining_lent_bytes, line.peak_lent_bytes), (0, SIZE));
        assert!(
            0 < line.first_reclaim_us && line.first_reclaim_us <= line.full_reclaim_us,
            "{line:?}"
        );
        assert!(
            line.full_reclaim_us < AT_ONCE_US && line.steps_count == 1,
            "{line:?}"
        );
        assert_eq!(line.clients, ["standalone"]);
        let lending = self.status();
        assert_eq!((lending.resident_bytes, lending.leases.len()), (0, 0));
        assert_eq!(lending.quota.lent_bytes, 0);
        let resident_bytes = resident_bytes(self.pid());
        assert!(resident_bytes < SIZE / 2, "{resident_bytes}");
        line
    }

    /// Returns the figure in a line of /proc/PID/status, in bytes.
    pub(crate) fn bytes(&self, key: &str) -> u64 {
        bytes_at(&format!("/proc/{}/status", self.pid()), key)
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}
