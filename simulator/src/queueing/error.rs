//! Reasons why a network has no solution.

use std::ops::RangeInclusive;

/// A network that cannot be built, solved or simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueingError {
    /// A parameter is not a number, or is outside its range.
    #[error("{parameter} is {value}; it must be from {low} to {high}")]
    Parameter {
        /// Name of the parameter, with its centre or chain.
        parameter: String,
        /// Value as given.
        value: f64,
        /// Smallest accepted value.
        low: f64,
        /// Largest accepted value.
        high: f64,
    },
    /// The open chains alone need all of a centre's time, so that its queue grows without end.
    #[error(
        "open chains use {centre} for {utilization:.3} of the time, which must be below 1; lower their rates"
    )]
    Overloaded {
        /// Name of the centre.
        centre: String,
        /// Utilization by open chains, 1 or more.
        utilization: f64,
    },
    /// The exact solution needs too much memory.
    #[error(
        "an exact solution has more than {most} mean queue lengths; lower the customers of {chain}, or approximate"
    )]
    TooLarge {
        /// Name of the chain whose population exceeds the limit.
        chain: String,
        /// Largest accepted number of mean queue lengths (population states times centres).
        most: usize,
    },
    /// The approximation found no fixed point.
    #[error("the approximation did not converge in {rounds} rounds")]
    NotConverged {
        /// Number of rounds.
        rounds: u32,
    },
    /// The simulated time does not fit into a clock of 64 bits.
    #[error("the simulation exceeds {years} years of simulated time; simulate fewer cycles")]
    TooLong {
        /// Largest accepted simulated time, in years.
        years: u64,
    },
}

/// Checks that the value of the parameter `name` is a number in `range`.
///
/// # Errors
/// [`QueueingError::Parameter`], which names the parameter.
pub(super) fn check(
    name: &str,
    value: f64,
    range: RangeInclusive<f64>,
) -> Result<(), QueueingError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(QueueingError::Parameter {
        parameter: name.to_owned(),
        value,
        low: *range.start(),
        high: *range.end(),
    })
}
