//! `gleaner-clerk serve` on real memory servers that are killed, stopped, cut off, started empty, and that lie.

mod callers;
mod liar;
mod relay;

use crate::host::wait_for;
use crate::load::{Load, Outcome};
use gleaner_paging::nbd::client::Server;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use relay::{Mood, Relay};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// What a request may take at most: `give_up_after`, `answer_within`, and what a loaded machine adds.
const NO_HANG: Duration = Duration::from_secs(20);
const PAGES: usize = 8192;

/// A program that says its address first; ended with the value.
struct Program {
    child: Child,
    said: String,
}

impl Program {
    fn start(program: &str, args: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut said).unwrap();
        assert!(!said.is_empty(), "{program} {args:?} did not begin");
        Self {
            child,
            said: said.trim().to_owned(),
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A memory server, behind a network of its own.
struct Host {
    program: Option<Program>,
    relay: Relay,
}

fn memory_server() -> Program {
    let memoryd = env!("CARGO_BIN_EXE_gleaner-memoryd");
    Program::start(
        memoryd,
        &["serve", "--standalone", "64MiB", "--listen", "127.0.0.1:0"],
    )
}

impl Host {
    fn start() -> Self {
        let program = memory_server();
        let relay = Relay::start(program.said.trim_start_matches("nbd://"));
        Self {
            program: Some(program),
            relay,
        }
    }

    fn kill(&mut self) {
        self.program = None;
        self.relay.cut();
    }

    /// Empty.
    fn start_again(&mut self) {
        if self.program.is_none() {
            let program = memory_server();
            self.relay
                .redirect(program.said.trim_start_matches("nbd://"));
            self.program = Some(program);
        }
    }
}

/// A clerk, its servers, and its folder.
struct Clerk {
    program: Program,
    hosts: Vec<Host>,
    folder: TempDir,
}

impl Clerk {
    /// Starts a clerk, and waits until all its servers are connected.
    fn start(hosts: usize, more: &[&str], settings: &str) -> Self {
        let clerk = Self::start_with(hosts, more, settings);
        let all = clerk.hosts.len();
        wait_for("its servers", || (up(&clerk.status()) == all).then_some(()));
        clerk
    }

    fn start_with(hosts: usize, more: &[&str], settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("clerk.toml"), settings).unwrap();
        let hosts: Vec<Host> = (0..hosts).map(|_| Host::start()).collect();
        let (config, device, status) = (at("clerk.toml"), at("clerk.sock"), at("status.sock"));
        let mut args = vec!["serve", "--size", "32MiB", "--config", &config];
        args.extend(["--listen", &device, "--status", &status]);
        for host in &hosts {
            args.extend(["--server", &host.relay.url]);
        }
        args.extend(more);
        let program = Program::start(env!("CARGO_BIN_EXE_gleaner-clerk"), &args);
        Self {
            program,
            hosts,
            folder,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("clerk.sock")
    }

    fn status(&self) -> Value {
        let status = self.folder.path().join("status.sock");
        let ended = Command::new(env!("CARGO_BIN_EXE_gleaner-clerk"))
            .args(["status", "--json", "--status"])
            .arg(&status)
            .output()
            .unwrap();
        serde_json::from_slice(&ended.stdout).unwrap()
    }

    /// Several programs use it, as long as `while_doing` takes; then everything is read once more.
    fn under_load(&mut self, seed: u64, while_doing: impl FnOnce(&mut Self)) -> Outcome {
        let has_ended = AtomicBool::new(false);
        let socket = self.socket();
        let outcomes = thread::scope(|scope| {
            let (has_ended, socket): (&AtomicBool, &Path) = (&has_ended, &socket);
            let run = |number: u64| {
                move || {
                    let own = (number * (PAGES / 4) as u64, PAGES / 4);
                    let device = Server::Unix(socket.to_owned());
                    let mut load = Load::new((&device, ""), own, seed ^ number, NO_HANG);
                    while !has_ended.load(Ordering::Relaxed) {
                        load.step();
                    }
                    load.check_all();
                    load.outcome
                }
            };
            let loads: Vec<_> = (0..4).map(|number| scope.spawn(run(number))).collect();
            // A load that failed must not leave the others running.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| while_doing(self)));
            has_ended.store(true, Ordering::Relaxed);
            let outcomes: Vec<Outcome> =
                loads.into_iter().map(|load| load.join().unwrap()).collect();
            done.unwrap();
            outcomes
        });
        Outcome {
            requests: outcomes.iter().map(|one| one.requests).sum(),
            errors: outcomes.iter().map(|one| one.errors).sum(),
            slowest: outcomes.iter().map(|one| one.slowest).max().unwrap(),
        }
    }
}

/// Servers that are connected.
fn up(status: &Value) -> usize {
    let servers = status["servers"].as_array().unwrap();
    let is_up = |server: &&Value| server["standing"] == "up";
    servers.iter().filter(is_up).count()
}

/// In CI; `make soak` sets more.
fn rounds() -> u64 {
    let set = std::env::var("GLEANER_KILL_ROUNDS").ok();
    set.and_then(|set| set.parse().ok()).unwrap_or(20)
}

/// One fault at some host, for a while, and its end.
fn fault(hosts: &mut [Host], random: &mut ChaCha8Rng) -> &'static str {
    let at = random.next_u32() as usize % hosts.len();
    let host = &mut hosts[at];
    let for_a_while = Duration::from_millis(u64::from(50 + random.next_u32() % 700));
    match random.next_u32() % 6 {
        0 => {
            host.kill();
            thread::sleep(for_a_while);
            host.start_again();
            "killed, and started empty"
        }
        1 => {
            let program = host.program.as_ref().unwrap();
            program.signal(Signal::STOP);
            thread::sleep(for_a_while);
            program.signal(Signal::CONT);
            "stopped"
        }
        2 => {
            host.relay.set(Mood::Partitioned);
            thread::sleep(for_a_while * 4);
            host.relay.set(Mood::Well);
            "partitioned"
        }
        4 => {
            host.relay.set(Mood::Forging);
            thread::sleep(for_a_while);
            host.relay.set(Mood::Well);
            "forging"
        }
        3 => {
            host.relay.cut();
            "cut"
        }
        _ => {
            host.relay.set(Mood::Lying);
            thread::sleep(for_a_while);
            host.relay.set(Mood::Well);
            "lying"
        }
    }
}

/// Sum over the servers.
fn disconnects(status: &Value) -> u64 {
    let servers = status["servers"].as_array().unwrap();
    servers
        .iter()
        .filter_map(|server| server["disconnects"].as_u64())
        .sum()
}

#[test]
fn forged_answers_end_a_connection_and_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk").display().to_string();
    let mut clerk = Clerk::start(2, &["--disk", &disk], QUICK);
    let outcome = clerk.under_load(23, |clerk| {
        clerk.hosts[0].relay.set(Mood::Forging);
        wait_for("the forger's connection to end", || {
            (disconnects(&clerk.status()) > 0).then_some(())
        });
        clerk.hosts[0].relay.set(Mood::Well);
    });
    assert_eq!(outcome.errors, 0, "{outcome:?}");
    let pages = &clerk.status()["pages"];
    assert_eq!(pages["lost"], 0, "{pages}");
}

