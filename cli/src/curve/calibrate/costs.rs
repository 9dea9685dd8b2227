//! Cost of a fault, from the parts of a measurement: rounds of touching pages, or runs of a program.

use super::touching::FaultRound;

/// Mean times of the faults of one round or run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FaultMeans {
    /// Number of faults, at least one.
    pub(super) faults: u64,
    /// Mean CPU time of a fault.
    pub(super) software_us: f64,
    /// Mean time of a fault without CPU time.
    pub(super) latency_us: f64,
}

/// Times of a fault. Each array has the mean of all faults, then the lowest and the highest mean of a round or run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FaultTimes {
    pub(super) faults: u64,
    /// CPU time of the fault.
    pub(super) software_us: [f64; 3],
    /// Time of the fault without CPU time.
    pub(super) latency_us: [f64; 3],
}

/// Costs of the faults of calibrate's own program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FaultCosts {
    pub(super) accesses: u64,
    pub(super) times: FaultTimes,
    /// Median of the rounds' medians.
    pub(super) p50_us: f64,
    /// Median of the rounds' 99th percentiles.
    pub(super) p99_us: f64,
}

impl FaultTimes {
    /// Times of the faults of these rounds or runs; `None` without any.
    pub(super) fn of(parts: &[FaultMeans]) -> Option<Self> {
        if parts.is_empty() {
            return None; // the range of a mean would be empty
        }
        let faults: u64 = parts.iter().map(|part| part.faults).sum();
        let time = |of: fn(&FaultMeans) -> f64| {
            let sum: f64 = parts.iter().map(|part| of(part) * part.faults as f64).sum();
            let low = parts.iter().map(of).fold(f64::INFINITY, f64::min);
            let high = parts.iter().map(of).fold(0.0, f64::max);
            // Rounding errors of the sum must not put the mean outside.
            [(sum / faults as f64).clamp(low, high), low, high]
        };
        Some(Self {
            faults,
            software_us: time(|part| part.software_us),
            latency_us: time(|part| part.latency_us),
        })
    }
}

impl FaultCosts {
    /// Costs of these rounds, each with at least one fault; `None` without rounds.
    pub(super) fn of(rounds: &[FaultRound]) -> Option<Self> {
        let means = |round: &FaultRound| FaultMeans {
            faults: round.faults,
            software_us: round.software_us,
            latency_us: round.latency_us,
        };
        let parts: Vec<FaultMeans> = rounds.iter().map(means).collect();
        let middle = |of: fn(&FaultRound) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        Some(Self {
            accesses: rounds.iter().map(|round| round.accesses).sum(),
            times: FaultTimes::of(&parts)?,
            p50_us: middle(|round| round.p50_us)?,
            p99_us: middle(|round| round.p99_us)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_count_faults_and_ranges_count_rounds() {
        let round = |faults, software_us, p50_us| FaultRound {
            accesses: 2 * faults,
            faults,
            software_us,
            latency_us: 2.0 * software_us,
            p50_us,
            p99_us: 3.0 * p50_us,
        };
        assert_eq!(FaultCosts::of(&[]), None);
        let costs = FaultCosts::of(&[
            round(100, 4.0, 5.0),
            round(300, 8.0, 7.0),
            round(100, 6.0, 6.0),
        ]);
        let expected = FaultCosts {
            accesses: 1000,
            times: FaultTimes {
                faults: 500,
                software_us: [6.8, 4.0, 8.0],
                latency_us: [13.6, 8.0, 16.0],
            },
            p50_us: 6.0,
            p99_us: 18.0,
        };
        assert_eq!(costs, Some(expected));
        let one = FaultCosts::of(&[round(3, 0.1, 0.1)]).unwrap();
        assert_eq!(one.times.software_us, [0.1; 3]);
    }
}
