//! `gleaner top` on a terminal, in a pipe and as JSON, with a real agent and a real collector.

use gleaner_harness::{Running, succeed, wait_for, wait_for_some};
use gleaner_tests::program;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time limit until expected words are on the screen.
const DEADLINE: Duration = Duration::from_secs(90);

/// The running program `gleaner top`; it is killed when dropped.
struct Top(Child);

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn top(args: &[&str]) -> Command {
    let mut command = Command::new(program("gleaner").unwrap());
    command.arg("top").args(args);
    for name in ["NO_COLOR", "COLORTERM", "COLORFGBG", "COLUMNS", "LC_ALL"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    command
}

/// A terminal of 80 columns and 24 lines on which `gleaner top` runs.
struct Terminal {
    top: Top,
    keyboard: File,
    /// The terminal stays open, so that its modes can be read after the program has ended.
    line: File,
    screen: Arc<Mutex<vt100::Parser>>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn show(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = PathBuf::from(name.to_str().unwrap());
        let open = || File::options().read(true).write(true).open(&path).unwrap();
        let line = open();
        command.stdin(open()).stdout(open()).stderr(open());
        let top = Top(command.spawn().unwrap());
        let screen = Arc::new(Mutex::new(vt100::Parser::new(
            24.try_into().unwrap(),
            80.try_into().unwrap(),
            0,
        )));
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut reader = File::from(master);
        let keyboard = reader.try_clone().unwrap();
        let shown = (Arc::clone(&screen), Arc::clone(&written));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                shown.0.lock().unwrap().process(&bytes[..count]);
                shown.1.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self {
            top,
            keyboard,
            line,
            screen,
            written,
        }
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until the text on the screen satisfies `is_so`.
    #[track_caller]
    fn wait_for(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        loop {
            let text = self.text();
            if is_so(&text) {
                return;
            }
            assert!(begin.elapsed() < DEADLINE, "no {what}:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until all these words are on the screen together: the screen may be read while a frame is drawn.
    #[track_caller]
    fn wait_for_words(&self, words: &[&str]) {
        self.wait_for(&format!("{words:?}"), |text| {
            words.iter().all(|word| text.contains(word))
        });
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until the program ends, and asserts that the terminal was restored.
    fn ends(&mut self) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.top.0.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < DEADLINE, "goes on:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{status}: {}", self.text());
        let modes = tcgetattr(&self.line).unwrap().local_modes;
        assert!(
            modes.contains(LocalModes::ICANON | LocalModes::ECHO),
            "{modes:?}"
        );
        self.wait_for("screen given back", |_| {
            let written = self.written();
            written.contains("\u{1b}[?1049l") && written.contains("\u{1b}[?25h")
        });
    }
}

/// Starts an agent that samples this host, but finds no input devices.
fn agent(folder: &Path) -> Running {
    for name in ["dev", "run"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    std::fs::write(folder.join("agent.toml"), "").unwrap();
    let mut command = Command::new(program("gleaner-agent").unwrap());
    for (option, name) in [
        ("--config", "agent.toml"),
        ("--database", "trace.db"),
        ("--socket", "agent.sock"),
        ("--dev-root", "dev"),
        ("--run-root", "run"),
    ] {
        command.arg(option).arg(folder.join(name));
    }
    Running::start(command.args(["run", "--sample-interval", "1s"]))
}

/// Starts a collector; also returns its URL.
fn collector(folder: &Path) -> (Running, String) {
    let config = folder.join("collector.toml");
    let data = folder.join("data");
    let text =
        format!("data_folder = {data:?}\nlocal_listen = \"127.0.0.1:0\"\nlocal_access = \"all\"\n");
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(program("gleaner-collector").unwrap());
    let running = Running::start(command.arg("run").arg("--config").arg(config));
    let line = running.hear("listening on http://");
    let url = line.rsplit(' ').next().unwrap().to_owned();
    (running, url)
}

fn post_hosts(url: &str, count: &str) {
    succeed(Command::new(program("examples/hosts").unwrap()).args([url, count]));
}

fn once(args: &[&str]) -> Output {
    top(args).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn this_host_is_watched_and_the_terminal_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let agent = agent(folder.path());
    let socket = folder.path().join("agent.sock");
    let args = ["--socket", socket.to_str().unwrap(), "--interval", "200ms"];
    let mut terminal = Terminal::show(top(&args));
    terminal.wait_for_words(&[
        "Owner",
        "Quota",
        "Last sample",
        "static kernel",
        "available",
        "harvestable",
        "MemAvailable",
        " to ", // range of a history
    ]);
    // Without input devices, the agent cannot see whether the owner is present.
    terminal.wait_for("owner", |text| {
        text.contains("unknown, counts as in use") || text.contains("loaded")
    });
    assert!(terminal.written().contains("\u{1b}[38;5;"), "no colours");
    terminal.press("?");
    terminal.wait_for_words(&["any key: back"]);
    terminal.press("x");
    terminal.wait_for_words(&["Last sample"]);
    agent.end();
    terminal.wait_for_words(&["No agent answers", "page cache"]);
    let _agent = self::agent(folder.path());
    terminal.wait_for_words(&["Last sample"]);
    terminal.press("q");
    terminal.ends();
}

#[test]
fn a_signal_and_ctrl_c_end_it_as_q_does() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent.sock");
    let args = ["--socket", socket.to_str().unwrap()];
    let mut terminal = Terminal::show(top(&args));
    terminal.wait_for_words(&["No agent answers"]);
    kill_process(Pid::from_child(&terminal.top.0), Signal::TERM).unwrap();
    terminal.ends();
    let mut command = top(&args);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::show(command);
    terminal.wait_for_words(&["MemAvailable"]);
    terminal.press("\u{3}");
    terminal.ends();
    let written = terminal.written();
    assert!(!written.contains("\u{1b}[38;"), "{written:?}");
}

#[test]
fn a_cluster_is_watched_sorted_filtered_and_scrolled() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, url) = collector(folder.path());
    let args = ["--collector", url.as_str(), "--interval", "200ms"];
    let mut terminal = Terminal::show(top(&args));
    terminal.wait_for_words(&["no hosts yet"]);
    post_hosts(&url, "60");
    terminal.wait_for_words(&[
        "60 hosts: 57 well, 3 clock wrong",
        "quota",
        "HOST↓",
        "host-00001",
    ]);
    terminal.press("\u{1b}[F"); // key End
    terminal.wait_for_words(&["host-00060"]);
    terminal.press("\u{1b}[H\u{1b}[C\u{1b}[C"); // keys Home, right, right
    // The third host and every fourth after it have 64 GiB, the most. Of their names, that of the third host
    // sorts first.
    terminal.wait_for_words(&["MEMORY↓", "<b>otter"]);
    terminal.press("/host-0004");
    terminal.wait_for("ten hosts", |text| {
        text.contains("filter: host-0004_") && text.contains("of 10")
    });
    terminal.press("\r");
    terminal.wait_for("filter kept", |text| text.contains("/ filter: host-0004"));
    terminal.press("i");
    terminal.wait_for("idle ones alone", |text| {
        text.contains("/ filter: idle") && text.contains(" idle ") && !text.contains(" loaded ")
    });
    drop(collector);
    // After the collector has ended, its last figures stay on the screen.
    terminal.wait_for_words(&["does not answer", " idle "]);
    terminal.press("q");
    terminal.ends();
}

#[test]
fn what_a_real_agent_ships_is_what_the_cluster_shows() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program("gleaner").unwrap());
    command.args(["collect", "--local", "--sample-interval", "200ms"]);
    command.args(["--status-listen", "127.0.0.1:0", "--output"]);
    let running = Running::start(command.arg(folder.path()));
    let line = running.hear("status at");
    let url = line[line.find("http://").unwrap()..].trim_end_matches('/');
    let document = wait_for_some("the host", || {
        let output = once(&["--collector", url, "--json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (document["totals"]["hosts_count"] == 1).then_some(document)
    });
    let sample = &document["hosts"][0]["sample"];
    let bytes = |name: &str| {
        sample[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {sample}"))
    };
    let parts = [
        "kernel_bytes",
        "process_bytes",
        "file_cache_bytes",
        "guest_bytes",
        "available_bytes",
    ];
    assert_eq!(
        parts.map(bytes).iter().sum::<u64>(),
        bytes("physical_bytes")
    );
    assert!(bytes("harvestable_bytes") <= bytes("available_bytes"));
    let output = once(&["--collector", url, "--once"]);
    let frame = stdout(&output);
    let name = document["hosts"][0]["host_name"].as_str().unwrap();
    assert!(
        frame.contains("1 host: 1 well") && frame.contains(name),
        "{frame}"
    );
    assert_eq!(running.end().0, Some(0));
}

/// Starts a recruiter; also returns its URL.
fn recruiter(folder: &Path) -> (Running, String) {
    let config = folder.join("recruiter.toml");
    std::fs::write(&config, "local_listen = \"127.0.0.1:0\"\n").unwrap();
    let mut command = Command::new(program("gleaner-recruiter").unwrap());
    let running = Running::start(command.arg("run").arg("--config").arg(config));
    let line = running.hear("listening on http://");
    let url = line.rsplit(' ').next().unwrap().to_owned();
    (running, url)
}

#[test]
fn commonses_of_a_recruiter_are_shown_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (_collector, url) = collector(folder.path());
    post_hosts(&url, "3");
    let (recruiter, of_recruiter) = recruiter(folder.path());
    let args = ["--collector", url.as_str(), "--recruiter", &of_recruiter];
    let output = once(&[&args[..], &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["commonses"], Value::Array(Vec::new()));
    let mut terminal = Terminal::show(top(&[&args[..], &["--interval", "200ms"]].concat()));
    terminal.wait_for_words(&["no commons has members", "host-00001"]);
    drop(recruiter);
    terminal.wait_for_words(&["the recruiter at", "does not answer", "host-00001"]);
    terminal.press("q");
    terminal.ends();
    let output = once(&[&args[..], &["--once"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&of_recruiter), "{said}");
}

#[test]
fn one_frame_for_pipes_and_one_document_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let agent = agent(folder.path());
    let path = folder.path().join("agent.sock");
    wait_for("the agent's socket", || path.exists());
    let socket = path.to_str().unwrap();
    for args in [&["--socket", socket, "--once"][..], &["--socket", socket]] {
        let output = once(args);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let frame = stdout(&output);
        assert!(
            frame.contains("Last sample") && !frame.contains('\u{1b}'),
            "{frame}"
        );
    }
    let narrow = top(&["--socket", socket])
        .env("COLUMNS", "40")
        .output()
        .unwrap();
    let narrow = stdout(&narrow);
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 40),
        "{narrow}"
    );
    let ascii = top(&["--socket", socket])
        .env("LANG", "C")
        .output()
        .unwrap();
    assert!(ascii.stdout.is_ascii(), "{}", stdout(&ascii));
    let document: Value =
        serde_json::from_slice(&once(&["--socket", socket, "--json"]).stdout).unwrap();
    assert_eq!(document["agent"]["sample_interval_ms"], 1000);
    let available = document["sample"]["available_bytes"].as_i64().unwrap();
    assert!(
        available > 0 && document["quota"]["reason"].is_string(),
        "{document}"
    );
    assert!(document["kernel"]["mem_available_bytes"].as_u64().unwrap() > 0);
    drop(agent);

    // If no agent runs, the figures of the kernel are shown. The exit code says that the others are missing.
    let output = once(&["--socket", socket, "--once"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("MemAvailable"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.starts_with("gleaner: no agent answers") && said.contains(socket),
        "{said}"
    );
    assert!(said.contains("gleaner-agent run"), "{said}");
    let output = once(&["--collector", "http://127.0.0.1:1", "--json"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("the collector at http://127.0.0.1:1 does not answer"),
        "{said}"
    );
    for wrong in [
        &["--recruiter", "http://127.0.0.1:1", "--socket", "x"][..],
        &["--cluster", "--socket", "x"],
        &["--once", "--json"],
        &["--interval", "1ms"],
    ] {
        assert_eq!(once(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
