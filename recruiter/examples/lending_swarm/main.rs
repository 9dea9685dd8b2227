//! Runs a cluster's memory servers and clients in one process, for benchmarks. Each host has its own
//! WebSocket and grants leases by the real rules (`policy::lending`). Its quota rises and falls.
//!
//! ```text
//! lending_swarm --url 127.0.0.1:7484 --hosts 10000 --seconds 120 --rate 50           plain, to a recruiter with local_access = "all"
//! lending_swarm --url 127.0.0.1:7444 --local 127.0.0.1:7484 --pki DIR --hosts 10000   hosts by mutual TLS, clients plainly
//! lending_swarm --pki DIR --hosts 10000 --seconds 0                                   certificates alone, and an authority
//! ```
//!
//! Prints JSON.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod certificates;
mod clients;
mod host;

use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Arguments of the program.
struct Args {
    /// URL that hosts connect to.
    url: String,
    /// URL of the clients' requests, without TLS.
    local: String,
    pki: Option<PathBuf>,
    hosts: usize,
    /// Time in s to run after all hosts are linked.
    seconds: u64,
    announce_every: Duration,
    /// Number of leases requested per second.
    rate: f64,
    clients: usize,
    /// Time for which a lease is kept.
    keep: Duration,
    bytes: u64,
}

/// Sums over all hosts.
#[derive(Default)]
struct Sums {
    linked: AtomicU64,
    lost: AtomicU64,
    announcements: AtomicU64,
    announced_bytes: AtomicU64,
    requests: AtomicU64,
}

fn main() {
    let args = args();
    let configs: Vec<Option<Arc<ClientConfig>>> = match &args.pki {
        Some(pki) => certificates::of_hosts(pki, args.hosts)
            .into_iter()
            .map(Some)
            .collect(),
        None => vec![None; args.hosts],
    };
    if args.seconds == 0 {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let sums = Arc::new(Sums::default());
    let begin = Instant::now();
    for (n, tls) in configs.into_iter().enumerate() {
        let host = host::Host::new(n, args.hosts, args.announce_every, sums.clone());
        runtime.spawn(host.run(args.url.clone(), tls));
    }
    while (sums.linked.load(Ordering::Relaxed) as usize) < args.hosts {
        assert!(
            begin.elapsed() < Duration::from_secs(600),
            "not all hosts could link"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let linking = begin.elapsed();
    eprintln!("{} hosts linked after {linking:?}", args.hosts);
    // Waits for one interval, in which every host announces itself on its own schedule.
    std::thread::sleep(args.announce_every);

    let of = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
    let (announcements, bytes) = (of(&sums.announcements), of(&sums.announced_bytes));
    println!("begin"); // measurements of the recruiter begin here
    let begin = Instant::now();
    let asked = clients::run(&args);
    let seconds = begin.elapsed().as_secs_f64();
    println!("end");
    let found = serde_json::json!({
        "hosts": args.hosts,
        "tls": args.pki.is_some(),
        "linking_s": linking.as_secs_f64(),
        "seconds": seconds,
        "announcements_per_second": (of(&sums.announcements) - announcements) as f64 / seconds,
        "announced_bytes_per_second": (of(&sums.announced_bytes) - bytes) as f64 / seconds,
        "requests": of(&sums.requests),
        "links_lost": of(&sums.lost),
        "clients": asked,
    });
    println!("{found}");
    std::process::exit(0); // ten thousand connections are closed by the kernel
}

fn args() -> Args {
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    let mut words = std::env::args().skip(1);
    while let Some(key) = words.next() {
        given.insert(key, words.next().expect("a value after each option"));
    }
    let number = |key: &str, or: f64| given.get(key).map_or(or, |v| v.parse().expect(key));
    let url = given.get("--url").cloned().unwrap_or_default();
    Args {
        local: given.get("--local").cloned().unwrap_or_else(|| url.clone()),
        url,
        pki: given.get("--pki").map(PathBuf::from),
        hosts: number("--hosts", 100.0) as usize,
        seconds: number("--seconds", 60.0) as u64,
        announce_every: Duration::from_secs_f64(number("--announce-seconds", 10.0)),
        rate: number("--rate", 50.0),
        clients: number("--clients", 8.0) as usize,
        keep: Duration::from_secs_f64(number("--keep-seconds", 20.0)),
        bytes: number("--mib", 64.0) as u64 * (1 << 20),
    }
}

fn host_id(n: usize) -> String {
    format!(
        "{:032x}",
        (n as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    )
}
