//! Finds a program's compute time between two requests from one figure, the program's ideal speedup.
//!
//! The study scaled the traced programs' times to its client's processors and printed neither. It does print
//! each program's ideal speedup, which is the factor by which I/O slows the program down on that client. The
//! factor falls as the compute time grows, so it determines one compute time; no property of the clusters
//! enters.

use crate::applications::Application;
use crate::dodo::{Scenario, SimulationError, reference};

/// Number of times that the interval containing the compute time is halved.
const STEPS: u32 = 24;

/// Compute time before each request with which `application` has this ideal speedup on the scenario's client.
/// `None` if the speedup is smaller even without any compute time.
///
/// # Errors
/// [`SimulationError`].
pub fn calibrate(
    application: Application,
    ideal_speedup: f64,
    scenario: &Scenario,
) -> Result<Option<u64>, SimulationError> {
    let speedup = |think_ns| -> Result<f64, SimulationError> {
        let [baseline_ns, ideal_ns] = reference(scenario, &application.thinking(think_ns))?;
        Ok(baseline_ns as f64 / ideal_ns.max(1) as f64)
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
