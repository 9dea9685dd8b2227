//! A recruiter and two hosts in network namespaces, over TLS with the deployment's own certificates. One host
//! is disconnected without notice for longer than the term of its lease. Meanwhile its owner returns.

use super::agent::Agent;
use super::client::{Answer, CLIENT, LEASE_BYTES, lease_request};
use super::cluster::{ANNOUNCE_EVERY, CAP_BYTES};
use crate::delivery::network::{Namespace, connect, entering, within};
use crate::delivery::partitions::pki;
use crate::delivery::running::{Running, wait_for};
use gleaner_harness::succeed;
use gleaner_schemas::lending::{LendingState, ReclaimRecord};
use gleaner_tests::program;
use gleaner_trust::{ClientPaths, ClientTrust};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(super) const PORT: u16 = 7444;
/// Port on which hosts serve pages.
pub(super) const PAGES_PORT: u16 = 10809;
/// Addresses at the ends of the cables to the two hosts: the recruiter's ends, and the hosts' ends.
pub(super) const RECRUITER: [&str; 2] = ["10.77.1.1", "10.77.2.1"];
pub(super) const HOST: [&str; 2] = ["10.77.1.2", "10.77.2.2"];
/// Term of a lease that ends while the host is disconnected, but not before this is noticed.
const SHORT_TERM_MS: i64 = 10_000;
/// Term of leases that must not expire within the test.
pub(super) const LONG_TERM_MS: i64 = 3_600_000;
/// Maximum time from the owner's return until the owner has the memory, in µs, even on a busy machine.
const AT_ONCE_US: u64 = 10_000_000;
/// Timeout of one request, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum time until a lost link is noticed: three announcement intervals, and a large margin for a busy
/// machine.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// URL of the recruiter on the cable to the first host.
pub(super) fn url() -> String {
    format!("https://{}:{PORT}", RECRUITER[0])
}

/// A host whose memory server runs in a namespace of its own.
pub(super) struct Host {
    pub(super) id: String,
    cable: String,
    pub(super) agent: Agent,
    socket: PathBuf,
    running: Running,
    namespace: Namespace,
}

impl Host {
    /// Starts the host with number `n`, connected to the recruiter by a cable.
    pub(super) fn start(folder: &Path, n: usize, recruiter: &Namespace) -> Self {
        let namespace = Namespace::new();
        let cable = format!("cable{n}");
        let ends = [(recruiter, RECRUITER[n]), (&namespace, HOST[n])];
        connect(&cable, ends);
        // The host id needs a letter, which almost every real host id has: rustls rejects a DNS name of
        // digits only.
        let id = format!("{:032x}", 0xa0 + n);
        let certificate = folder.join(format!("host{n}"));
        let certificate = certificate.to_str().unwrap();
        pki(folder, &["issue", "--host", &id, "-o", certificate]);
        let own = folder.join(format!("memoryd{n}"));
        fs::create_dir(&own).unwrap();
        let file = |name: &str| own.join(name);
        let text = format!(
            "cap = \"{CAP_BYTES}B\"\nagent_socket = {:?}\nsocket = {:?}\nstate_folder = {:?}\nhost_id = \"{id}\"\n\
             recruiters = [\"https://{}:{PORT}\"]\nannounce_every = \"{}\"\n\
             certificate = \"{certificate}.crt\"\nkey = \"{certificate}.key\"\nauthority = {:?}\n\
             rise_after = \"0s\"\npressure_pause = \"0s\"\nlock_pages = \"never\"\nlisten = \"0.0.0.0:{PAGES_PORT}\"\n\
             pages_socket = {:?}\n",
            file("agent.sock"),
            file("memoryd.sock"),
            file("state"),
            RECRUITER[n],
            gleaner_schemas::interval::format(ANNOUNCE_EVERY),
            folder.join("pki/authority.crt"),
            file("pages.sock"),
        );
        fs::write(file("memoryd.toml"), text).unwrap();
        let agent = Agent::start(&file("agent.sock"));
        let mut command = entering(&namespace.path(), program("gleaner-memoryd").unwrap());
        let running = command.arg("run").arg("--config").arg(file("memoryd.toml"));
        let host = Self {
            id,
            cable,
            agent,
            socket: file("memoryd.sock"),
            running: Running::start(running),
            namespace,
        };
        wait_for("the memory server", || host.socket.exists());
        host
    }

