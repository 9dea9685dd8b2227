//! A recruiter, memory servers and services with certificates, on loopback addresses. The owners' agents are the
//! test's.

use super::daemon::Daemon;
use crate::commons::fleet::host_id;
use crate::commons::server::{Manner, Server};
use crate::commons::stage::{BLOCK, Stage, commons, unmount};
use crate::lending::agent::Agent;
use gleaner_harness::{program, succeed, unused_address, wait_for, wait_for_some};
use gleaner_paging::ask;
use gleaner_schemas::lending::{LendingState, OwnerCommand, OwnerReply};
use gleaner_schemas::live::SILENT_AFTER_MS;
use gleaner_trust::{Authority, Role};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Number of blocks in a service's own memory: far fewer than any folder of the tests has.
pub(super) const OWN_BLOCKS: usize = 10;
/// Timeouts that no busy machine exceeds.
pub(super) const LONG_TIMEOUTS: &str =
    "peer_timeout = \"60s\"\nfetch_wait = \"60s\"\nsource_timeout = \"200s\"\n";
/// Line of the recruiter once members can link with it.
const RECRUITER_LISTENS: &str = "listening on https:";
/// Longest reclaim of a lease: no longer than a memory server waits before it treats a silent agent as the owner's
/// return.
const LONGEST_RECLAIM_US: u64 = SILENT_AFTER_MS as u64 * 1000;

/// A recruiter and hosts, which read from one source.
pub(super) struct RecruitedFleet {
    /// Dropped first: their mounts lie in the stage's folder.
    pub(super) hosts: Vec<Host>,
    pub(super) recruiter: Daemon,
    pub(super) stage: Stage,
    pub(super) server: Server,
    _folder: TempDir,
}

/// A host: its owner's agent, its memory server, and its service with one mount.
pub(super) struct Host {
    pub(super) agent: Agent,
    pub(super) memory_server: Daemon,
    pub(super) service: Daemon,
    pub(super) point: PathBuf,
    socket: PathBuf,
    /// Socket of the memory server for the owner's commands.
    owner_socket: PathBuf,
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
    /// Starts one host for each size in `holds`, the most memory that it leases for blocks. All hosts mount the sealed
    /// folder of `stage`.
    pub(super) fn start(stage: Stage, holds: &[&str], keys: &str) -> Self {
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
        let hosts = hosts.map(|(number, hold)| Host::start(&site, number, hold, keys));
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
    pub(super) fn wait_until_joined(&self, holds: &[&str]) {
        for (host, hold) in self.hosts.iter().zip(holds) {
            wait_for("the members", || self.is_joined(&host.status()));
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

    /// Returns true if the host with this status is linked with the recruiter, and knows all others.
    pub(super) fn is_joined(&self, status: &Value) -> bool {
        let peers = status["peers"].as_array().unwrap();
        let link = &status["global"]["links"][0];
        link["is_linked"] == true && peers.len() + 1 == self.hosts.len()
    }

    /// Starts the recruiter again.
    pub(super) fn restart_recruiter(&mut self) {
        self.recruiter.restart();
        self.recruiter.running.hear(RECRUITER_LISTENS);
    }
}

fn start_recruiter(folder: &Path, authority: &Authority, address: SocketAddr) -> Daemon {
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
    command.arg("run").arg("--config").arg(&config);
    let recruiter = Daemon::start(command);
    recruiter.running.hear(RECRUITER_LISTENS);
    recruiter
}

impl Host {
    fn start(site: &Site<'_>, number: usize, hold: &str, keys: &str) -> Self {
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
        command.arg("run").arg("--config").arg(file("memoryd.toml"));
        let memory_server = Daemon::start(command);
        wait_for("the memory server", || file("memoryd.sock").exists());
        let point = site.stage.point(&format!("point-{number}"));
        let text = format!(
            "{identity}name = \"test\"\nlisten = \"{}\"\nsocket = {:?}\nlocal_listen = \"none\"\n\
             kernel_cache = false\nlocal = \"{}B\"\nhold = \"{hold}\"\n{keys}\
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
        command.stdout(Stdio::piped());
        let service = Daemon::start(command);
        assert!(service.running.printed().starts_with("mounted "));
        Self {
            agent,
            memory_server,
            service,
            point,
            socket: file("commons.sock"),
            owner_socket: file("memoryd.sock"),
        }
    }

    /// Kills the service, if it runs, and starts it again.
    pub(super) fn restart_service(&mut self) {
        self.service.running.kill();
        unmount(&self.point);
        self.service.restart();
        assert!(self.service.running.printed().starts_with("mounted "));
    }

    /// Starts the memory server again, and waits until it answers.
    pub(super) fn restart_memory_server(&mut self) {
        self.memory_server.restart();
        wait_for("the memory server", || {
            ask::memoryd(&self.owner_socket, OwnerCommand::Status).is_ok()
        });
    }

    pub(super) fn status(&self) -> Value {
        let mut command = commons();
        command.args(["status", "--json", "--socket"]);
        serde_json::from_str(&succeed(command.arg(&self.socket))).unwrap()
    }

    pub(super) fn figure(&self, group: Option<&str>, key: &str) -> u64 {
        let status = self.status();
        let figures = group.map_or(&status, |group| &status[group]);
        let figure = figures[key].as_u64();
        figure.unwrap_or_else(|| panic!("no {key} in {status}"))
    }

    pub(super) fn global(&self, key: &str) -> u64 {
        self.figure(Some("global"), key)
    }

    /// Answer of the memory server to a command of the owner.
    fn ask_memory_server(&self, command: OwnerCommand) -> OwnerReply {
        ask::memoryd(&self.owner_socket, command).unwrap()
    }

    fn lending(&self) -> LendingState {
        match self.ask_memory_server(OwnerCommand::Status) {
            OwnerReply::Lending(lending) => *lending,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the memory server has memory for the blocks in the host's lease.
    fn wait_for_leased_blocks(&self) {
        wait_for("blocks in the lease", || {
            self.lending().resident_bytes > 0 && self.global("leased_used_bytes") > 0
        });
    }

    /// Kills the memory server once blocks lie in the host's lease, and waits until the service notices the loss.
    pub(super) fn kill_memory_server_of_blocks(&self) {
        self.wait_for_leased_blocks();
        self.memory_server.running.kill();
        wait_for("the end of the lease", || self.global("leased_bytes") == 0);
    }

    /// Lets the owner return once blocks lie in the host's lease. The memory server then reclaims all memory in time,
    /// and the service notices the loss.
    pub(super) fn return_owner_of_blocks(&self) {
        self.wait_for_leased_blocks();
        self.agent.owner_returns();
        wait_for("the owner's memory", || self.lending().leases.is_empty());
        let lending = self.lending();
        assert_eq!((lending.quota.lent_bytes, lending.resident_bytes), (0, 0));
        let reclaim = wait_for_some("the reclaim in the log", || {
            match self.ask_memory_server(OwnerCommand::Log) {
                OwnerReply::Log { reclaims } => reclaims.into_iter().rfind(|r| r.cause == "owner"),
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(reclaim.remaining_lent_bytes, 0);
        assert!(
            reclaim.bytes > 0 && reclaim.full_reclaim_us <= LONGEST_RECLAIM_US,
            "{reclaim:?}"
        );
        wait_for("the end of the lease", || self.global("leased_bytes") == 0);
        wait_for("the loss of blocks", || {
            self.global("lost_blocks_count") > 0
        });
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.service.running.kill();
        unmount(&self.point);
    }
}
