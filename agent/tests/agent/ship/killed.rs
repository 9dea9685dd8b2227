//! The shipper is killed repeatedly while it works and the sampler writes.
//!
//! `GLEANER_KILL_ROUNDS` (20) sets the number of times; `GLEANER_SEED` repeats a run.

use super::{acknowledged, is_whole, last_sequence, ship, traced};
use crate::agent;
use crate::collector::Collector;
use crate::running::{Running, wait_for};
use gleaner_harness::{Random, number};

/// Number of the system call clock_nanosleep on x86-64, and elsewhere.
const SLEEPS: [u32; 2] = [230, 115];

#[test]
fn killed_at_work_again_and_again_every_record_arrives_once() {
    let rounds = number("GLEANER_KILL_ROUNDS", 20);
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "5");
    let collector = Collector::start();
    let mut run = agent();
    run.arg("--database")
        .arg(&database)
        .args(["run", "--sample-interval", "100ms"]);
    let sampler = Running::start(&mut run);
    sampler.hear("sampling every");
    let (mut unacknowledged, mut asked) = (0, 0);
    for _ in 0..rounds {
        let shipper = Running::start(&mut ship(&database, &collector.url(), ""));
        shipper.hear("shipping");
        let requests = collector.state().requests_count;
        // Half of the kills come after at least three requests, the others at any point.
        if random.below(2) == 0 {
            wait_for("a request", || {
                collector.state().requests_count > requests + 2
            });
        }
        shipper.stop_at_work(&SLEEPS, &mut random);
        shipper.kill();
        asked += usize::from(collector.state().requests_count > requests);
        let mark = collector
            .state()
            .databases
            .values()
            .map(|kept| kept.mark)
            .max();
        // The collector has accepted records whose acknowledgement the database does not have yet.
        unacknowledged += usize::from(mark > acknowledged(&database));
    }
    println!(
        "{rounds} rounds, all at work; {asked} after a request, {unacknowledged} before an answer was written down"
    );
    assert!(asked > 0);

    assert_eq!(sampler.end().0, Some(0));
    let shipper = Running::start(&mut ship(&database, &collector.url(), ""));
    let last = last_sequence(&database);
    wait_for("the rest", || collector.state().only().mark == last);
    assert_eq!(shipper.end().0, Some(0));
    let state = collector.state();
    is_whole(state.only(), &database);
    assert!(
        state.taken.iter().all(|batch| !batch.repeated),
        "the collector is asked before anything is sent"
    );
}
