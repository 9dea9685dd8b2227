//! Sampler, shipper and collector are ended in turn with `kill -9`, each while it works. All three are
//! restarted and continue.
//!
//! The environment variable `GLEANER_KILL_ROUNDS` (default 20) sets the number of rounds; `GLEANER_SEED`
//! repeats a run.

use super::relay::{Moment, Relay};
use super::running::{Collector, Host, Random, Running, number, wait_for};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Numbers of the system calls poll and ppoll on x86-64, and of ppoll elsewhere.
const POLLS: [u32; 3] = [7, 271, 73];

/// Configuration of a shipper with a long timeout, so that it waits while the relay stops a batch.
fn keys(relay: &Relay) -> String {
    format!("collector = \"{}\"\ntimeout = \"1m\"", relay.url())
}

/// Makes the relay stop a batch at one of three moments of its exchange. Then waits for a random time of up
/// to 20 ms.
fn stop_a_batch(relay: &Relay, turn: u64, random: &mut Random) -> Moment {
    let moment = match turn % 3 {
        0 => Moment::Within(random.below(1000) as usize),
        1 => Moment::Sent,
        _ => Moment::Answered,
    };
    relay.stop(moment);
    std::thread::sleep(Duration::from_micros(random.below(20_000)));
    moment
}

/// Waits until the collector writes files of the dataset, at most for the time between two seals. Returns
/// true if it writes.
fn comes_to_seal(dataset: &Path) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(1500) {
        let staged = fs::read_dir(dataset.join(".staging"));
        if staged.is_ok_and(|mut files| files.next().is_some()) {
            return true;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    false
}

#[test]
fn killed_at_work_in_turn_the_three_programs_lose_nothing_and_repeat_nothing() {
    let rounds = number("GLEANER_KILL_ROUNDS", 20);
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let host = Host::traced(folder.path(), "host", "1");
    let mut collector = Collector::start(folder.path(), "disk_reserve = \"1MiB\"");
    let relay = Relay::start(collector.local);
    let ship = || Running::start(&mut host.shipping(&keys(&relay)));
    let sample = || Running::start(&mut host.sampling());
    let (mut sampler, mut shipper) = (sample(), ship());
    let (mut untold, mut sealing) = (0, 0);
    for round in 0..rounds {
        sampler.hear("sampling every");
        let last = host.last_sequence();
        wait_for("a sample of this round", || host.last_sequence() > last + 1);
        sampler.stop_at_work(&POLLS, &mut random);
        sampler.kill();
        sampler = sample();

        if stop_a_batch(&relay, round, &mut random) == Moment::Answered {
            untold += u64::from(collector.mark(&host) > host.acknowledged());
        }
        shipper.kill();
        relay.go_on();
        shipper = ship();

        stop_a_batch(&relay, random.below(3), &mut random);
        if round % 2 == 0 {
            sealing += u32::from(comes_to_seal(&collector.dataset));
        }
        collector.running.kill();
        collector = Collector::start(folder.path(), "disk_reserve = \"1MiB\"");
        let kept = collector.mark(&host);
        let told = host.acknowledged().max(relay.acknowledged().unwrap_or(0));
        assert!(
            kept >= told,
            "{told} was acknowledged, and {kept} is durable"
        );
        relay.leads_to(collector.local);
        relay.go_on();
    }
    println!(
        "each killed {rounds} times at work: {untold} shippers had not heard that a batch was durable, {sealing} collectors \
         were sealing"
    );
    assert!(untold == rounds / 3 && sealing > 0);

    sampler.hear("sampling every");
    assert_eq!(sampler.end().0, Some(0));
    host.is_shipped();
    assert_eq!(shipper.end().0, Some(0));
    let rows = collector.holds(&[&host]);
    println!("{rows} rows, each once");
    let stopped: i64 = host.query("SELECT count(*) FROM gaps WHERE cause = 'stopped'");
    assert!(stopped >= rounds as i64);
}

/// The shipper times out and sends a batch again. Later the first copy of the batch arrives as well, and
/// changes nothing.
#[test]
fn a_batch_that_arrives_again_much_later_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::traced(folder.path(), "host", "3");
    let collector = Collector::start(folder.path(), "disk_reserve = \"1MiB\"");
    let relay = Relay::start(collector.local);
    let keys = format!("collector = \"{}\"\ntimeout = \"500ms\"", relay.url());
    let shipper = Running::start(&mut host.shipping(&keys));
    relay.stop(Moment::Kept);
    host.is_shipped();
    collector.seal();
    assert_eq!(collector.status()["seal"]["repeated_rows_count"], 0);
    let rows = collector.holds(&[&host]);
    relay.go_on();
    wait_for("the late batch to be taken in and left out", || {
        collector.seal();
        collector.status()["seal"]["repeated_rows_count"].as_u64() == Some(rows)
    });
    assert_eq!(collector.holds(&[&host]), rows);
    assert_eq!(shipper.end().0, Some(0));
}

/// The collector loses its marks of each host's progress, as after a power loss. The hosts send everything
/// again, and the dataset has each row once.
#[test]
fn a_collector_that_forgot_what_it_has_is_sent_all_again_and_keeps_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::traced(folder.path(), "host", "3");
    let collector = Collector::start(folder.path(), "disk_reserve = \"1MiB\"");
    let relay = Relay::start(collector.local);
    let shipper = Running::start(&mut host.shipping(&keys(&relay)));
    host.is_shipped();
    let rows = collector.holds(&[&host]);
    collector.running.kill();
    fs::remove_file(folder.path().join("data/hosts.json")).unwrap();
    let collector = Collector::start(folder.path(), "disk_reserve = \"1MiB\"");
    assert_eq!(collector.mark(&host), 0);
    relay.leads_to(collector.local);
    host.trace("2");
    host.is_shipped();
    assert!(collector.holds(&[&host]) > rows);
    let repeated = collector.status()["seal"]["repeated_rows_count"].clone();
    assert_eq!(repeated.as_u64(), Some(rows));
    assert_eq!(shipper.end().0, Some(0));
}
