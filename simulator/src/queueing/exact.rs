//! Exact mean value analysis of closed chains (Reiser and Lavenberg 1980; Lazowska, Zahorjan, Graham and Sevcik
//! 1984, chapters 6 and 7).

use super::demand::{ClosedDemands, ClosedMeans};
use super::error::QueueingError;

/// Most mean queue lengths that are kept, one for each centre and population: 32 MiB.
pub(super) const MOST_QUEUE_LENGTHS: usize = 1 << 22;

/// Solves the chains of `demands`, by recursion over all populations up to theirs.
///
/// By the arrival theorem, a customer that arrives at a centre finds there, in the mean, the customers of the same
/// network with one customer of its own chain fewer.
///
/// # Errors
/// [`QueueingError::TooLarge`]: there are too many populations.
pub(super) fn solve(demands: &ClosedDemands) -> Result<ClosedMeans, QueueingError> {
    let centres = demands.disciplines.len();
    // A population is a number in a mixed radix: each chain has a digit, from 0 to its customers.
    let mut strides = Vec::with_capacity(demands.chains.len());
    let mut populations = 1_usize;
    for chain in &demands.chains {
        strides.push(populations);
        populations = populations
            .checked_mul(chain.customers as usize + 1)
            .filter(|all| all.saturating_mul(centres) <= MOST_QUEUE_LENGTHS)
            .ok_or_else(|| QueueingError::TooLarge {
                chain: chain.name.clone(),
                most: MOST_QUEUE_LENGTHS,
            })?;
    }
    // Mean customers at each centre: first of the empty network, then of each population in order.
    let mut queue_lengths = vec![0.0; centres];
    queue_lengths.reserve_exact(centres * (populations - 1));
    let mut means = ClosedMeans::default();
    for population in 1..populations {
        means = ClosedMeans::default();
        let mut lengths = vec![0.0; centres];
        for (chain, stride) in demands.chains.iter().zip(&strides) {
            let customers = population / stride % (chain.customers as usize + 1);
            if customers == 0 {
                continue;
            }
            let found = queue_lengths.iter().skip((population - stride) * centres);
            let residences_s = demands.residences_s(chain, found.copied());
            let throughput_per_s = customers as f64 / residences_s.iter().sum::<f64>();
            for (length, residence_s) in lengths.iter_mut().zip(&residences_s) {
                *length += throughput_per_s * residence_s;
            }
            means.throughputs_per_s.push(throughput_per_s);
            means.residences_s.push(residences_s);
        }
        queue_lengths.extend(lengths);
    }
    Ok(means)
}