    /// Limits the rate of the host's cable in each direction, for instance to `1gbit`.
    pub(super) fn limit(&self, recruiter: &Recruiter, rate: &str) {
        for end in [&recruiter.namespace, &self.namespace] {
            let shape = format!("root tbf rate {rate} burst 256kb latency 50ms");
            end.run("tc", &format!("qdisc replace dev {} {shape}", self.cable));
        }
    }

    /// Waits until the memory server logs a line that contains `words`; returns the line.
    #[track_caller]
    pub(super) fn hear(&self, words: &str) -> String {
        self.running.hear(words)
    }

    /// Records of the reclaims of this host's lent memory, oldest first.
    #[track_caller]
    pub(super) fn log(&self) -> Vec<ReclaimRecord> {
        serde_json::from_value(self.owner("log")).unwrap()
    }

    /// Output of the command `gleaner owner WORD` on this host.
    #[track_caller]
    fn owner(&self, word: &str) -> Value {
        let mut command = Command::new(program("gleaner").unwrap());
        command.args(["owner", word, "--json", "--socket"]);
        let printed = succeed(command.arg(&self.socket));
        serde_json::from_str(&printed).unwrap()
    }

    #[track_caller]
    pub(super) fn lending(&self) -> LendingState {
        serde_json::from_value(self.owner("status")).unwrap()
    }

    /// Ids of the host's leases.
    #[track_caller]
    pub(super) fn leases(&self) -> Vec<String> {
        let leases = self.lending().leases;
        leases.into_iter().map(|lease| lease.lease_id).collect()
    }
}

/// A recruiter, and a client that runs in the same namespace.
pub(super) struct Recruiter {
    running: Mutex<Option<Running>>,
    config: PathBuf,
    client: ureq::Agent,
    pub(super) namespace: Namespace,
}

impl Recruiter {
    pub(super) fn start(folder: &Path) -> Self {
        let namespace = Namespace::new();
        let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let recruiter = file("pki/recruiter");
        let words = ["issue", "-o", &recruiter, "--recruiter"];
        pki(folder, &[&words[..], &RECRUITER[..]].concat());
        pki(
            folder,
            &["issue", "--client", CLIENT, "-o", &file("client")],
        );
        let config = folder.join("recruiter.toml");
        let text = format!(
            "listen = \"0.0.0.0:{PORT}\"\nlocal_listen = \"none\"\npki = {:?}\nannounce_every = \"{}\"\nreserve_share = 0.0\n\
             answer_timeout = \"1s\"\ngrant_timeout = \"3s\"\n",
            file("pki"),
            gleaner_schemas::interval::format(ANNOUNCE_EVERY),
        );
        fs::write(&config, text).unwrap();
        let recruiter = Self {
            running: Mutex::default(),
            config,
            client: client(folder, "client"),
            namespace,
        };
        recruiter.run();
        recruiter
    }

    /// Starts the recruiter. It has no state of an earlier run.
    pub(super) fn run(&self) {
        let mut command = entering(
            &self.namespace.path(),
            program("gleaner-recruiter").unwrap(),
        );
        let running = Running::start(command.arg("run").arg("--config").arg(&self.config));
        running.hear("listening on https:");
        *self.running.lock().unwrap() = Some(running);
    }

    /// Kills the recruiter, as a power loss would.
    pub(super) fn kill(&self) {
        let running = self.running.lock().unwrap().take();
        running.unwrap().kill();
    }

    /// Waits until the recruiter logs a line that contains `words`.
    #[track_caller]
    fn hear(&self, words: &str) {
        self.running.lock().unwrap().as_ref().unwrap().hear(words);
    }

    fn ask(&self, path: &str, document: Option<&Value>) -> Answer {
        self.ask_as(&self.client, path, document)
    }

    pub(super) fn ask_as(
        &self,
        client: &ureq::Agent,
        path: &str,
        document: Option<&Value>,
    ) -> Answer {
        let url = format!("https://{}:{PORT}{path}", RECRUITER[0]);
        within(&self.namespace.path(), || {
            let response = match document {
                Some(document) => client.post(url).send_json(document),
                None => client.get(url).call(),
            };
            let mut response = response.unwrap();
            let document = response.body_mut().read_json().unwrap();
            (response.status().as_u16(), document)
        })
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.ask(path, None)
    }

