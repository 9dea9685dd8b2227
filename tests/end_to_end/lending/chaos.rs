//! Recruiters and memory servers are killed, stopped and disconnected from each other at random, and owners
//! return, while a client continues its requests. The answers that the client received must stay true. No
//! memory may be lent twice, and no lease may be left behind.
//!
//! The environment variable `GLEANER_KILL_ROUNDS` (default 20) sets the number of rounds. `GLEANER_SEED`
//! repeats a run, as far as timing allows.

use super::client::lease_request;
use super::cluster::{CAP_BYTES, Cluster};
use crate::delivery::running::{Random, number, wait_for};
use gleaner_schemas::lending::LendingState;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const HOSTS: usize = 3;
const RECRUITERS: usize = 2;
const ASKS_A_ROUND: u64 = 8;
/// Number of leases that the client keeps at the end of a round; it releases the others.
const KEPT: usize = 8;
/// Term of leases. It is so long that none expires in the test.
const TERM_MS: i64 = 3_600_000;

/// A fault of hosts, recruiters or networks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    KillRecruiter(usize),
    KillAllRecruiters,
    StopRecruiter(usize),
    KillHost(usize),
    StopHost(usize),
    Cut(usize, usize),
    /// A host is disconnected from all recruiters.
    CutOff(usize),
    OwnerReturns(usize),
}

impl Fault {
    fn any(random: &mut Random) -> Self {
        let host = random.below(HOSTS as u64) as usize;
        let recruiter = random.below(RECRUITERS as u64) as usize;
        match random.below(8) {
            0 => Self::KillRecruiter(recruiter),
            1 => Self::KillAllRecruiters,
            2 => Self::StopRecruiter(recruiter),
            3 => Self::KillHost(host),
            4 => Self::StopHost(host),
            5 => Self::Cut(host, recruiter),
            6 => Self::CutOff(host),
            _ => Self::OwnerReturns(host),
        }
    }

    fn begin(self, cluster: &mut Cluster) {
        match self {
            Self::KillRecruiter(n) => cluster.recruiters[n].kill(),
            Self::KillAllRecruiters => cluster
                .recruiters
                .iter_mut()
                .for_each(super::cluster::Recruiter::kill),
            Self::StopRecruiter(n) => cluster.recruiters[n].signal(Signal::STOP),
            Self::KillHost(n) => cluster.hosts[n].kill(),
            Self::StopHost(n) => cluster.hosts[n].signal(Signal::STOP),
            Self::Cut(host, recruiter) => cluster.hosts[host].cables[recruiter].hold(true),
            Self::CutOff(host) => cluster.hosts[host]
                .cables
                .iter()
                .for_each(|cable| cable.hold(true)),
            Self::OwnerReturns(n) => cluster.hosts[n].agent.owner_returns(),
        }
    }

    /// Number of the host whose leases may end because of this fault. A stopped memory server is such a host,
    /// since it does not receive its agent's messages.
    fn takes_leases_of(self) -> Option<usize> {
        match self {
            Self::KillHost(n) | Self::StopHost(n) | Self::OwnerReturns(n) => Some(n),
            _ => None,
        }
    }
}

impl Fault {
    /// Number of the host that a recruiter may consider gone because of this fault. The recruiter then does
    /// not know the host's leases until the host announces itself again.
    fn hides(self) -> Option<usize> {
        match self {
            Self::Cut(host, _) | Self::CutOff(host) => Some(host),
            _ => None,
        }
    }
}

/// A lease that the client was granted.
struct ClientLease {
    key: String,
    host_id: String,
    /// True if the lease may have ended, since it was released or a fault may have ended it.
    may_be_over: bool,
}

/// Model of the client's knowledge about its leases and keys.
#[derive(Default)]
struct Client {
    /// All leases that the client was ever granted, by id.
    told: BTreeMap<String, ClientLease>,
    keys: BTreeSet<String>,
    /// Hosts that are disconnected from a recruiter.
    hidden: BTreeSet<String>,
    last_key: u64,
    rebuilt_ms: Vec<u128>,
    granted: u64,
    refused: u64,
    unanswered: u64,
}

