//! Approximate mean value analysis of closed chains, for populations that are too large for the exact one
//! (Schweitzer 1979; Lazowska et al. 1984, chapter 7).

use super::demand::{ClosedDemands, ClosedMeans};
use super::error::QueueingError;

/// Most rounds until queue lengths must have settled.
const MOST_ROUNDS: u32 = 100_000;
/// Change of a queue length in a round, as a share of all customers, at which it has settled.
const SETTLED: f64 = 1e-12;

/// Solves the chains of `demands`. An arriving customer is assumed to find all customers of the other chains, and of
/// its own chain all but its own share of their mean number there.
///
/// # Errors
/// [`QueueingError::NotConverged`].
pub(super) fn solve(demands: &ClosedDemands) -> Result<ClosedMeans, QueueingError> {
    let centres = demands.disciplines.len();
    let customers: f64 = demands.chains.iter().map(|c| f64::from(c.customers)).sum();
    let evenly = |customers: u32| vec![f64::from(customers) / centres as f64; centres];
    let mut queue_lengths: Vec<Vec<f64>> =
        demands.chains.iter().map(|c| evenly(c.customers)).collect();
    for _ in 0..MOST_ROUNDS {
        let mut totals = vec![0.0; centres];
        for own in &queue_lengths {
            for (total, length) in totals.iter_mut().zip(own) {
                *total += length;
            }
        }
        let mut change = 0.0_f64;
        let mut means = ClosedMeans::default();
        for (chain, own) in demands.chains.iter().zip(&mut queue_lengths) {
            let customers = f64::from(chain.customers);
            let found = totals.iter().zip(own.iter());
            let found = found.map(|(total, own)| (total - own / customers).max(0.0));
            let residences_s = demands.residences_s(chain, found);
            let throughput_per_s = customers / residences_s.iter().sum::<f64>();
            for (length, residence_s) in own.iter_mut().zip(&residences_s) {
                let new = throughput_per_s * residence_s;
                change = change.max((new - *length).abs());
                *length = new;
            }
            means.throughputs_per_s.push(throughput_per_s);
            means.residences_s.push(residences_s);
        }
        if change <= SETTLED * customers {
            return Ok(means);
        }
    }
    Err(QueueingError::NotConverged {
        rounds: MOST_ROUNDS,
    })
}