    fn post(&self, path: &str, document: &Value) -> Answer {
        self.ask(path, Some(document))
    }

    fn renew(&self, lease: &Lease) -> Answer {
        let path = format!("/v1/leases/{}/renew", lease.id);
        self.post(&path, &json!({ "term_ms": lease.term_ms }))
    }

    /// Waits until the recruiter grants a lease with this key.
    #[track_caller]
    pub(super) fn grant(&self, key: &str, term_ms: i64) -> Lease {
        self.grant_to(&self.client, key, term_ms)
    }

    /// Waits for a lease like [`Self::grant`], for a client with another certificate.
    #[track_caller]
    pub(super) fn grant_to(&self, client: &ureq::Agent, key: &str, term_ms: i64) -> Lease {
        let mut granted = Value::Null;
        wait_for("a lease", || {
            // The request is repeated until the recruiter knows a host.
            let request = lease_request(key, term_ms);
            let (status, answer) = self.ask_as(client, "/v1/leases", Some(&request));
            assert!(matches!(status, 201 | 503), "{answer}");
            granted = answer["leases"][0].clone();
            status == 201
        });
        Lease {
            id: granted["lease_id"].as_str().unwrap().to_owned(),
            generation: granted["generation"].as_u64().unwrap(),
            host_id: granted["host_id"].as_str().unwrap().to_owned(),
            term_ms,
        }
    }

    /// Entry of a host in the recruiter's list; `None` if the recruiter does not know the host.
    pub(super) fn host(&self, id: &str) -> Option<Value> {
        let (status, answer) = self.get("/v1/hosts");
        assert_eq!(status, 200, "{answer}");
        let mut hosts = answer["hosts"].as_array().unwrap().iter();
        hosts.find(|host| host["quota"]["host_id"] == id).cloned()
    }
}

/// A granted lease, and the term to which it is renewed.
pub(super) struct Lease {
    pub(super) id: String,
    pub(super) generation: u64,
    pub(super) host_id: String,
    term_ms: i64,
}

/// HTTP client that shows the certificate `NAME.crt`.
pub(super) fn client(folder: &Path, name: &str) -> ureq::Agent {
    let paths = ClientPaths {
        certificate: folder.join(format!("{name}.crt")),
        key: folder.join(format!("{name}.key")),
        authority: folder.join("pki/authority.crt"),
    };
    let credentials = ClientTrust::load(&paths).unwrap().credentials();
    ureq::Agent::config_builder()
        .tls_config(gleaner_trust::http::tls(&credentials).unwrap())
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into()
}

/// Asserts that the answer tells the client to try again later, and not that the lease is lost.
#[track_caller]
fn is_out_of_reach((status, answer): &Answer) {
    assert_eq!(*status, 503, "{answer}");
    assert_eq!(answer["kind"], "unreachable", "{answer}");
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("lease"), "{answer}");
    assert!(answer["retry_in_ms"].as_i64() > Some(0), "{answer}");
}

/// Drops all packets on this host's cable, without notifying either side.
pub(super) fn cut(recruiter: &Recruiter, host: &Host) {
    for end in [&recruiter.namespace, &host.namespace] {
        end.run("iptables", &format!("-A INPUT -i {} -j DROP", host.cable));
    }
}

/// Resets all TCP connections over this host's cable, and refuses new ones.
pub(super) fn reset(recruiter: &Recruiter, host: &Host) {
    for end in [&recruiter.namespace, &host.namespace] {
        let rule = "-p tcp -j REJECT --reject-with tcp-reset";
        end.run("iptables", &format!("-A INPUT -i {} {rule}", host.cable));
    }
}

/// Unplugs a host's cable, or plugs it in again.
pub(super) fn plug(recruiter: &Recruiter, host: &Host, is_in: bool) {
    let state = if is_in { "up" } else { "down" };
    let end = if is_in {
        [&host.namespace, &recruiter.namespace]
    } else {
        [&recruiter.namespace, &host.namespace]
    };
    for end in end {
        end.run("ip", &format!("link set {} {state}", host.cable));
    }
}

pub(super) fn heal(recruiter: &Recruiter, host: &Host) {
    for end in [&recruiter.namespace, &host.namespace] {
        end.run("iptables", "-F");
    }
}

