//! Differences between the hosts of a fleet. Each property is spread evenly over the hosts: a small cluster
//! has the same spread as a large one. For each property, a host's position is the fractional part of a
//! multiple of an irrational number (Kronecker's sequence), shifted by the seed.

use super::dice::Dice;

/// A property in which hosts differ.
#[derive(Clone, Copy, Debug)]
pub(super) enum Property {
    Kernel,
    Files,
    Daemons,
    Programs,
    Commands,
    Background,
    Hogs,
    Away,
    Arrival,
    Stay,
}

/// Primes. The fractional parts of their square roots' multiples fill the range from 0 to 1 evenly.
const STEPS: [f64; 10] = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0];

/// Position of one host in the fleet for each property, from 0 to below 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostPosition([f64; STEPS.len()]);

impl HostPosition {
    pub(super) fn new(seed: u64, index: usize) -> Self {
        let mut shifts = Dice::new(seed, u64::MAX);
        Self(STEPS.map(|prime| {
            let place = shifts.share() + (index + 1) as f64 * prime.sqrt();
            place.fract()
        }))
    }

    pub(super) fn of(&self, property: Property) -> f64 {
        self.0[property as usize]
    }

    /// Factor for this host, at least 0.05. Over the hosts, factors are uniformly distributed with mean 1 and
    /// standard deviation `sd`.
    pub(super) fn factor(&self, property: Property, sd: f64) -> f64 {
        (1.0 + sd * centred(self.of(property))).max(0.05)
    }

    /// Relative rate of an event on this host. The event occurs only on a part (`share`) of the hosts; on the
    /// other hosts the rate is 0. Over the hosts with the event, the mean rate is 1, and the logarithm of the
    /// rate is uniformly distributed with standard deviation `sd`.
    pub(super) fn rate(&self, property: Property, share: f64, sd: f64) -> f64 {
        let place = self.of(property);
        if place >= share {
            return 0.0;
        }
        let width = sd * 12f64.sqrt() / 2.0;
        let mean = if width > 1e-6 {
            width.sinh() / width
        } else {
            1.0
        };
        (sd * centred(place / share)).exp() / mean
    }
}

/// Maps a value that is uniformly distributed from 0 to 1 to one that is uniformly distributed with mean 0 and
/// standard deviation 1.
fn centred(place: f64) -> f64 {
    (place - 0.5) * 12f64.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_hosts_have_the_spread_of_many() {
        for seed in 0..20 {
            let hosts: Vec<HostPosition> =
                (0..16).map(|host| HostPosition::new(seed, host)).collect();
            let factors = hosts.iter().map(|h| h.factor(Property::Kernel, 0.2));
            let mean = factors.clone().sum::<f64>() / 16.0;
            let sd = (factors.map(|f| (f - mean) * (f - mean)).sum::<f64>() / 16.0).sqrt();
            assert!((mean - 1.0).abs() < 0.05, "{mean}");
            assert!((0.17..0.23).contains(&sd), "{sd}");
            let with = hosts
                .iter()
                .filter(|h| h.rate(Property::Hogs, 0.5, 1.0) > 0.0);
            assert!((7..=9).contains(&with.count()));
        }
    }

    #[test]
    fn rates_have_mean_1_on_the_hosts_that_have_them() {
        let rates: Vec<f64> = (0..10_000)
            .map(|host| HostPosition::new(1, host).rate(Property::Hogs, 0.25, 1.2))
            .collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!((mean - 0.25).abs() < 0.005, "{mean}");
    }
}
