//! The network to a memory server is cut, or the recruiter is killed, while pages are on memory servers.
//! Programs continue to write and verify, and no page may be wrong or lost.

use super::clerk::{Clerk, DEVICE, Lenders};
use super::load::{Load, Outcome};
use super::partition::{cut, heal, plug, reset};
use crate::delivery::running::{number, wait_for};
use gleaner_paging::nbd::client::Server;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Number of pages of each program. Both programs together use three quarters of the device.
const PAGES: usize = (24 * MIB / 4096) as usize;
const PROGRAMS: u64 = 2;
/// Maximum time of a request. The clerk waits two seconds for a silent server (`answer_timeout`), and ten if
/// no other server has the page (`request_timeout`). The rest is for a busy machine.
const NO_HANG: Duration = Duration::from_secs(60);
/// Time for which the programs continue after a fault was noticed, before the fault is ended.
const AFTER: Duration = Duration::from_secs(2);

/// Programs that write to the device and know what each page must contain.
struct Loads(Vec<Load>);

impl Loads {
    /// Starts the programs, and waits until three quarters of their pages are on servers and both hosts have
    /// some.
    fn start(lenders: &Lenders, clerk: &Clerk) -> Self {
        let device = Server::Unix(lenders.file(DEVICE));
        let load = |at| {
            let own = (at * PAGES as u64, PAGES);
            let mut load = Load::new((&device, ""), own, at, NO_HANG);
            load.write_all();
            load
        };
        let mut loads: Vec<Load> = (0..PROGRAMS).map(load).collect();
        wait_for("leases for what was written", || {
            // Pages written before the leases arrived are on disk, and move to servers when they are read.
            loads.iter_mut().for_each(Load::check_all);
            let used = used_bytes(&clerk.status());
            used[0].min(used[1]) > 0 && used[0] + used[1] >= PROGRAMS * 24 * MIB * 3 / 4
        });
        Self(loads)
    }

    /// Runs `work` while the programs run.
    fn during(&mut self, work: impl FnOnce()) {
        let has_ended = AtomicBool::new(false);
        let has_ended = &has_ended;
        std::thread::scope(|scope| {
            for load in &mut self.0 {
                scope.spawn(move || {
                    while !has_ended.load(Ordering::Relaxed) {
                        load.step();
                    }
                });
            }
            // If `work` panics, the programs must end nevertheless.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            has_ended.store(true, Ordering::Relaxed);
            done.unwrap();
        });
    }

    fn outcomes(&self) -> Vec<Outcome> {
        self.0.iter().map(|load| load.outcome).collect()
    }

    /// Asserts that every page contains what was last written to it, and that no request failed.
    #[track_caller]
    fn are_whole(&mut self, clerk: &Clerk) {
        self.0.iter_mut().for_each(Load::check_all);
        let status = clerk.status();
        let counters = &status["counters"];
        let trouble = [
            "lost_pages_count",
            "corrupt_pages_count",
            "failed_requests_count",
        ]
        .map(|key| counters[key].as_u64());
        assert_eq!(trouble, [Some(0); 3], "{status}");
        let outcomes = self.outcomes();
        assert!(outcomes.iter().all(|one| one.errors == 0), "{outcomes:?}");
    }
}

/// Bytes that the clerk uses on each of the two hosts, in the order of the hosts' numbers.
fn used_bytes(status: &Value) -> [u64; 2] {
    let servers = status["servers"].as_array().unwrap();
    [0, 1].map(|n: u64| {
        let id = format!("{:032x}", 0xa0 + n);
        let own = servers
            .iter()
            .filter(|server| server["host"] == id.as_str());
        own.filter_map(|server| server["used_bytes"].as_u64()).sum()
    })
}

/// Returns `Some(true)` if the clerk is connected to all of a host's servers, `Some(false)` if to none, and
/// otherwise `None`.
fn is_up(status: &Value, host: &str) -> Option<bool> {
    let servers = status["servers"].as_array().unwrap();
    let own = servers.iter().filter(|server| server["host"] == host);
    let states: BTreeSet<bool> = own.map(|server| server["state"] == "up").collect();
    match states.len() {
        1 => states.first().copied(),
        _ => None,
    }
}