#[test]
fn a_host_that_is_cut_off_keeps_its_leases_and_gives_them_up_to_its_owner_without_any_recruiter() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pki(folder, &["init", "--name", "collector.example"]);
    let recruiter = Recruiter::start(folder);
    let away = Host::start(folder, 0, &recruiter.namespace);
    let short = recruiter.grant("short", SHORT_TERM_MS);
    let long = recruiter.grant("long", LONG_TERM_MS);
    assert_eq!([&short.host_id, &long.host_id], [&away.id; 2]);
    let other = Host::start(folder, 1, &recruiter.namespace);
    wait_for("the other host", || {
        let host = recruiter.host(&other.id);
        // The lease must be renewed meanwhile, since this may take longer than its term.
        let (status, answer) = recruiter.renew(&short);
        assert_eq!(status, 200, "{answer}");
        host.is_some_and(|host| host["quota"]["unleased_bytes"] == CAP_BYTES)
    });
    let mut both = away.leases();
    both.sort_unstable();
    let mut granted = vec![short.id.clone(), long.id.clone()];
    granted.sort_unstable();
    assert_eq!(both, granted);

    cut(&recruiter, &away);
    let begin = Instant::now();
    wait_for("the host to be gone", || {
        is_out_of_reach(&recruiter.renew(&long));
        recruiter.host(&away.id).is_none()
    });
    let gone_after = begin.elapsed();
    recruiter.hear("missed three announcements");
    assert!(gone_after < GONE_WITHIN, "gone after {gone_after:?}");
    is_out_of_reach(&recruiter.renew(&long));
    is_out_of_reach(&recruiter.get(&format!("/v1/leases/{}", long.id)));
    let next = recruiter.grant("next", LONG_TERM_MS);
    assert_eq!(next.host_id, other.id);
    wait_for("the host to miss its recruiter", || {
        away.lending().linked_recruiters.is_empty()
    });
    assert_eq!(other.lending().linked_recruiters.len(), 1);

    let outage = Duration::from_millis(2 * SHORT_TERM_MS.unsigned_abs());
    while begin.elapsed() < outage {
        let leases = away.leases();
        assert!(
            leases.contains(&short.id) && leases.contains(&long.id),
            "{leases:?} after {:?}",
            begin.elapsed()
        );
        is_out_of_reach(&recruiter.renew(&long));
        let (status, answer) = recruiter.renew(&next);
        assert_eq!(status, 200, "{answer}");
        std::thread::sleep(Duration::from_millis(250));
    }

    away.agent.owner_returns();
    wait_for("the owner's memory", || away.leases().is_empty());
    let lending = away.lending();
    let left = (lending.quota.quota_bytes, lending.resident_bytes);
    assert_eq!(left, (0, 0));
    assert!(
        lending.linked_recruiters.is_empty(),
        "{:?}",
        lending.linked_recruiters
    );
    let log = away.log();
    let last = log.last().unwrap();
    assert_eq!(
        (last.cause.as_str(), last.peak_lent_bytes, last.steps_count),
        ("owner", 2 * LEASE_BYTES, 1)
    );
    assert_eq!(last.remaining_lent_bytes, 0);
    assert!(last.full_reclaim_us < AT_ONCE_US, "{last:?}");
    assert_eq!(last.clients, [CLIENT]);
    is_out_of_reach(&recruiter.renew(&long));

    heal(&recruiter, &away);
    let begin = Instant::now();
    for lease in [&short, &long] {
        wait_for("the recruiter to know that it is over", || {
            let answer = recruiter.get(&format!("/v1/leases/{}", lease.id));
            if answer.0 != 404 {
                is_out_of_reach(&answer);
            }
            answer.0 == 404
        });
        let (status, answer) = recruiter.renew(lease);
        assert_eq!((status, &answer["kind"]), (404, &json!("unknown_lease")));
    }
    let known_after = begin.elapsed();
    let host = recruiter.host(&away.id).unwrap();
    assert_eq!(host["quota"]["quota_bytes"], 0, "{host}");
    away.agent.owner_leaves();
    wait_for("the quota to be known", || {
        let host = recruiter.host(&away.id).unwrap();
        host["is_reachable"] == true && host["quota"]["unleased_bytes"] == CAP_BYTES
    });
    assert_eq!(other.leases(), [next.id]);
    println!("gone after {gone_after:?}, known again {known_after:?} after the partition");
    assert_eq!(away.running.end().0, Some(0));
}
