//! The running agent as its listeners see it: samples, the owner's return by every source, and the fate of
//! the socket.
//!
//! The agent's input devices are pipes; its terminals belong to this test. The order of messages shows
//! whether a return was announced immediately: otherwise it would follow the next sample.

use crate::activity::{ChildGuard, now_ms};
use crate::trace::signal;
use crate::{fail, program, succeed};
use gleaner_schemas::live::{Message, Owner, OwnerState, Sample};
use rusqlite::Connection;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs::{DirEntry, File, FileTimes};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// Timeout of a message.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Sample interval in tests where a return must precede the next sample.
const LONG: &str = "4s";

/// A host with one keyboard, at most one terminal and one user.
pub(crate) struct Host {
    dir: tempfile::TempDir,
    keyboard: File,
}

impl Host {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["dev/input", "dev/pts", "run/user/1000", "sys"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        std::fs::write(
            dir.path().join("agent.toml"),
            "return_watch_after = \"100ms\"\n",
        )
        .unwrap();
        let keyboard = plug_in(&dir.path().join("dev/input/event0"));
        Self { dir, keyboard }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn command(&self, interval: &str) -> Command {
        let mut command = program();
        for (option, name) in [
            ("--config", "agent.toml"),
            ("--database", "trace.db"),
            ("--socket", "agent.sock"),
            ("--dev-root", "dev"),
            ("--sys-root", "sys"),
            ("--run-root", "run"),
        ] {
            command.arg(option).arg(self.path(name));
        }
        command.args(["run", "--sample-interval", interval]);
        command
    }

    /// Starts an agent; returns it with a listener that was welcomed.
    fn start(&self, interval: &str) -> (ChildGuard, Listener) {
        let agent = ChildGuard(
            self.command(interval)
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let listener = Listener::connect(&self.path("agent.sock"));
        (agent, listener)
    }

    /// Presses one or two keys: writes an event of the kernel's form, whose code the agent must not read.
    pub(crate) fn press(&self) {
        write_event(&self.keyboard);
    }

    fn number(&self, sql: &str) -> i64 {
        let connection = Connection::open(self.path("trace.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Waits until a query of the trace returns true.
    fn wait_for(&self, sql: &str) {
        let begun = SystemTime::now();
        while self.number(sql) == 0 {
            assert!(begun.elapsed().unwrap() < DEADLINE, "never true: {sql}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Makes a device without events. The node gets its name once it is open for writing: otherwise a quick agent
/// would open a FIFO without a writer, and read its end.
fn plug_in(node: &Path) -> File {
    let made = node.parent().unwrap().with_file_name("made");
    mknodat(CWD, &made, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let device = File::options().read(true).write(true).open(&made).unwrap(); // both, so that it does not wait
    std::fs::rename(&made, node).unwrap();
    device
}

fn write_event(mut device: &File) {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let seconds = (now.as_secs() as i64).to_ne_bytes();
    let microseconds = i64::from(now.subsec_micros()).to_ne_bytes();
    let event = [seconds, microseconds, [0xee; 8]].concat();
    device.write_all(&event).unwrap();
}

pub(crate) struct Listener(pub(crate) BufReader<UnixStream>);

impl Listener {
    /// Connects as soon as there is an agent, and reads its hello.
    pub(crate) fn connect(socket: &Path) -> Self {
        let begun = SystemTime::now();
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(e) => assert!(begun.elapsed().unwrap() < DEADLINE, "no agent: {e}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut listener = Self(BufReader::new(stream));
        let hello = listener.next();
        assert!(matches!(hello, Message::Hello(hello) if hello.version == 1));
        listener
    }

    pub(crate) fn next(&mut self) -> Message {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    /// Returns the next sample or return, but no sign of life and nothing caused by a busy host's load.
    fn next_news(&mut self) -> Message {
        loop {
            match self.next() {
                Message::Owner(owner) if owner.absence_ms.is_none() => {}
                Message::Alive(_) => {}
                news => return news,
            }
        }
    }

    pub(crate) fn next_sample(&mut self) -> Sample {
        loop {
            if let Message::Sample(sample) = self.next() {
                return *sample;
            }
        }
    }

    /// Waits for a sample that finds the owner away: after it, the agent waits for the owner's return.
    pub(crate) fn until_away(&mut self) {
        while self
            .next_sample()
            .row
            .owner_idle_ms
            .is_none_or(|idle_ms| idle_ms < 100)
        {}
    }

    /// Expects the owner's return as the next message.
    pub(crate) fn returned_at_once(&mut self, source: &str) -> Owner {
        self.returned_at_once_after(source, 0)
    }

    /// Expects the owner's return. Before it, only samples until `since_ms` may come: until then the owner
    /// did nothing.
    fn returned_at_once_after(&mut self, source: &str, since_ms: i64) -> Owner {
        let owner = loop {
            match self.next_news() {
                Message::Owner(owner) => break owner,
                Message::Sample(sample) if sample.time_ms <= since_ms => {}
                message => panic!("not at once: {message:?}"),
            }
        };
        assert_eq!(owner.state, OwnerState::InUse);
        assert_eq!(owner.source.as_deref(), Some(source));
        assert!(owner.absence_ms >= Some(100), "{owner:?}");
        owner
    }

    /// Waits for the next sample; there must be no return before it.
    fn nobody_returns(&mut self) {
        let message = self.next_news();
        assert!(matches!(message, Message::Sample(_)), "{message:?}");
    }
}

#[test]
fn a_key_press_and_a_device_plugged_in_are_told_at_once() {
    let host = Host::new();
    let (_agent, mut listener) = host.start(LONG);
    listener.until_away();
    let pressed_ms = now_ms();
    host.press();
    let owner = listener.returned_at_once("input");
    assert!(
        (pressed_ms..=now_ms()).contains(&owner.time_ms),
        "{pressed_ms} {owner:?}"
    );
    host.wait_for("SELECT count(*) FROM events WHERE kind = 'owner_returned' AND detail = 'input'");
    let away = format!(
        "SELECT count(*) FROM events WHERE duration_ms = {}",
        owner.absence_ms.unwrap()
    );
    assert_eq!(host.number(&away), 1);

    host.press(); // the owner is present: nothing is announced until they were away again
    listener.nobody_returns();
    listener.until_away();
    let other = plug_in(&host.path("dev/input/event1"));
    write_event(&other);
    listener.returned_at_once("input");
}

/// A device whose other end is closed can be read for ever, and gives nothing.
#[test]
fn a_device_that_has_ended_neither_wakes_for_ever_nor_hides_the_others() {
    let host = Host::new();
    drop(plug_in(&host.path("dev/input/event1")));
    let broken = plug_in(&host.path("dev/input/event2"));
    let (agent, mut listener) = host.start(LONG);
    listener.until_away();
    let cpu_ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", agent.0.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    drop(broken);
    // In a whole interval of 4 s (400 ticks) the agent could spin; a sample takes a few ticks.
    let before = cpu_ticks();
    listener.nobody_returns();
    let spent = cpu_ticks() - before;
    assert!(spent < 100, "{spent} ticks of 400");
    host.press();
    listener.returned_at_once("input");
}

/// Typing must be announced on a pseudo-terminal that controls processes, such as those of sshd and of
/// terminal windows.
#[test]
fn typing_is_told_at_once_and_what_a_program_shows_is_not() {
    let host = Host::new();
    let mut remote = Command::new("script")
        .args(["-qfc", "tty; exec cat", "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = remote.stdin.take().unwrap();
    let mut screen = BufReader::new(remote.stdout.take().unwrap());
    let _remote = ChildGuard(remote);
    let mut line = String::new();
    screen.read_line(&mut line).unwrap();
    let terminal = Path::new(line.trim());
    let node = host.path("dev/pts").join(terminal.file_name().unwrap());
    symlink(terminal, node).unwrap();
    let accessed = FileTimes::new().set_accessed(SystemTime::now() - Duration::from_secs(3600));
    let node = File::options().write(true).open(terminal).unwrap();
    node.set_times(accessed).unwrap();

    let (_agent, mut listener) = host.start(LONG);
    listener.until_away();
    (&node).write_all(b"shown\n").unwrap();
    line.clear();
    screen.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "shown");
    listener.nobody_returns();
    keyboard.write_all(b"typed\n").unwrap();
    // The terminal shows the typed line; then `cat`, which has read the line, prints it. On a busy host this
    // may take longer than a sample.
    for _ in 0..2 {
        line.clear();
        screen.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "typed");
    }
    listener.returned_at_once_after("terminal", now_ms());
}

#[test]
fn a_reporters_news_is_told_at_once_and_its_repetition_is_not() {
    let host = Host::new();
    let report = File::create(host.path("run/user/1000/gleaner-session")).unwrap();
    let active = |time| {
        report
            .set_times(FileTimes::new().set_modified(time))
            .unwrap()
    };
    let long_ago = SystemTime::now() - Duration::from_secs(600);
    active(long_ago);
    let (_agent, mut listener) = host.start(LONG);
    listener.until_away();
    active(long_ago + Duration::from_millis(3)); // the same moment, computed again
    listener.nobody_returns();
    active(SystemTime::now());
    listener.returned_at_once("session");
}

/// Scheduling policies of a process' threads by name (proc_pid_stat(5), field 41): 0 is normal, 2 is SCHED_RR.
fn policies(pid: u32) -> BTreeMap<String, u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let policy = |thread: DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap();
        let (name, after_name) = stat.rsplit_once(')').unwrap();
        let (_, name) = name.split_once('(').unwrap();
        // The name is field 2, so the words after it begin with field 3.
        let policy = after_name.split_whitespace().nth(41 - 3).unwrap();
        (name.to_owned(), policy.parse().unwrap())
    };
    threads.map(|thread| policy(thread.unwrap())).collect()
}

#[test]
fn it_watches_at_real_time_priority_where_it_may_and_samples_at_the_normal_one() {
    let host = Host::new();
    let (agent, mut listener) = host.start("200ms");
    // Root may raise the priority. Without that right the agent watches at normal priority.
    let is_root = rustix::process::geteuid().is_root();
    for _ in 0..3 {
        let threads = [
            ("gleaner-agent".to_owned(), 0),
            ("watcher".to_owned(), if is_root { 2 } else { 0 }),
        ];
        assert_eq!(policies(agent.0.id()), BTreeMap::from(threads));
        listener.next_sample();
    }
}

#[test]
fn listeners_hear_signs_of_life_and_the_end_however_it_comes() {
    let host = Host::new();
    let (mut first, mut listener) = host.start("200ms");
    let sample = listener.next_sample();
    assert!(sample.row.physical_bytes > 0 && sample.headroom_share == 0.15);
    while !matches!(listener.next(), Message::Alive(_)) {}
    let mut late = Listener::connect(&host.path("agent.sock"));
    assert!(matches!(late.next(), Message::Sample(_))); // the last sample, without waiting
    assert!(matches!(late.next(), Message::Owner(_)));

    // Another agent cannot take the socket, but traces nevertheless.
    let elsewhere = host.path("other.db");
    let mut other = host.command("200ms");
    let said = other
        .args(["--samples", "1", "--database"])
        .arg(elsewhere)
        .output()
        .unwrap();
    let message = String::from_utf8(said.stderr).unwrap();
    assert!(said.status.success(), "{message}");
    assert!(
        message.contains("another gleaner-agent listens there"),
        "{message}"
    );
    listener.next_sample();

    first.0.kill().unwrap(); // SIGKILL
    first.0.wait().unwrap();
    let mut rest = Vec::new();
    listener.0.read_to_end(&mut rest).unwrap();
    assert!(host.path("agent.sock").exists());
    let (mut second, mut listener) = host.start("200ms"); // replaces the dead agent's socket
    listener.next_sample();
    signal(&second.0, Signal::TERM);
    assert!(second.0.wait().unwrap().success());
    listener.0.read_to_end(&mut rest).unwrap();
    assert!(!host.path("agent.sock").exists());
}

#[test]
fn a_host_without_a_place_for_the_socket_is_traced_all_the_same() {
    let host = Host::new();
    std::fs::write(host.path("agent.sock"), "in the way").unwrap();
    let run = host
        .command("200ms")
        .args(["--samples", "1"])
        .output()
        .unwrap();
    let message = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.success(), "{message}");
    assert!(message.contains("cannot open the socket"), "{message}");
    assert_eq!(host.number("SELECT count(*) FROM samples"), 1);
}

#[test]
fn watch_prints_for_people_and_programs_and_tells_of_silence() {
    let host = Host::new();
    let (watched, mut listener) = host.start("200ms");
    let watch = |json: &[&str]| {
        let mut command = program();
        command
            .args(["watch", "--socket"])
            .arg(host.path("agent.sock"))
            .args(json);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        (ChildGuard(child), lines)
    };
    let until = |lines: &mut BufReader<_>, words: &str| {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "no {words}");
        }
        line
    };
    let (mut people, mut for_people) = watch(&[]);
    let (mut programs, mut for_programs) = watch(&["--json"]);
    until(&mut for_people, "harvestable");
    assert!(until(&mut for_people, "sample").contains("GiB"));
    let line = until(&mut for_programs, "\"sample\"");
    assert!(matches!(
        serde_json::from_str(&line),
        Ok(Message::Sample(_))
    ));
    listener.until_away();
    host.press();
    until(&mut for_people, "(input)");

    signal(&watched.0, Signal::STOP);
    until(&mut for_people, "silent for 3 s");
    signal(&watched.0, Signal::CONT);
    host.wait_for(
        "SELECT count(*) FROM events WHERE kind = 'missed_sample' AND duration_ms >= 2000",
    );
    drop(watched);
    for child in [&mut people.0, &mut programs.0] {
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
    let (code, message) = fail(program().args(["watch", "--socket"]).arg(host.path("none")));
    assert!(
        code == 1 && message.contains("`gleaner-agent run`"),
        "{message}"
    );
}

#[test]
fn starts_stops_and_one_boot_are_events() {
    let host = Host::new();
    succeed(host.command("100ms").args(["--samples", "1"]));
    let (mut agent, mut listener) = host.start("100ms");
    listener.next_sample();
    signal(&agent.0, Signal::INT);
    assert!(agent.0.wait().unwrap().success());
    let connection = Connection::open(host.path("trace.db")).unwrap();
    let events: Vec<(String, Option<String>)> = connection
        .prepare("SELECT kind, detail FROM events WHERE kind IN ('boot', 'agent_start', 'agent_stop') ORDER BY sequence")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let brief: Vec<_> = events
        .iter()
        .map(|(kind, detail)| (kind.as_str(), detail.as_deref()))
        .collect();
    let start = ("agent_start", Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(brief[0].0, "boot");
    assert_eq!(
        brief[1..],
        [
            start,
            ("agent_stop", Some("all samples taken")),
            start,
            ("agent_stop", Some("SIGINT"))
        ]
    );
    let booted = "SELECT abs((SELECT time_ms - boottime_ms FROM samples ORDER BY sequence LIMIT 1) - time_ms) < 1000 \
         FROM events WHERE kind = 'boot'";
    assert_eq!(host.number(booted), 1);
}