impl Client {
    /// Takes in the leases of an answer. The client may know another lease of the same key, which the
    /// recruiter did not see when it granted this one. The request that got this answer ends the other lease.
    fn hear(&mut self, key: &str, leases: &Value) {
        for (id, told) in &mut self.told {
            let is_it = leases[0]["lease_id"] == id.as_str();
            told.may_be_over |= told.key == key && !is_it;
        }
        for lease in leases.as_array().unwrap() {
            let id = lease["lease_id"].as_str().unwrap().to_owned();
            let host_id = lease["host_id"].as_str().unwrap().to_owned();
            assert_eq!(lease["key"], key);
            let told = self.told.entry(id.clone()).or_insert_with(|| ClientLease {
                key: key.to_owned(),
                host_id: host_id.clone(),
                may_be_over: false,
            });
            assert_eq!(
                (told.key.as_str(), &told.host_id),
                (key, &host_id),
                "{id} was granted twice"
            );
        }
    }

    /// Makes one random request to a random recruiter.
    fn ask(&mut self, cluster: &Cluster, random: &mut Random) {
        let recruiter = &cluster.recruiters[random.below(RECRUITERS as u64) as usize];
        let known = |client: &Self, random: &mut Random| {
            let n = random.below(client.told.len().max(1) as u64) as usize;
            client.told.keys().nth(n).cloned()
        };
        match random.below(10) {
            0..=4 => {
                self.last_key += 1;
                let key = format!("key-{}", self.last_key);
                self.ask_for(cluster, random, &key);
            }
            5 | 6 => {
                let n = random.below(self.keys.len().max(1) as u64) as usize;
                if let Some(key) = self.keys.iter().nth(n).cloned() {
                    self.ask_for(cluster, random, &key);
                }
            }
            7 | 8 => {
                if let Some(id) = known(self, random) {
                    let term = json!({ "term_ms": TERM_MS });
                    let answer =
                        recruiter.ask("POST", &format!("/v1/leases/{id}/renew"), Some(&term));
                    if let Ok((404, answer)) = answer {
                        let told = &self.told[&id];
                        assert!(
                            told.may_be_over || self.hidden.contains(&told.host_id),
                            "{id} of {} is unknown: {answer}",
                            told.host_id
                        );
                    }
                }
            }
            _ => {
                if let Some(id) = known(self, random) {
                    self.release(cluster, random, &id);
                }
            }
        }
    }

    fn ask_for(&mut self, cluster: &Cluster, random: &mut Random, key: &str) {
        let recruiter = &cluster.recruiters[random.below(RECRUITERS as u64) as usize];
        self.keys.insert(key.to_owned());
        match recruiter.ask("POST", "/v1/leases", Some(&lease_request(key, TERM_MS))) {
            Ok((200 | 201, answer)) => {
                assert_eq!(answer["leases"].as_array().unwrap().len(), 1, "{answer}");
                self.granted += 1;
                self.hear(key, &answer["leases"]);
            }
            Ok((status, refusal)) => {
                self.refused += 1;
                let is_readable = refusal["detail"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty());
                assert!(
                    (400..600).contains(&status) && is_readable,
                    "{status}: {refusal}"
                );
            }
            Err(_) => self.unanswered += 1,
        }
    }

    fn release(&mut self, cluster: &Cluster, random: &mut Random, id: &str) {
        let recruiter = &cluster.recruiters[random.below(RECRUITERS as u64) as usize];
        let told = self.told.get_mut(id).unwrap();
        // Whatever the answer is, the release may have an effect, now or when the network is healed.
        told.may_be_over = true;
        self.keys.remove(&told.key);
        let _ = recruiter.ask("DELETE", &format!("/v1/leases/{id}"), None);
    }

