//! Tests `kill -9` of the collector at random moments with batches in progress. All acknowledged records are
//! in the dataset. After the senders have repeated the other records, every row is there once.

use crate::made::{body, id, sequences};
use crate::running::{Collector, agent, try_post};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SENDERS: u64 = 4;
const BATCH: i64 = 7;

/// A host that sends its records in order, and repeats each batch until it is acknowledged.
struct Sender {
    host: String,
    acknowledged: AtomicU64,
    in_flight: AtomicBool,
}

fn send(sender: &Sender, url: &Mutex<String>, stop: &AtomicBool) {
    let agent = agent();
    while !stop.load(Ordering::SeqCst) {
        let last = i64::try_from(sender.acknowledged.load(Ordering::SeqCst)).unwrap();
        let batch = body(&sender.host, &id(9), last + 1..=last + BATCH);
        let url = format!("{}/v1/batches", url.lock().unwrap());
        sender.in_flight.store(true, Ordering::SeqCst);
        let sent = try_post(&agent, &url, &batch);
        sender.in_flight.store(false, Ordering::SeqCst);
        match sent {
            Ok((200, answer)) => {
                let last = answer["acknowledged_sequence"].as_u64().unwrap();
                sender.acknowledged.store(last, Ordering::SeqCst);
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => thread::sleep(Duration::from_millis(5)), // the collector was killed
        }
    }
}

#[test]
fn killed_at_any_moment_it_loses_nothing_and_repeats_nothing() {
    let rounds: u32 = std::env::var("GLEANER_KILL_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(20);
    let folder = tempfile::tempdir().unwrap();
    let config = "seal_after = \"100ms\"\ndisk_reserve = \"1MiB\"";
    let url = Arc::new(Mutex::new(String::from("http://127.0.0.1:1")));
    let stop = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..SENDERS)
        .map(|n| {
            Arc::new(Sender {
                host: id(n),
                acknowledged: AtomicU64::new(0),
                in_flight: AtomicBool::new(false),
            })
        })
        .collect();
    let threads: Vec<_> = senders
        .iter()
        .map(|sender| {
            let (sender, url, stop) = (sender.clone(), url.clone(), stop.clone());
            thread::spawn(move || send(&sender, &url, &stop))
        })
        .collect();

    let (mut struck, mut round) = (0, 0);
    while struck < rounds {
        round += 1;
        assert!(
            round < rounds * 10,
            "work was in flight at {struck} of {round} kills"
        );
        let collector = Collector::start(folder.path(), config);
        *url.lock().unwrap() = collector.url.clone();
        for sender in &senders {
            let acknowledged = sender.acknowledged.load(Ordering::SeqCst);
            let told = collector.mark(&sender.host, &id(9)).unwrap_or(0);
            assert!(
                u64::try_from(told).unwrap() >= acknowledged,
                "{told} {acknowledged}"
            );
        }
        thread::sleep(Duration::from_micros(20_000 + random() % 300_000));
        let in_flight = senders.iter().any(|s| s.in_flight.load(Ordering::SeqCst));
        collector.kill();
        struck += u32::from(in_flight);
    }

    let collector = Collector::start(folder.path(), config);
    *url.lock().unwrap() = collector.url.clone();
    stop.store(true, Ordering::SeqCst);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    collector.seal();
    for sender in &senders {
        let last = i64::try_from(sender.acknowledged.load(Ordering::SeqCst)).unwrap();
        let found = sequences(&collector.dataset(), &sender.host);
        assert!(last > 0);
        // A batch may have become durable without an acknowledgement; then the sender repeats it. In the end
        // all batches are acknowledged.
        let expected: Vec<i64> = (1..=i64::try_from(found.len()).unwrap()).collect();
        assert_eq!(found, expected, "{}", sender.host);
        assert!((last..=last + BATCH).contains(found.last().unwrap()));
    }
    let damaged = std::fs::read_dir(collector.data().join("journal")).unwrap();
    let damaged = damaged.filter(|e| {
        e.as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|e| e == "damaged")
    });
    assert_eq!(damaged.count(), 0);
    let dataset = gleaner_dataset::Dataset::open(collector.dataset()).unwrap();
    assert_eq!(dataset.verify().problems, []);
}

/// Random number for the time of a kill, taken from the clock.
fn random() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::from(now.subsec_nanos()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}
