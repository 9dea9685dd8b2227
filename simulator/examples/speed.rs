//! `cargo run --release -p gleaner-simulator --example speed [-- PROGRAM ...]` prints simulated requests per
//! second on one core; requests pass through local cache, regions, network and disks. It simulates three days
//! on one host that is always idle, so that no event of a host interrupts. The reference runs count in the
//! time but not in the requests.

use gleaner_simulator::applications::Application;
use gleaner_simulator::dodo::{Scenario, simulate};
use gleaner_simulator::event::DAY;
use gleaner_simulator::hosts::Timeline;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("program  host lends  requests      local   remote     disk   million requests/s");
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |of: &Application| asked.is_empty() || asked.iter().any(|a| a == of.name());
    for application in Application::ALL.into_iter().filter(is_asked) {
        for lent_gib in [8, 1, 0] {
            let bytes = lent_gib << 30;
            let idle = Timeline::always_idle("idle", bytes);
            let scenario = Scenario {
                application,
                length_ns: 3 * DAY,
                reference_runs: 1,
                ..Scenario::default()
            };
            let begun = Instant::now();
            let counts = simulate(&scenario, &[idle])?.counts;
            let rate = counts.requests_count as f64 / begun.elapsed().as_secs_f64() / 1e6;
            let share = |of: u64| of as f64 / counts.requests_count as f64 * 100.0;
            println!(
                "{application:<8} {lent_gib:>6} GiB {:>9} {:>8.1} % {:>6.1} % {:>6.1} % {rate:>8.1}",
                counts.requests_count,
                share(counts.local_requests_count),
                share(counts.remote_requests_count),
                share(counts.disk_requests_count),
            );
        }
    }
    Ok(())
}