    fn may_be_over(&mut self, host_id: &str) {
        let of_host = self
            .told
            .values_mut()
            .filter(|told| told.host_id == host_id);
        of_host.for_each(|told| told.may_be_over = true);
    }

    /// Asserts that the leases that the hosts report agree with the answers that the client received.
    fn check(&self, lending: &[(String, LendingState)]) {
        let mut seen = BTreeSet::new();
        for (host_id, lending) in lending {
            let mut keys = BTreeSet::new();
            let mut lent_bytes = 0;
            for lease in &lending.leases {
                assert!(
                    seen.insert(&lease.lease_id),
                    "{} is on two hosts",
                    lease.lease_id
                );
                assert!(
                    keys.insert(&lease.key),
                    "{} is there twice on {host_id}",
                    lease.key
                );
                if let Some(told) = self.told.get(&lease.lease_id) {
                    assert_eq!((&told.host_id, &told.key), (host_id, &lease.key));
                }
                lent_bytes += lease.remaining_bytes;
            }
            assert_eq!(lent_bytes, lending.quota.lent_bytes);
            assert!(lent_bytes <= CAP_BYTES, "{host_id} lends {lent_bytes}");
            assert!(
                lent_bytes <= lending.quota.quota_bytes,
                "{host_id}: {:?}",
                lending.quota
            );
        }
        for (id, told) in &self.told {
            let lost = !told.may_be_over && !seen.contains(id);
            assert!(!lost, "{id} ({}) of {} was lost", told.key, told.host_id);
        }
    }
}

fn lending(cluster: &Cluster) -> Vec<(String, LendingState)> {
    cluster
        .hosts
        .iter()
        .map(|host| (host.id.clone(), host.lending()))
        .collect()
}

/// Ends all faults. Waits until the recruiters know every lease, and records how long that takes.
fn heal(cluster: &mut Cluster, faults: &[Fault], client: &mut Client) {
    let was_killed = faults
        .iter()
        .any(|f| matches!(f, Fault::KillRecruiter(_) | Fault::KillAllRecruiters));
    for host in &mut cluster.hosts {
        host.signal(Signal::CONT);
        host.cables.iter().for_each(|cable| cable.hold(false));
        host.restart();
        host.agent.owner_leaves();
    }
    let begin = Instant::now();
    for recruiter in &mut cluster.recruiters {
        recruiter.signal(Signal::CONT);
        recruiter.restart();
    }
    cluster.agrees();
    wait_for("all hosts to lend", || {
        cluster
            .hosts
            .iter()
            .all(|host| host.lending().quota.quota_bytes == CAP_BYTES)
    });
    if was_killed && faults.len() == 1 {
        client.rebuilt_ms.push(begin.elapsed().as_millis());
    }
}

/// Requests a lease with each key again. After that, each key has only one lease, wherever it was granted.
fn settle(cluster: &Cluster, random: &mut Random, client: &mut Client) {
    for key in client.keys.clone() {
        let recruiter = &cluster.recruiters[random.below(RECRUITERS as u64) as usize];
        wait_for("an answer", || {
            let answer = recruiter.ask("POST", "/v1/leases", Some(&lease_request(&key, TERM_MS)));
            let Ok((status, answer)) = answer else {
                return false;
            };
            if matches!(status, 200 | 201) {
                client.hear(&key, &answer["leases"]);
            }
            matches!(status, 200 | 201) || answer["kind"] == "no_memory"
        });
        wait_for("one lease of a key", || {
            let all = lending(cluster);
            all.iter()
                .flat_map(|(_, l)| &l.leases)
                .filter(|lease| lease.key == key)
                .count()
                <= 1
        });
    }
}

