//! Intervals by bootstrap over hosts: the range in which a figure would lie if other, similar hosts had been
//! traced.
//!
//! Whole hosts are redrawn, since periods on one host are alike: an interval over periods would be far too
//! narrow. The draws are made once and serve all figures. They depend only on the number of hosts, and each
//! figure sorts its hosts by value first, so the same hosts always give the same interval, whatever their order.

use super::Interval;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Seed of the draws: arbitrary but fixed, so that repeated analyses give the same results.
const SEED: u64 = 1998;

/// Number of times that each host was drawn in each resample.
#[derive(Clone, Debug)]
pub(crate) struct Resamples {
    hosts_count: usize,
    resamples_count: usize,
    /// Weights by host, then by resample: a figure adds one host at a time to all resamples.
    times: Vec<u16>,
}

impl Resamples {
    /// Draws `hosts_count` hosts with replacement, `resamples_count` times.
    pub(crate) fn draw(hosts_count: usize, resamples_count: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let mut times = vec![0u16; hosts_count * resamples_count];
        for resample in 0..resamples_count {
            for _ in 0..hosts_count {
                let host = rng.random_range(0..hosts_count);
                let drawn = &mut times[host * resamples_count + resample];
                *drawn = drawn.saturating_add(1);
            }
        }
        Self {
            hosts_count,
            resamples_count,
            times,
        }
    }

    /// 95 % interval of a ratio: the sum of the numerators over the sum of the denominators, one pair per
    /// host. `None` if fewer than two hosts have a denominator: redrawing one host changes nothing.
    pub(crate) fn ratio_interval(&self, hosts: &[(f64, f64)]) -> Option<Interval> {
        let counted = hosts.iter().filter(|(_, denominator)| *denominator > 0.0);
        if hosts.len() != self.hosts_count || counted.count() < 2 {
            return None;
        }
        let mut hosts = hosts.to_vec();
        sort(&mut hosts);
        let mut numerators = vec![0.0; self.resamples_count];
        let mut denominators = vec![0.0; self.resamples_count];
        let of_hosts = self.times.chunks_exact(self.resamples_count.max(1));
        for (times, &(numerator, denominator)) in of_hosts.zip(&hosts) {
            // A host without numerator and denominator changes no sum.
            if denominator <= 0.0 && numerator == 0.0 {
                continue;
            }
            for (sum, &drawn) in numerators.iter_mut().zip(times) {
                *sum += f64::from(drawn) * numerator;
            }
            for (sum, &drawn) in denominators.iter_mut().zip(times) {
                *sum += f64::from(drawn) * denominator;
            }
        }
        let drawn = numerators.iter().zip(&denominators);
        percentiles(
            drawn
                .filter(|(_, denominator)| **denominator > 0.0)
                .map(|(numerator, denominator)| numerator / denominator)
                .collect(),
        )
    }

    /// 95 % interval of any statistic: the slow version that [`Self::ratio_interval`] is compared with. The
    /// statistic gets the number of times that each host was drawn, and returns `None` if it has no value.
    #[cfg(test)]
    fn interval(&self, statistic: impl Fn(&[u16]) -> Option<f64>) -> Option<Interval> {
        if self.hosts_count < 2 {
            return None;
        }
        let mut times = vec![0; self.hosts_count];
        let value = |resample: usize| {
            for (host, drawn) in times.iter_mut().enumerate() {
                *drawn = self.times[host * self.resamples_count + resample];
            }
            statistic(&times)
        };
        percentiles((0..self.resamples_count).filter_map(value).collect())
    }
}

/// Sorts hosts by their values. Every host is as likely as any other, so any order of hosts is as good.
fn sort(hosts: &mut [(f64, f64)]) {
    hosts.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
}

