//! `replay FILE POLICY CAPACITY…` replays a stream in oracleGeneral through caches of several sizes
//! concurrently. Each size is in objects (`1000`) or in bytes (`1000B`). Prints one line of JSON per cache,
//! and the CPU time of the whole run, beginning with opening the file (bench/cache.py).

use gleaner_policy::eviction::Policy;
use gleaner_simulator::cache::{Cache, Capacity, replay};
use gleaner_simulator::streams::read::{Format, open};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: replay FILE POLICY CAPACITY[B]...";
    let path = args.next().ok_or(usage)?;
    let policy = args.next().ok_or(usage)?.parse::<Policy>()?;
    let caches = args.map(|size| {
        let capacity = match size.strip_suffix('B') {
            Some(bytes) => Capacity::Bytes(bytes.parse()?),
            None => Capacity::Objects(size.parse()?),
        };
        Ok(Cache { policy, capacity })
    });
    let caches = caches.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let began_s = cpu_s();
    let counts = replay(open(path.as_ref(), &Format::OracleGeneral, 0)?, &caches)?;
    let seconds = cpu_s() - began_s;
    for (cache, counts) in caches.iter().zip(counts) {
        let (requests, misses, bytes, missed_bytes) = (
            counts.requests,
            counts.misses,
            counts.bytes,
            counts.missed_bytes,
        );
        let capacity = match cache.capacity {
            Capacity::Objects(objects) => format!("{objects}"),
            Capacity::Bytes(bytes) => format!("{bytes}B"),
        };
        println!(
            r#"{{"policy":"{}","capacity":"{capacity}","requests":{requests},"misses":{misses},"bytes":{bytes},"missed_bytes":{missed_bytes},"seconds":{seconds}}}"#,
            policy.name()
        );
    }
    Ok(())
}

/// CPU time that this process has used so far.
fn cpu_s() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