#[test]
fn whatever_fails_nothing_is_granted_twice_lost_or_left_behind() {
    let mut random = Random::new();
    let mut cluster = Cluster::start(HOSTS, RECRUITERS);
    let mut client = Client::default();
    for round in 0..number("GLEANER_KILL_ROUNDS", 20) {
        let faults: Vec<Fault> = (0..=random.below(3))
            .map(|_| Fault::any(&mut random))
            .collect();
        println!("round {round}: {faults:?}");
        for _ in 0..random.below(4) {
            client.ask(&cluster, &mut random);
        }
        for fault in &faults {
            if let Some(n) = fault.takes_leases_of() {
                let host_id = cluster.hosts[n].id.clone();
                client.may_be_over(&host_id);
            }
            if let Some(n) = fault.hides() {
                client.hidden.insert(cluster.hosts[n].id.clone());
            }
            fault.begin(&mut cluster);
            std::thread::sleep(Duration::from_millis(random.below(100)));
            client.ask(&cluster, &mut random);
        }
        for _ in 0..ASKS_A_ROUND {
            client.ask(&cluster, &mut random);
            std::thread::sleep(Duration::from_millis(random.below(100)));
        }
        for fault in &faults {
            let stopped = |n: usize| {
                faults.contains(&Fault::StopHost(n)) || faults.contains(&Fault::KillHost(n))
            };
            if let Fault::OwnerReturns(n) = *fault
                && !stopped(n)
            {
                // After the owner's return, this host lends nothing, even if requests were in progress.
                let lending = cluster.hosts[n].lending();
                let left = (
                    lending.leases.len(),
                    lending.resident_bytes,
                    lending.quota.quota_bytes,
                );
                assert_eq!(left, (0, 0, 0), "after the owner's return");
            }
        }
        // Leases that were granted in this round on hosts with a fault may have ended too.
        for host in faults.iter().filter_map(|fault| fault.takes_leases_of()) {
            let host_id = cluster.hosts[host].id.clone();
            client.may_be_over(&host_id);
        }
        heal(&mut cluster, &faults, &mut client);
        client.hidden.clear();
        client.check(&lending(&cluster));
        settle(&cluster, &mut random, &mut client);
        cluster.agrees();
        client.check(&lending(&cluster));
        let all = lending(&cluster);
        let live = all.iter().flat_map(|(_, lending)| &lending.leases);
        let over: Vec<String> = live
            .skip(KEPT)
            .map(|lease| lease.lease_id.clone())
            .collect();
        for id in over {
            if client.told.contains_key(&id) {
                client.release(&cluster, &mut random, &id);
            }
        }
    }
    assert_all_reclaimed(&cluster, &mut client);
    client.rebuilt_ms.sort_unstable();
    assert!(client.granted > 0, "nothing was granted");
    println!(
        "{} granted, {} refused, {} unanswered; recruiters that were killed knew all again after {:?} ms",
        client.granted, client.refused, client.unanswered, client.rebuilt_ms
    );
}

/// Asserts that all leases can be found and released, also those that the client does not know.
fn assert_all_reclaimed(cluster: &Cluster, client: &mut Client) {
    wait_for("all to be given back", || {
        let (_, answer) = cluster.recruiters[0]
            .ask("GET", "/v1/leases", None)
            .unwrap();
        for lease in answer["leases"].as_array().unwrap() {
            let path = format!("/v1/leases/{}", lease["lease_id"].as_str().unwrap());
            let _ = cluster.recruiters[0].ask("DELETE", &path, None);
        }
        lending(cluster)
            .iter()
            .all(|(_, lending)| lending.leases.is_empty())
    });
    client
        .told
        .values_mut()
        .for_each(|told| told.may_be_over = true);
    client.check(&lending(cluster));
    for (host_id, lending) in lending(cluster) {
        let left = (
            lending.quota.lent_bytes,
            lending.resident_bytes,
            lending.quota.unleased_bytes,
        );
        assert_eq!(left, (0, 0, CAP_BYTES), "left behind on {host_id}");
    }
    cluster.agrees();
}
