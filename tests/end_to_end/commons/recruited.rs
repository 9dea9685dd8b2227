//! Hosts whose members a recruiter lists: real services, memory servers and a recruiter with certificates, on
//! loopback addresses. The owners' agents are the test's.

use super::mounted::assert_equal;
use super::server::{Manner, Server};
use super::stage::{BLOCK, Stage, commons, unmount};
use crate::lending::agent::Agent;
use gleaner_harness::{Random, Running, program, succeed, unused_address, wait_for};
use gleaner_trust::{Authority, Role};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use tempfile::TempDir;

const LARGE: &str = "lib/deep/er/large";
/// Number of blocks of [`LARGE`].
const LARGE_BLOCKS: u64 = 40;
/// Number of blocks in a service's own memory: far fewer than the large file has.
const OWN_BLOCKS: usize = 10;
/// Timeouts that no busy machine exceeds.
const LONG_TIMEOUTS: &str =
    "peer_timeout = \"60s\"\nfetch_wait = \"60s\"\nsource_timeout = \"200s\"\n";

/// Id of a host. One of digits alone would be no name of a server.
fn host_id(number: usize) -> String {
    format!("a{number:07x}{number:024x}")
}

/// A recruiter and hosts, which read from one source.
struct RecruitedFleet {
    /// Dropped first: their mounts lie in the stage's folder.
    hosts: Vec<Host>,
    recruiter: Running,
    stage: Stage,
    server: Server,
    _folder: TempDir,
}

/// A host: its owner's agent, its memory server, and its service with one mount.
struct Host {
    agent: Agent,
    _memory_server: Running,
    service: Running,
    point: PathBuf,
    socket: PathBuf,
}

/// Files and addresses of the deployment, for starting hosts.
struct Site<'a> {
    folder: &'a Path,
    authority: &'a Authority,
    recruiter: SocketAddr,
    stage: &'a Stage,
    source: String,
}

impl RecruitedFleet {
    /// Starts one host for each size in `holds`, the most memory that it leases for blocks.
    fn start(holds: &[&str], timeouts: &str) -> Self {
        let stage = Stage::new(&mut Random::new());
        let server = Server::start(stage.input(), Manner::Proper);
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let authority = Authority::init(&folder.join("pki"), "test", 10).unwrap();
        let address = unused_address();
        let recruiter = start_recruiter(folder, &authority, address);
        let site = Site {
            folder,
            authority: &authority,
            recruiter: address,
            stage: &stage,
            source: server.url(),
        };
        let hosts = holds.iter().enumerate();
        let hosts = hosts.map(|(number, hold)| Host::start(&site, number, hold, timeouts));
        let hosts: Vec<Host> = hosts.collect();
        Self {
            hosts,
            recruiter,
            stage,
            server,
            _folder: temporary,
        }
    }

    /// Waits until every host knows all others, and those that may hold blocks have leases and weights.
    fn wait_until_joined(&self, holds: &[&str]) {
        for (host, hold) in self.hosts.iter().zip(holds) {
            wait_for("the members", || {
                let status = host.status();
                status["peers"].as_array().unwrap().len() + 1 == self.hosts.len()
            });
            wait_for("a lease", || {
                (host.global("leased_bytes") > 0) == (*hold != "0B")
            });
        }
        wait_for("weights", || {
            let status = self.hosts[0].status();
            !status["global"]["epoch"]["targets"]
                .as_array()
                .unwrap()
                .is_empty()
        });
    }

    fn large(&self) -> Vec<u8> {
        fs::read(self.stage.input().join(LARGE)).unwrap()
    }
}