/// The 2.5 and 97.5 % quantiles, interpolated between values. Resamples without a value (a denominator of 0)
/// are left out; `None` if all are.
fn percentiles(mut values: Vec<f64>) -> Option<Interval> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |share: f64| {
        let place = share * last as f64;
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        values[below] + (values[above] - values[below]) * place.fract()
    };
    Some(Interval {
        low: at(0.025),
        high: at(0.975),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RESAMPLES: usize = 1000;

    #[test]
    fn percentiles_as_others_have_them() {
        // The expected figures are those of numpy.percentile(range(101), [2.5, 97.5]).
        let found = percentiles((0..=100).rev().map(f64::from).collect()).unwrap();
        assert_eq!((found.low, found.high), (2.5, 97.5));
        assert_eq!(percentiles(vec![]), None);
        let one = percentiles(vec![7.0]).unwrap();
        assert_eq!((one.low, one.high), (7.0, 7.0));
    }

    #[test]
    fn every_host_is_as_likely() {
        let drawn = Resamples::draw(7, 1000);
        let of_resample = |r: usize| {
            (0..7)
                .map(|h| u32::from(drawn.times[h * 1000 + r]))
                .sum::<u32>()
        };
        assert!((0..1000).all(|r| of_resample(r) == 7));
        for host in drawn.times.chunks_exact(1000) {
            let times: u32 = host.iter().map(|&t| u32::from(t)).sum();
            // 7,000 draws at 1/7 have an expectation of 1000; 5 standard deviations are 146.
            assert!(times.abs_diff(1000) < 146, "{times}");
        }
    }

    #[test]
    fn one_host_has_no_interval() {
        assert_eq!(Resamples::draw(0, 10).ratio_interval(&[]), None);
        assert_eq!(Resamples::draw(1, 10).ratio_interval(&[(1.0, 2.0)]), None);
        assert_eq!(Resamples::draw(1, 10).interval(|_| Some(1.0)), None);
        let one_of_two = [(1.0, 2.0), (0.0, 0.0)];
        assert_eq!(Resamples::draw(2, 10).ratio_interval(&one_of_two), None);
        assert_eq!(Resamples::draw(2, 10).interval(|_| None), None);
        // The number of hosts differs from that of the draws.
        assert_eq!(
            Resamples::draw(3, 10).ratio_interval(&[(1.0, 2.0); 2]),
            None
        );
    }

    #[test]
    fn hosts_that_agree_leave_no_doubt() {
        let found = Resamples::draw(10, RESAMPLES)
            .ratio_interval(&[(1.0, 4.0); 10])
            .unwrap();
        assert_eq!((found.low, found.high), (0.25, 0.25));
    }

    /// For many hosts, the interval of the mean is that of the normal distribution.
    #[test]
    fn the_mean_of_many_hosts() {
        let hosts: Vec<(f64, f64)> = (0..400).map(|i| (f64::from(i % 2), 1.0)).collect();
        let found = Resamples::draw(400, RESAMPLES)
            .ratio_interval(&hosts)
            .unwrap();
        // Standard deviation of the mean: 0.5 / 20 = 0.025.
        assert!((found.low - 0.451).abs() < 0.006, "{found:?}");
        assert!((found.high - 0.549).abs() < 0.006, "{found:?}");
    }

    proptest! {
        #[test]
        fn ratios_equal_the_slow_version(
            hosts in prop::collection::vec((0..1000i64, 0..1000i64), 2..20)
        ) {
            let mut hosts: Vec<(f64, f64)> =
                hosts.iter().map(|&(n, d)| (n as f64, d as f64)).collect();
            let given = Resamples::draw(hosts.len(), 100).ratio_interval(&hosts);
            sort(&mut hosts);
            let drawn = Resamples::draw(hosts.len(), 100);
            let slowly = drawn.interval(|times| {
                let all = || times.iter().zip(&hosts)
                    .flat_map(|(&t, host)| std::iter::repeat_n(host, usize::from(t)));
                let denominator: f64 = all().map(|h| h.1).sum();
                (denominator > 0.0).then(|| all().map(|h| h.0).sum::<f64>() / denominator)
            });
            let found = drawn.ratio_interval(&hosts);
            if hosts.iter().filter(|h| h.1 > 0.0).count() < 2 {
                prop_assert_eq!(found, None);
            } else {
                prop_assert_eq!(found, slowly);
            }
            prop_assert_eq!(found, given, "in another order");
        }
    }
}
