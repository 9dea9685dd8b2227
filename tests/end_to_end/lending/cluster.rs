//! Recruiters and memory servers; the connections between them lead through relays.

use super::agent::Agent;
use super::client::{self, Answer};
use crate::delivery::running::{Running, wait_for};
use gleaner_harness::{Relay, Target};
use gleaner_schemas::lending::{LendingState, OwnerCommand, OwnerReply, ReclaimRecord};
use gleaner_tests::program;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Maximum number of bytes that each host lends.
pub(super) const CAP_BYTES: u64 = 128 << 20;
/// Interval between announcements of memory servers and recruiters. The default is ten seconds.
pub(super) const ANNOUNCE_EVERY: Duration = Duration::from_secs(1);
/// Timeout of clients. It is a little longer than the recruiter's own timeouts.
const PATIENCE_OF_CLIENTS: Duration = Duration::from_secs(4);
/// Timeout of the owner's requests. It is long, since machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Cluster {
    pub(super) hosts: Vec<Host>,
    pub(super) recruiters: Vec<Recruiter>,
    _folder: tempfile::TempDir,
}

impl Cluster {
    pub(super) fn start(hosts: usize, recruiters: usize) -> Self {
        Self::with_interval(hosts, recruiters, ANNOUNCE_EVERY)
    }

    pub(super) fn with_interval(hosts: usize, recruiters: usize, announce_every: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let recruiters: Vec<_> = (0..recruiters)
            .map(|n| Recruiter::start(path, n, announce_every))
            .collect();
        let hosts = (0..hosts)
            .map(|n| Host::start(path, n, &recruiters, announce_every))
            .collect();
        let cluster = Self {
            hosts,
            recruiters,
            _folder: folder,
        };
        cluster.agrees();
        cluster
    }

    /// Waits until every recruiter has finished starting and knows the state of every host.
    #[track_caller]
    pub(super) fn agrees(&self) {
        for recruiter in &self.recruiters {
            wait_for("the recruiters to know all", || {
                recruiter.knows(&self.hosts)
            });
        }
    }
}

/// A recruiter that the test can end and start again.
pub(super) struct Recruiter {
    config: PathBuf,
    running: Option<Running>,
    target: Target,
}

impl Recruiter {
    fn start(folder: &Path, n: usize, announce_every: Duration) -> Self {
        let config = folder.join(format!("recruiter{n}.toml"));
        let announce_every = gleaner_schemas::interval::format(announce_every);
        let text = format!(
            "local_listen = \"127.0.0.1:0\"\nlocal_access = \"all\"\nannounce_every = \"{announce_every}\"\nreserve_share = 0.0\n\
             answer_timeout = \"1s\"\ngrant_timeout = \"3s\"\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut recruiter = Self {
            config,
            running: None,
            target: Target::default(),
        };
        recruiter.restart();
        recruiter
    }

    pub(super) fn kill(&mut self) {
        *self.target.lock().unwrap() = None;
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }

    /// Starts the recruiter if it does not run.
    pub(super) fn restart(&mut self) {
        if self.running.is_some() {
            return;
        }
        let mut command = Command::new(program("gleaner-recruiter").unwrap());
        let running = Running::start(command.arg("run").arg("--config").arg(&self.config));
        let line = running.hear("listening on http:");
        let (_, address) = line.rsplit_once('/').unwrap();
        *self.target.lock().unwrap() = Some(address.parse().unwrap());
        self.running = Some(running);
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(running) = &self.running {
            running.signal(signal);
        }
    }

    /// Process id of the recruiter.
    #[track_caller]
    pub(super) fn process(&self) -> u32 {
        self.running.as_ref().map(Running::id).unwrap()
    }

    /// Address on which the recruiter listens.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        *self.target.lock().unwrap()
    }

    /// Sends a request to the recruiter. The result is an error if the recruiter is down or does not answer.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        document: Option<&Value>,
    ) -> io::Result<Answer> {
        let address = self.address().ok_or(io::ErrorKind::ConnectionRefused)?;
        client::ask(address, method, path, document, PATIENCE_OF_CLIENTS)
    }

    /// Returns true if the recruiter knows the same leases and the same amounts as the hosts themselves.
    pub(super) fn knows(&self, hosts: &[Host]) -> bool {
        let Ok((200, said)) = self.ask("GET", "/v1/hosts", None) else {
            return false;
        };
        let said = said["hosts"].as_array().unwrap();
        let Ok((200, leases)) = self.ask("GET", "/v1/leases", None) else {
            return false;
        };
        let mut known: Vec<&str> = leases["leases"]
            .as_array()
            .unwrap()
            .iter()
            .map(id)
            .collect();
        let lending: Vec<LendingState> = hosts.iter().map(Host::lending).collect();
        let mut there: Vec<&str> = lending
            .iter()
            .flat_map(|l| &l.leases)
            .map(|l| l.lease_id.as_str())
            .collect();
        known.sort_unstable();
        there.sort_unstable();
        known == there
            && hosts.iter().zip(&lending).all(|(host, lending)| {
                said.iter().any(|said| {
                    let quota = &said["quota"];
                    quota["host_id"] == host.id.as_str()
                        && said["is_reachable"] == true
                        && quota["lent_bytes"] == lending.quota.lent_bytes
                        && quota["unleased_bytes"] == lending.quota.unleased_bytes
                })
            })
    }
}