#[test]
fn a_network_cut_while_pages_are_at_servers_costs_no_page_and_no_request() {
    let lenders = Lenders::start();
    let clerk = Clerk::start_with(&lenders, "placement = \"spread\"");
    let mut loads = Loads::start(&lenders, &clerk);
    // Three rounds by default, one for each kind of cut; `make soak` has more.
    let rounds = 2 + number("GLEANER_KILL_ROUNDS", 20) / 20;
    for round in 0..rounds {
        let host = &lenders.hosts[(round % 2) as usize];
        let recruiter = &lenders.recruiter;
        let what = ["silent", "reset", "pulled out"][(round % 3) as usize];
        let (mut noticed_after, mut healed_after) = (Duration::ZERO, Duration::ZERO);
        loads.during(|| {
            let began = Instant::now();
            match what {
                "silent" => cut(recruiter, host),
                "reset" => reset(recruiter, host),
                _ => plug(recruiter, host, false),
            }
            wait_for("the clerk to miss a host", || {
                is_up(&clerk.status(), &host.id) == Some(false)
            });
            noticed_after = began.elapsed();
            std::thread::sleep(AFTER);
            let began = Instant::now();
            match what {
                "pulled out" => plug(recruiter, host, true),
                _ => heal(recruiter, host),
            }
            wait_for("the clerk to have it again", || {
                is_up(&clerk.status(), &host.id) == Some(true)
            });
            healed_after = began.elapsed();
        });
        loads.are_whole(&clerk);
        println!(
            "{what}: noticed after {noticed_after:?}, healed after {healed_after:?}; {:?}",
            loads.outcomes()
        );
    }
    let held: usize = lenders.leases().iter().sum();
    assert!(held > 0);
}

#[test]
fn a_recruiter_killed_while_pages_are_at_servers_finds_their_leases_again() {
    let lenders = Lenders::start();
    let clerk = Clerk::start_with(&lenders, "placement = \"spread\"");
    let mut loads = Loads::start(&lenders, &clerk);
    let held = || -> BTreeSet<String> {
        let hosts = lenders.hosts.iter();
        hosts.flat_map(super::partition::Host::leases).collect()
    };
    let known = || -> BTreeSet<String> {
        let (status, answer) = lenders.recruiter.get("/v1/leases");
        assert_eq!(status, 200, "{answer}");
        let leases = answer["leases"].as_array().unwrap().iter();
        leases
            .filter_map(|lease| Some(lease["lease_id"].as_str()?.to_owned()))
            .collect()
    };
    let before = held();
    assert!(!before.is_empty());
    loads.during(|| {
        lenders.recruiter.kill();
        wait_for("the hosts to miss their recruiter", || {
            let mut hosts = lenders.hosts.iter();
            hosts.all(|host| host.lending().linked_recruiters.is_empty())
        });
        std::thread::sleep(AFTER);
        // Without a recruiter, no lease was granted, and none was revoked.
        assert_eq!(held(), before);
        let began = Instant::now();
        lenders.recruiter.run();
        wait_for("the recruiter to know their leases", || {
            before.is_subset(&known()) && known() == held()
        });
        println!("known again after {:?}", began.elapsed());
        // Through the new recruiter, the clerk's renewals reach the hosts again: the remaining terms rise.
        let least = |leases: &BTreeSet<String>| {
            let hosts = lenders.hosts.iter().flat_map(|host| host.lending().leases);
            let own = hosts.filter(|lease| leases.contains(&lease.lease_id));
            own.map(|lease| lease.expires_in_ms).min().unwrap()
        };
        let (mut last, mut has_risen) = (i64::MAX, false);
        wait_for("renewals", || {
            let now = least(&before);
            has_risen |= now > last;
            last = now;
            has_risen
        });
    });
    loads.are_whole(&clerk);
    println!("{:?}", loads.outcomes());
    assert!(before.is_subset(&held()), "a lease was lost");
}
