//! Tests of `gleaner-clerk run` on real memory servers that are killed, stopped, disconnected, restarted
//! empty, or lying.

mod callers;
mod liar;

use crate::load::{Load, Outcome};
use gleaner_harness::{MemoryServer, Relay, Running, succeed, wait_for};
use gleaner_paging::nbd::client::Server;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Maximum time of a request: `request_timeout`, plus `answer_timeout`, plus the delay of a loaded machine.
const NO_HANG: Duration = Duration::from_secs(20);
const PAGES: usize = 8192;
const CLERK: &str = env!("CARGO_BIN_EXE_gleaner-clerk");

/// First bytes of a simple reply (NBD protocol, "Simple reply message").
const REPLY_MAGIC: [u8; 4] = 0x6744_6698_u32.to_be_bytes();

/// A memory server behind its own proxy.
struct Host {
    server: Option<MemoryServer>,
    relay: Relay,
}

impl Host {
    fn start() -> Self {
        let mut host = Self {
            server: None,
            relay: Relay::to(None),
        };
        host.start_again();
        host
    }

    fn kill(&mut self) {
        self.server = None;
        self.relay.cut();
    }

    /// Starts an empty server if no server runs.
    fn start_again(&mut self) {
        if self.server.is_none() {
            let server = MemoryServer::start("64MiB", "127.0.0.1:0");
            self.relay.lead_to(server.address());
            self.server = Some(server);
        }
    }

    /// Has the proxy change a byte now and then. The byte is always within a page that was read, never within
    /// the head of an answer.
    fn lies(&self) {
        let mut until_lie = 10_000;
        self.relay.alter(move |bytes| {
            let count = bytes.len();
            until_lie -= i64::try_from(count).unwrap();
            if until_lie < 0 && count > 2000 {
                bytes[count / 2] ^= 0x10;
                until_lie = 20_000;
            }
        });
    }

    /// Has the proxy insert forged answers before the server's own answers: one success for each of 64 small
    /// numbers. The clerk has sent this server no request with these numbers, but a request to the disk or to
    /// another server may have one of them.
    fn forges(&self) {
        let reply = |cookie: u64| {
            let success = 0_u32.to_be_bytes();
            [&REPLY_MAGIC[..], &success, &cookie.to_be_bytes()].concat()
        };
        let forged: Vec<u8> = (0..64).flat_map(reply).collect();
        self.relay.alter(move |bytes| {
            if bytes.starts_with(&REPLY_MAGIC) {
                bytes.splice(0..0, forged.iter().copied());
            }
        });
    }
}

/// A clerk, its servers, and its folder.
struct Clerk {
    running: Running,
    hosts: Vec<Host>,
    folder: TempDir,
}

impl Clerk {
    /// Starts a clerk, and waits until all its servers are connected.
    fn start(hosts: usize, more: &[&str], settings: &str) -> Self {
        let clerk = Self::start_with(hosts, more, settings);
        let all = clerk.hosts.len();
        wait_for("its servers", || up(&clerk.status()) == all);
        clerk
    }

    fn start_with(hosts: usize, more: &[&str], settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("clerk.toml"), settings).unwrap();
        let hosts: Vec<Host> = (0..hosts).map(|_| Host::start()).collect();
        let (config, device, status) = (at("clerk.toml"), at("clerk.sock"), at("status.sock"));
        let mut args = vec!["run", "--size", "32MiB", "--config", &config];
        args.extend(["--listen", &device, "--status-socket", &status]);
        let url = |host: &Host| format!("nbd://{}", host.relay.address);
        let urls: Vec<String> = hosts.iter().map(url).collect();
        args.extend(urls.iter().flat_map(|url| ["--server", url]));
        args.extend(more);
        let mut command = Command::new(CLERK);
        let running = Running::start(command.args(args).stdout(Stdio::piped()));
        running.printed();
        Self {
            running,
            hosts,
            folder,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("clerk.sock")
    }

    fn status(&self) -> Value {
        let status = self.folder.path().join("status.sock");
        let mut command = Command::new(CLERK);
        let said = succeed(
            command
                .args(["status", "--json", "--status-socket"])
                .arg(&status),
        );
        serde_json::from_str(&said).unwrap()
    }

    /// Runs several programs on the device while `while_doing` runs. Then reads every page once more.
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
            // If a load fails, the other loads must also be ended.
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

/// Number of connected servers.
fn up(status: &Value) -> usize {
    let servers = status["servers"].as_array().unwrap();
    let is_up = |server: &&Value| server["state"] == "up";
    servers.iter().filter(is_up).count()
}

/// Number of rounds of faults: few in CI; `make soak` sets more.
fn rounds() -> u64 {
    let set = std::env::var("GLEANER_KILL_ROUNDS").ok();
    set.and_then(|set| set.parse().ok()).unwrap_or(20)
}

/// Causes one fault at a random host for a while, and then ends it.
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
            let running = &host.server.as_ref().unwrap().running;
            running.signal(Signal::STOP);
            thread::sleep(for_a_while);
            running.signal(Signal::CONT);
            "stopped"
        }
        2 => {
            host.relay.hold(true);
            thread::sleep(for_a_while * 4);
            host.relay.hold(false);
            "partitioned"
        }
        4 => {
            host.forges();
            thread::sleep(for_a_while);
            host.relay.alter_nothing();
            "forging"
        }
        3 => {
            host.relay.cut();
            "cut"
        }
        _ => {
            host.lies();
            thread::sleep(for_a_while);
            host.relay.alter_nothing();
            "lying"
        }
    }
}