const QUICK: &str =
    "answer_within = \"1s\"\ngive_up_after = \"4s\"\nrefraction = \"300ms\"\nlock = false\n";

#[test]
fn with_a_copy_on_disk_no_fault_of_a_server_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk").display().to_string();
    let mut clerk = Clerk::start(2, &["--disk", &disk], QUICK);
    let mut random = ChaCha8Rng::seed_from_u64(10);
    let outcome = clerk.under_load(11, |clerk| {
        for _ in 0..rounds() {
            let what = fault(&mut clerk.hosts, &mut random);
            eprintln!("{what}");
        }
    });
    eprintln!("{outcome:?}, {:#}", clerk.status()["pages"]);
    assert_eq!(outcome.errors, 0, "{outcome:?}");
    assert!(outcome.requests > 500, "{outcome:?}");
    let pages = &clerk.status()["pages"];
    assert!(pages["from_servers"].as_u64() > Some(100), "{pages}");
}

#[test]
fn with_two_copies_and_no_disk_one_server_at_a_time_can_go() {
    let mut clerk = Clerk::start(3, &["--disk", "none", "--copies", "2"], QUICK);
    let mut random = ChaCha8Rng::seed_from_u64(20);
    let outcome = clerk.under_load(21, |clerk| {
        for _ in 0..rounds() / 2 {
            let at = random.next_u32() as usize % 3;
            let ended = |status: &Value| status["pages"]["disconnects"].as_u64();
            let before = ended(&clerk.status());
            if random.next_u32() % 2 == 0 {
                clerk.hosts[at].kill();
                clerk.hosts[at].start_again();
            } else {
                clerk.hosts[at].relay.cut();
            }
            // What lost a copy has two again.
            wait_for("both copies", || {
                // All of one moment: a moment before the end is noticed, nothing is missing yet.
                let status = clerk.status();
                let has_all = status["has_all_copies"] == true;
                let is_noticed = ended(&status) > before;
                (is_noticed && up(&status) == 3 && has_all).then_some(())
            });
        }
    });
    eprintln!("{outcome:?}, {:#}", clerk.status()["pages"]);
    assert_eq!(outcome.errors, 0, "{outcome:?}");
}

