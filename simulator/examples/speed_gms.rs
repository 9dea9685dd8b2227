//! `cargo run --release -p gleaner-simulator --example speed_gms [SECONDS]` prints the speed of simulations of global
//! memory on one core: events per second of one client, and the time for a cluster of 1,000 nodes with 10 faults per
//! second each, for SECONDS (default: 3,600, which takes some 1.5 GB of memory). Faults include those of the first
//! reading of all pages, which fill the idle memory and come faster, so that the simulated time is shorter.

use gleaner_simulator::gms::{ClientOutcome, Outcome, Program, Scenario, simulate};
use std::time::{Duration, Instant};

/// Compute time between faults of a node with 10 faults per second.
const COMPUTE_US: u32 = 97_900;
/// Nodes that fault, and nodes with idle memory.
const CLIENTS: u32 = 500;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds: u32 = match std::env::args().nth(1) {
        Some(seconds) => seconds.parse()?,
        None => 3_600,
    };
    let hits = Scenario {
        programs: vec![Program::VlsiRouter],
        client_frames: 14_000,
        ..Scenario::default()
    };
    print("one client, mostly local hits", &hits)?;
    let faults = Scenario {
        counted_faults: 300_000,
        idle_frames: 20_000,
        ..Scenario::default()
    };
    print("one client, mostly faults", &faults)?;
    // Each of 500 clients faults 20 times per second: 10 for each of 1,000 nodes.
    let large = Scenario {
        clients: CLIENTS,
        idle_nodes: CLIENTS,
        client_frames: 512,
        idle_frames: CLIENTS * 16_500,
        counted_faults: (seconds * 20).saturating_sub(Program::Oo7.pages()).max(1),
        compute_us: COMPUTE_US / 2,
        ..Scenario::default()
    };
    print("1,000 nodes", &large)
}

fn print(name: &str, scenario: &Scenario) -> Result<(), Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let outcome = simulate(scenario, 1)?;
    let took = begun.elapsed();
    let Outcome {
        clients,
        events,
        end_ns,
        ..
    } = outcome;
    let local: u64 = clients.iter().map(|client| client.reads.local).sum();
    let faults_of = |client: &ClientOutcome| {
        client.reads.cluster + client.reads.source + u64::from(client.program.pages())
    };
    let faults: u64 = clients.iter().map(faults_of).sum();
    let per_s = |count: u64| count as f64 / took.as_secs_f64() / 1e6;
    println!(
        "{name}: {:.1} s for {:.0} simulated s; {local} local hits after the first reading, {faults} faults; {:.2} million events/s, {:.3} million faults/s",
        took.as_secs_f64(),
        Duration::from_nanos(end_ns).as_secs_f64(),
        per_s(events),
        per_s(faults),
    );
    Ok(())
}