/// Returns the sum of the disconnections of all servers.
fn disconnects(status: &Value) -> u64 {
    let servers = status["servers"].as_array().unwrap();
    servers
        .iter()
        .filter_map(|server| server["disconnects_count"].as_u64())
        .sum()
}

#[test]
fn forged_answers_end_a_connection_and_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk").display().to_string();
    let mut clerk = Clerk::start(2, &["--disk-folder", &disk], QUICK);
    let outcome = clerk.under_load(23, |clerk| {
        clerk.hosts[0].forges();
        wait_for("the forger's connection to end", || {
            disconnects(&clerk.status()) > 0
        });
        clerk.hosts[0].relay.alter_nothing();
    });
    assert_eq!(outcome.errors, 0, "{outcome:?}");
    let counters = &clerk.status()["counters"];
    assert_eq!(counters["lost_pages_count"], 0, "{counters}");
}

const QUICK: &str = "answer_timeout = \"1s\"\nrequest_timeout = \"4s\"\n\
                     refraction_period = \"300ms\"\nlock_memory = false\n";

#[test]
fn with_a_copy_on_disk_no_fault_of_a_server_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk").display().to_string();
    let mut clerk = Clerk::start(2, &["--disk-folder", &disk], QUICK);
    let mut random = ChaCha8Rng::seed_from_u64(10);
    let outcome = clerk.under_load(11, |clerk| {
        for _ in 0..rounds() {
            let what = fault(&mut clerk.hosts, &mut random);
            eprintln!("{what}");
        }
    });
    eprintln!("{outcome:?}, {:#}", clerk.status()["counters"]);
    assert_eq!(outcome.errors, 0, "{outcome:?}");
    assert!(outcome.requests > 500, "{outcome:?}");
    let counters = &clerk.status()["counters"];
    let reads = counters["server_reads_count"].as_u64();
    assert!(reads > Some(100), "{counters}");
}

#[test]
fn with_two_copies_and_no_disk_one_server_at_a_time_can_go() {
    let mut clerk = Clerk::start(3, &["--disk-folder", "none", "--copies", "2"], QUICK);
    let mut random = ChaCha8Rng::seed_from_u64(20);
    let outcome = clerk.under_load(21, |clerk| {
        for _ in 0..rounds() / 2 {
            let at = random.next_u32() as usize % 3;
            let ended = |status: &Value| status["counters"]["disconnects_count"].as_u64();
            let before = ended(&clerk.status());
            if random.next_u32() % 2 == 0 {
                clerk.hosts[at].kill();
                clerk.hosts[at].start_again();
            } else {
                clerk.hosts[at].relay.cut();
            }
            // Each page that lost a copy gets a second copy again.
            wait_for("both copies", || {
                // All values come from one status. Just before the clerk notices the disconnection, no copy
                // counts as missing yet.
                let status = clerk.status();
                let has_all = status["has_all_copies"] == true;
                let is_noticed = ended(&status) > before;
                is_noticed && up(&status) == 3 && has_all
            });
        }
    });
    eprintln!("{outcome:?}, {:#}", clerk.status()["counters"]);
    assert_eq!(outcome.errors, 0, "{outcome:?}");
}

#[test]
fn one_copy_lost_is_an_error_at_once() {
    let mut clerk = Clerk::start(1, &["--disk-folder", "none"], QUICK);
    let outcome = clerk.under_load(31, |clerk| {
        wait_for("some pages", || {
            clerk.status()["stored_bytes"].as_u64() > Some(1 << 20)
        });
        clerk.hosts[0].kill();
        clerk.hosts[0].start_again();
        wait_for("an error", || {
            clerk.status()["counters"]["lost_pages_count"].as_u64() > Some(0)
        });
    });
    assert!(outcome.errors > 0);
    // Requests wait only as long as the server is unreachable.
    assert!(outcome.slowest < Duration::from_secs(6), "{outcome:?}");
}

#[test]
fn clients_of_others_see_a_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().display().to_string();
    let clerk = Clerk::start(2, &["--disk-folder", &disk], QUICK);
    let url = format!("nbd+unix:///?socket={}", clerk.socket().display());
    let run = |program: &str, args: &[&str]| succeed(Command::new(program).args(args));
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
    let counters = &clerk.status()["counters"];
    assert_eq!(counters["failed_requests_count"], 0, "{counters}");
    assert_eq!(clerk.running.end().0, Some(0));
}
