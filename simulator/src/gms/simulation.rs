//! One simulation, and its comparison with the same clients without other nodes' memory.

use super::cluster::Cluster;
use super::error::GmsError;
use super::outcome::Outcome;
use super::scenario::Scenario;

/// Simulates a cluster. The same scenario and seed give the same outcome.
///
/// # Errors
/// [`GmsError::Scenario`] names a setting outside its range; [`GmsError::Unfinished`];
/// [`GmsError::Violation`] is a defect of the simulation.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Outcome, GmsError> {
    scenario.check()?;
    Cluster::new(scenario, seed).run()
}

/// Speedup of each client: its time without other nodes' memory over its time with it.
#[must_use]
pub fn speedups(without: &Outcome, with: &Outcome) -> Vec<f64> {
    let pairs = without.clients.iter().zip(&with.clients);
    let speedup = pairs.map(|(a, b)| a.elapsed_ns as f64 / b.elapsed_ns.max(1) as f64);
    speedup.collect()
}