#[test]
fn one_copy_lost_is_an_error_at_once() {
    let mut clerk = Clerk::start(1, &["--disk", "none"], QUICK);
    let outcome = clerk.under_load(31, |clerk| {
        wait_for("some pages", || {
            (clerk.status()["stored_bytes"].as_u64() > Some(1 << 20)).then_some(())
        });
        clerk.hosts[0].kill();
        clerk.hosts[0].start_again();
        wait_for("an error", || {
            (clerk.status()["pages"]["lost"].as_u64() > Some(0)).then_some(())
        });
    });
    assert!(outcome.errors > 0);
    // As long as the server was away, and not longer.
    assert!(outcome.slowest < Duration::from_secs(6), "{outcome:?}");
}

#[test]
fn clients_of_others_see_a_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().display().to_string();
    let clerk = Clerk::start(2, &["--disk", &disk], QUICK);
    let url = format!("nbd+unix:///?socket={}", clerk.socket().display());
    let run = |program: &str, args: &[&str]| {
        let ended = Command::new(program).args(args).output();
        let ended = ended.unwrap_or_else(|e| panic!("{program}: {e}; `make setup` installs it"));
        let said = [ended.stdout, ended.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(ended.status.success(), "{program} {args:?}: {said}");
        said
    };
    assert!(run("nbdinfo", &["--size", &url]).contains("33554432"));
    let verify = [
        "--name=verify",
        "--ioengine=nbd",
        "--rw=randwrite",
        "--bsrange=512-64k",
        "--size=16M",
        "--iodepth=16",
        "--verify=crc32c",
        "--do_verify=1",
        "--verify_state_save=0",
        "--randrepeat=0",
    ];
    let uri = format!("--uri={url}");
    let said = run("fio", &[&verify[..], &[&uri]].concat());
    assert!(said.contains("err= 0"), "{said}");
    run(
        "qemu-io",
        &[
            "-f",
            "raw",
            "-c",
            "write -P 7 1000 100000",
            "-c",
            "read -P 7 1000 100000",
            "-c",
            "discard 0 1M",
            "-c",
            "read -P 0 0 1M",
            "-c",
            "write -z 4096 8192",
            "-c",
            "flush",
            &url,
        ],
    );
    let original = folder.path().join("image");
    std::fs::write(&original, vec![9; 32 << 20]).unwrap();
    let copy = folder.path().join("copy");
    run("nbdcopy", &[&original.display().to_string(), &url]);
    run("nbdcopy", &[&url, &copy.display().to_string()]);
    assert!(std::fs::read(&copy).unwrap() == std::fs::read(&original).unwrap());
    let pages = &clerk.status()["pages"];
    assert_eq!(pages["failed"], 0, "{pages}");
    clerk.program.signal(Signal::TERM);
}
