//! The time that a program computes between two requests, found from one figure.
//!
//! The study scaled the traced programs' times to its client's processors and printed neither. What it prints is the ideal
//! speedup of each, which is by how much I/O slows the program down on that client. It falls as the program computes for longer, so
//! one time alone gives it; nothing about clusters comes into it.

use crate::applications::Application;
use crate::dodo::{Scenario, SimulationError, reference};

/// Halvings of the interval in which the time lies.
const STEPS: u32 = 24;

/// The time to compute before each request with which `application` has this ideal speedup on the scenario's client. `None` where it
/// has a smaller one however little it computes.
///
/// # Errors
/// [`SimulationError`].
pub fn calibrate(
    application: Application,
    ideal_speedup: f64,
    scenario: &Scenario,
) -> Result<Option<u64>, SimulationError> {
    let speedup = |think_ns| -> Result<f64, SimulationError> {
        let [without_ns, ideal_ns] = reference(scenario, &application.thinking(think_ns))?;
        Ok(without_ns as f64 / ideal_ns.max(1) as f64)
    };
    let (mut low_ns, mut high_ns) = (1_000, 60_000_000_000);
    if speedup(low_ns)? < ideal_speedup {
        return Ok(None);
    }
    for _ in 0..STEPS {
        let middle_ns = (low_ns as f64 * high_ns as f64).sqrt() as u64;
        if speedup(middle_ns)? > ideal_speedup {
            low_ns = middle_ns;
        } else {
            high_ns = middle_ns;
        }
    }
    Ok(Some(low_ns.midpoint(high_ns)))
}