fn id(lease: &Value) -> &str {
    lease["lease_id"].as_str().unwrap()
}

/// A host: a simulated agent, a memory server, and connections to the recruiters.
pub(super) struct Host {
    pub(super) id: String,
    pub(super) agent: Agent,
    /// Relays to the recruiters, one for each.
    pub(super) cables: Vec<Relay>,
    config: PathBuf,
    socket: PathBuf,
    running: Option<Running>,
}

impl Host {
    fn start(folder: &Path, n: usize, recruiters: &[Recruiter], announce_every: Duration) -> Self {
        let folder = folder.join(format!("host{n}"));
        std::fs::create_dir(&folder).unwrap();
        let file = |name: &str| folder.join(name);
        let cables: Vec<Relay> = recruiters
            .iter()
            .map(|recruiter| Relay::start(recruiter.target.clone()))
            .collect();
        let urls: Vec<String> = cables
            .iter()
            .map(|cable| format!("http://{}", cable.address))
            .collect();
        let id = format!("{:032x}", n + 1);
        let announce_every = gleaner_schemas::interval::format(announce_every);
        let text = format!(
            "cap = \"{CAP_BYTES}B\"\nagent_socket = {:?}\nsocket = {:?}\nstate_folder = {:?}\nhost_id = \"{id}\"\nrecruiters = {urls:?}\n\
             announce_every = \"{announce_every}\"\nrise_after = \"0s\"\npressure_pause = \"0s\"\nlock_pages = \"never\"\nlisten = \"127.0.0.1:0\"\n\
             shrink_step = \"2MiB\"\nshrink_every = \"1m\"\n", // so slow that only a revocation is quicker
            file("agent.sock"),
            file("memoryd.sock"),
            file("state"),
        );
        std::fs::write(file("memoryd.toml"), text).unwrap();
        let mut host = Self {
            id,
            agent: Agent::start(&file("agent.sock")),
            cables,
            config: file("memoryd.toml"),
            socket: file("memoryd.sock"),
            running: None,
        };
        host.restart();
        host
    }

    pub(super) fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }

    /// Starts the memory server if it does not run.
    pub(super) fn restart(&mut self) {
        if self.running.is_some() {
            return;
        }
        let mut command = Command::new(program("gleaner-memoryd").unwrap());
        let running = Running::start(command.arg("run").arg("--config").arg(&self.config));
        wait_for("the memory server", || {
            UnixStream::connect(&self.socket).is_ok()
        });
        self.running = Some(running);
    }

    /// Ends the memory server with the signal that systemd sends; returns its exit code.
    pub(super) fn end(&mut self) -> Option<i32> {
        self.running.take().and_then(|running| running.end().0)
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(running) = &self.running {
            running.signal(signal);
        }
    }

    /// Process id of the memory server.
    #[track_caller]
    pub(super) fn process(&self) -> u32 {
        self.running.as_ref().map(Running::id).unwrap()
    }

    /// Socket for the owner's commands.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Records that `gleaner owner log` prints, one for each reclaim.
    #[track_caller]
    pub(super) fn log(&self) -> Vec<ReclaimRecord> {
        let mut command = Command::new(program("gleaner").unwrap());
        command.args(["owner", "log", "--json", "--socket"]);
        let done = command.arg(&self.socket).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        serde_json::from_slice(&done.stdout).unwrap()
    }

    /// State of lending, as the owner's socket reports it.
    #[track_caller]
    pub(super) fn lending(&self) -> LendingState {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut line = serde_json::to_vec(&OwnerCommand::Status).unwrap();
        line.push(b'\n');
        stream.write_all(&line).unwrap();
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply).unwrap();
        match serde_json::from_str(&reply).unwrap() {
            OwnerReply::Lending(lending) => *lending,
            other => panic!("{other:?}"),
        }
    }
}