fn start_recruiter(folder: &Path, authority: &Authority, address: SocketAddr) -> Running {
    let names = vec![address.ip().to_string()];
    let issued = authority.issue(&Role::Recruiter { names }, 10).unwrap();
    let pki = folder.join("pki");
    issued
        .write(&pki.join("recruiter.crt"), &pki.join("recruiter.key"))
        .unwrap();
    let config = folder.join("recruiter.toml");
    let text = format!(
        "listen = \"{address}\"\nlocal_listen = \"none\"\npki = {pki:?}\nannounce_every = \"1s\"\nreserve_share = 0.0\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = Command::new(program("gleaner-recruiter").unwrap());
    let running = Running::start(command.arg("run").arg("--config").arg(&config));
    running.hear("listening on https:");
    running
}

impl Host {
    fn start(site: &Site<'_>, number: usize, hold: &str, timeouts: &str) -> Self {
        let host_id = host_id(number);
        let folder = site.folder.join(format!("host{number}"));
        fs::create_dir(&folder).unwrap();
        let file = |name: &str| folder.join(name);
        let role = Role::Host {
            host_id: host_id.clone(),
        };
        let issued = site.authority.issue(&role, 10).unwrap();
        issued.write(&file("crt"), &file("key")).unwrap();
        let identity = format!(
            "host_id = {host_id:?}\nrecruiters = [\"https://{}\"]\ncertificate = {:?}\nkey = {:?}\nauthority = {:?}\n",
            site.recruiter,
            file("crt"),
            file("key"),
            site.folder.join("pki/authority.crt"),
        );
        let agent = Agent::start(&file("agent.sock"));
        let text = format!(
            "{identity}cap = \"128MiB\"\nagent_socket = {:?}\nsocket = {:?}\nstate_folder = {:?}\nannounce_every = \"1s\"\n\
             rise_after = \"0s\"\npressure_pause = \"0s\"\nlock_pages = \"never\"\nlisten = \"127.0.0.1:0\"\npages_socket = {:?}\n",
            file("agent.sock"),
            file("memoryd.sock"),
            file("state"),
            file("pages.sock"),
        );
        fs::write(file("memoryd.toml"), text).unwrap();
        let mut command = Command::new(program("gleaner-memoryd").unwrap());
        let running = command.arg("run").arg("--config").arg(file("memoryd.toml"));
        let memory_server = Running::start(running);
        wait_for("the memory server", || file("memoryd.sock").exists());
        let point = site.stage.point(&format!("point-{number}"));
        let text = format!(
            "{identity}name = \"test\"\nlisten = \"{}\"\npolicy = \"gms\"\nsocket = {:?}\nlocal_listen = \"none\"\n\
             kernel_cache = false\nlocal = \"{}B\"\nhold = \"{hold}\"\n{timeouts}\
             [[mounts]]\ncatalog = \"{}{}\"\nfolder = {point:?}\nsource = \"{}\"\n",
            unused_address(),
            file("commons.sock"),
            OWN_BLOCKS * BLOCK,
            site.stage.catalog().display(),
            site.stage.pin,
            site.source,
        );
        fs::write(file("commons.toml"), text).unwrap();
        let mut command = commons();
        command.arg("run").arg("--config").arg(file("commons.toml"));
        let service = Running::start(command.stdout(Stdio::piped()));
        assert!(service.printed().starts_with("mounted "));
        Self {
            agent,
            _memory_server: memory_server,
            service,
            point,
            socket: file("commons.sock"),
        }
    }

    fn status(&self) -> Value {
        let mut command = commons();
        command.args(["status", "--json", "--socket"]);
        serde_json::from_str(&succeed(command.arg(&self.socket))).unwrap()
    }

    fn figure(&self, group: Option<&str>, key: &str) -> u64 {
        let status = self.status();
        let figures = group.map_or(&status, |group| &status[group]);
        let figure = figures[key].as_u64();
        figure.unwrap_or_else(|| panic!("no {key} in {status}"))
    }

    fn global(&self, key: &str) -> u64 {
        self.figure(Some("global"), key)
    }

    fn assert_reads(&self, wanted: &[u8]) {
        assert!(fs::read(self.point.join(LARGE)).unwrap() == wanted);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.service.kill();
        unmount(&self.point);
    }
}

#[test]
fn blocks_that_a_host_evicts_are_found_in_others_leases_until_their_owners_return() {
    let holds = ["0B", "64MiB", "64MiB"];
    let deployment = RecruitedFleet::start(&holds, LONG_TIMEOUTS);
    deployment.wait_until_joined(&holds);
    let [reader, one, other] = &deployment.hosts[..] else {
        panic!("three hosts");
    };
    let wanted = deployment.large();
    reader.assert_reads(&wanted);
    // A busy machine may drop a few blocks on their way.
    let many = (LARGE_BLOCKS - OWN_BLOCKS as u64) / 2;
    wait_for("the evicted blocks at other hosts", || {
        let held = [one, other].map(|host| host.global("global_blocks_count"));
        held.iter().sum::<u64>() >= many
    });
    assert!(reader.figure(Some("cluster"), "puts_count") >= many);
    // The directory learns of the puts a moment after the blocks have arrived.
    wait_for("reads from other hosts' memory", || {
        reader.assert_reads(&wanted);
        reader.figure(None, "cluster_blocks_count") >= many
    });
    // Blocks that one host has read, others get from memory as well; then each has blocks in its leases.
    let before = deployment.server.requests(&format!("/{LARGE}"));
    for host in [one, other] {
        host.assert_reads(&wanted);
    }
    assert!(other.figure(None, "cluster_blocks_count") > 0);
    assert!(deployment.server.requests(&format!("/{LARGE}")) < before + LARGE_BLOCKS);

    for host in [one, other] {
        host.agent.owner_returns();
    }
    for host in &deployment.hosts {
        assert_equal(&host.point, &deployment.stage.input());
    }
    for host in [one, other] {
        wait_for("the end of the leases", || host.global("leased_bytes") == 0);
        assert!(host.global("lost_blocks_count") > 0);
    }
    deployment.recruiter.kill();
    for host in &deployment.hosts {
        wait_for("the link to end", || {
            host.status()["global"]["links"][0]["is_linked"] == false
        });
        let peers = host.status()["peers"].as_array().unwrap().len();
        assert_eq!(peers, 2, "the last members stay");
        assert_equal(&host.point, &deployment.stage.input());
    }
}

#[test]
fn with_short_timeouts_no_read_returns_other_bytes_while_owners_come_and_go() {
    let holds = ["64MiB"; 3];
    let deployment = RecruitedFleet::start(&holds, "");
    deployment.wait_until_joined(&holds);
    let wanted = deployment.large();
    for _ in 0..3 {
        thread::scope(|scope| {
            for host in &deployment.hosts {
                let (point, wanted) = (&host.point, &wanted);
                scope.spawn(move || {
                    for _ in 0..4 {
                        assert!(fs::read(point.join(LARGE)).unwrap() == *wanted);
                    }
                });
            }
            for host in &deployment.hosts {
                host.agent.owner_returns();
            }
        });
        for host in &deployment.hosts {
            wait_for("the end of the leases", || host.global("leased_bytes") == 0);
            host.agent.owner_leaves();
        }
        for host in &deployment.hosts {
            wait_for("another lease", || host.global("leased_bytes") > 0);
        }
    }
}
