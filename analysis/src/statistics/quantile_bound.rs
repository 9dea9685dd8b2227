//! "At least t in 95 % of cases, with 95 % confidence": a bound that assumes no distribution.
//!
//! The binomial method (Brevik, Nurmi & Wolski 2004): of n independent lengths, the number below the
//! q-quantile is binomial, so the probability that the k-th smallest lies below the quantile depends
//! only on n, k and q. The method assumes lengths that are independent and uncensored; a [`Verdict`]
//! says whether they are. A censored length counts as seen: the bound is then still valid, but could be
//! higher.

use super::Length;

/// Maximum share of censored lengths for which the lengths count as uncensored.
const MOST_CENSORED_SHARE: f64 = 0.05;

/// Result of the checks of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No check contradicts the bound.
    Holds,
    /// More than one in twenty lengths was censored: the bound is lower than it could be.
    Censored,
    /// Successive lengths are alike (or unlike): they hold less information than as many independent
    /// lengths, and the true confidence differs from the stated one.
    Dependent,
    /// Too few lengths for any bound.
    TooFew,
}

/// Lengths from which quantiles are bounded.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    sorted: Vec<i64>,
    censored_count: usize,
    autocorrelation: Option<Autocorrelation>,
}

impl Lengths {
    /// `hosts` are the lengths of each host, in order of time. The order of the hosts changes nothing.
    pub(crate) fn of(mut hosts: Vec<Vec<Length>>) -> Self {
        // Sums of floating-point numbers depend on their order.
        hosts.sort_unstable();
        let mut sorted: Vec<i64> = hosts.iter().flatten().map(|l| l.ms).collect();
        sorted.sort_unstable();
        let cut = hosts.iter().flatten().filter(|l| l.cause.is_none());
        Self {
            censored_count: cut.count(),
            autocorrelation: rank_autocorrelation(&hosts, &sorted),
            sorted,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Share of censored lengths; 0 without lengths.
    pub(crate) fn censored_share(&self) -> f64 {
        self.censored_count as f64 / self.count().max(1) as f64
    }

    /// Correlation of the ranks of each length and the next one on the same host; `None` if there are no
    /// pairs, or all ranks are equal.
    pub(crate) fn autocorrelation(&self) -> Option<f64> {
        self.autocorrelation.map(|a| a.coefficient)
    }

    /// The largest of the lengths that, with this confidence, is not above the `quantile` of all
    /// lengths, and its validity. `None` if there are too few lengths.
    pub(crate) fn lower_bound(&self, quantile: f64, confidence: f64) -> (Option<i64>, Verdict) {
        let rank = lower_rank(self.count(), quantile, confidence);
        let bound_ms = rank.and_then(|rank| self.sorted.get(rank - 1)).copied();
        let is_noise = |a: Autocorrelation| a.coefficient.abs() <= a.noise();
        let verdict = if bound_ms.is_none() {
            Verdict::TooFew
        } else if !self.autocorrelation.is_none_or(is_noise) {
            Verdict::Dependent
        } else if self.censored_share() > MOST_CENSORED_SHARE {
            Verdict::Censored
        } else {
            Verdict::Holds
        };
        (bound_ms, verdict)
    }
}

/// The largest k (from 1) for which the k-th smallest of n independent values is, with this confidence,
/// not above the `quantile` of their distribution: P(Binomial(n, quantile) < k) <= 1 - confidence.
fn lower_rank(n: usize, quantile: f64, confidence: f64) -> Option<usize> {
    if !(quantile > 0.0 && quantile < 1.0) {
        return None;
    }
    // Weights relative to the likeliest count's, which is 1: no relevant weight underflows, and no
    // factorial is needed. The omitted weights are below 1e-30.
    let odds = quantile / (1.0 - quantile);
    let mode = (((n + 1) as f64 * quantile) as usize).min(n);
    let counts_below = 0..mode;
    let below: Vec<f64> = weights(counts_below.rev(), |k| {
        (k + 1) as f64 / ((n - k) as f64 * odds)
    });
    let above: f64 = weights(mode + 1..n + 1, |k| (n - k + 1) as f64 * odds / k as f64)
        .iter()
        .sum();
    let doubt = (1.0 - confidence) * (below.iter().sum::<f64>() + 1.0 + above);
    let counts = mode - below.len()..=mode;
    let mut so_far = 0.0;
    let outweighs = |weight: &f64| {
        so_far += weight;
        so_far > doubt
    };
    // Position of the first count at which the cumulative probability exceeds the allowed doubt.
    let place = below.iter().rev().chain([&1.0]).position(outweighs);
    let rank = place.map_or(mode + 1, |place| counts.start() + place);
    (1..=n).contains(&rank).then_some(rank)
}

/// Weights along `counts`: each is the one before it times the count's `step`. Ends at the first weight below
/// 1e-30.
fn weights(counts: impl Iterator<Item = usize>, step: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut weight = 1.0;
    counts
        .map(|k| {
            weight *= step(k);
            weight
        })
        .take_while(|weight| *weight > 1e-30)
        .collect()
}

/// Correlation between successive lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Autocorrelation {
    coefficient: f64,
    pairs: usize,
}

impl Autocorrelation {
    /// Limit that the correlation of independent lengths exceeds once in 20 times.
    fn noise(&self) -> f64 {
        super::Z_95 / (self.pairs as f64).sqrt()
    }
}

/// Correlation of the ranks of each length and the next one on the same host, over all such pairs of all
/// hosts. Ranks are among the lengths of all hosts (equal lengths share their mean rank): differences
/// between hosts also make pooled lengths dependent. `None` if there are no pairs, or all ranks are
/// equal.
fn rank_autocorrelation(lengths: &[Vec<Length>], sorted: &[i64]) -> Option<Autocorrelation> {
    let rank = |l: &Length| {
        let below = sorted.partition_point(|&ms| ms < l.ms);
        let not_above = sorted.partition_point(|&ms| ms <= l.ms);
        (below + not_above) as f64 / 2.0
    };
    let pairs: Vec<(f64, f64)> = lengths
        .iter()
        .flat_map(|host| host.windows(2))
        .map(|pair| (rank(&pair[0]), rank(&pair[1])))
        .collect();
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (first, second) = (mean(|p| p.0), mean(|p| p.1));
    let (mut both, mut of_first, mut of_second) = (0.0, 0.0, 0.0);
    for (a, b) in &pairs {
        both += (a - first) * (b - second);
        of_first += (a - first).powi(2);
        of_second += (b - second).powi(2);
    }
    (of_first > 0.0 && of_second > 0.0).then(|| Autocorrelation {
        coefficient: both / (of_first * of_second).sqrt(),
        pairs: pairs.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ended(lengths: &[i64]) -> Vec<Length> {
        let length = |&ms: &i64| Length { ms, cause: Some(0) };
        lengths.iter().map(length).collect()
    }

    #[test]
    fn ranks_of_the_textbooks() {
        // The smallest of 59 bounds the 5 % quantile with 95 % confidence (0.95^59 = 0.0485), the
        // smallest of 58 does not; 93 are needed for the second smallest, 124 for the third.
        let at_5_percent = [
            (58, None),
            (59, Some(1)),
            (92, Some(1)),
            (93, Some(2)),
            (123, Some(2)),
            (124, Some(3)),
        ];
        for (n, rank) in at_5_percent {
            assert_eq!(lower_rank(n, 0.05, 0.95), rank, "{n}");
        }
        // The sign test: with 10 values, 11/1024 of the probability lies at or below 1, and 56/1024 at or
        // below 2.
        let at_the_median = [
            (4, None),
            (5, Some(1)),
            (8, Some(2)),
            (10, Some(2)),
            (11, Some(3)),
            (20, Some(6)),
            (25, Some(8)),
        ];
        for (n, rank) in at_the_median {
            assert_eq!(lower_rank(n, 0.5, 0.95), rank, "{n}");
        }
        assert_eq!(lower_rank(0, 0.5, 0.95), None);
        assert_eq!(lower_rank(100, 0.0, 0.95), None);
        assert_eq!(lower_rank(100, 1.0, 0.95), None);
        // A million coin flips: 822 is 1.645 standard deviations of 500.
        let many = lower_rank(1_000_000, 0.5, 0.95).unwrap();
        assert!(many.abs_diff(500_000 - 822) <= 1, "{many}");
    }

    #[test]
    fn a_bound_and_its_assumptions() {
        let of = |hosts: &[Vec<Length>]| {
            let lengths = Lengths::of(hosts.to_vec());
            let (bound_ms, verdict) = lengths.lower_bound(0.5, 0.95);
            (bound_ms, verdict, lengths)
        };
        assert_eq!(of(&[]).1, Verdict::TooFew);
        assert_eq!(of(&[]).2.censored_share(), 0.0);
        assert_eq!(of(&[ended(&[1, 2, 3, 4])]).1, Verdict::TooFew);

        // The lengths are in random order, so they look independent.
        let mixed = ended(&[50, 10, 90, 30, 70, 20, 80, 40, 60, 100]);
        let found = of(&[mixed[..5].to_vec(), mixed[5..].to_vec()]);
        assert_eq!((found.0, found.1), (Some(20), Verdict::Holds));
        // 2 of 10 lengths are censored.
        let mut cut = mixed.clone();
        (cut[3].cause, cut[8].cause) = (None, None);
        let found = of(&[cut[..5].to_vec(), cut[5..].to_vec()]);
        assert_eq!((found.0, found.1), (Some(20), Verdict::Censored));
        assert_eq!(found.2.censored_share(), 0.2);
        // Lengths that grow all the time; and hosts that differ, while each host's lengths are nearly
        // constant.
        let found = of(&[ended(&(1..=20).collect::<Vec<_>>())]);
        assert_eq!(found.1, Verdict::Dependent);
        assert!(found.2.autocorrelation().unwrap() > 0.99);
        let found = of(&[
            ended(&[5, 5, 6, 6, 5, 5, 6, 6]),
            ended(&[105, 105, 106, 106, 105, 105, 106, 106]),
        ]);
        assert_eq!(found.1, Verdict::Dependent);
        // Equal lengths have no correlation.
        let found = of(&[ended(&[7; 20])]);
        assert_eq!((found.0, found.1), (Some(7), Verdict::Holds));
        assert_eq!(found.2.autocorrelation(), None);
    }

    #[test]
    fn autocorrelation_worked_by_hand() {
        // The pairs of ranks are (1,4) (4,2) (2,3) on the first host, none on the second; the means are 7/3
        // and 3.
        let hosts = [ended(&[10, 40, 20, 30]), ended(&[50])];
        let sorted = [10, 20, 30, 40, 50];
        // Ranks are k - 1/2; the offset does not change the correlation.
        let first = [1.0 - 7.0 / 3.0, 4.0 - 7.0 / 3.0, 2.0 - 7.0 / 3.0f64];
        let second = [1.0, -1.0, 0.0f64];
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let expected = sum(&first, &second) / (sum(&first, &first) * sum(&second, &second)).sqrt();
        let found = rank_autocorrelation(&hosts, &sorted).unwrap();
        assert!((found.coefficient - expected).abs() < 1e-12);
        assert_eq!(found.pairs, 3);
    }

    /// The rank from the definition, with binomial probabilities by Pascal's rule.
    fn rank_slowly(n: usize, quantile: f64, confidence: f64) -> Option<usize> {
        let mut counts = vec![1.0];
        for _ in 0..n {
            let mut next = vec![0.0; counts.len() + 1];
            for (k, probability) in counts.iter().enumerate() {
                next[k] += probability * (1.0 - quantile);
                next[k + 1] += probability * quantile;
            }
            counts = next;
        }
        (1..=n)
            .filter(|&k| counts[..k].iter().sum::<f64>() <= 1.0 - confidence)
            .max()
    }

    proptest! {
        #[test]
        fn ranks_equal_the_slow_version(
            n in 0..200usize, quantile in 0.01..0.99f64, confidence in 0.5..0.999f64
        ) {
            let found = lower_rank(n, quantile, confidence);
            prop_assert_eq!(found, rank_slowly(n, quantile, confidence));
        }

        /// A larger quantile, or less confidence, never gives a lower bound.
        #[test]
        fn ranks_grow(n in 1..500usize, quantile in 0.01..0.9f64, confidence in 0.5..0.99f64) {
            let rank = |q, c| lower_rank(n, q, c).unwrap_or(0);
            prop_assert!(rank(quantile, confidence) <= rank(quantile + 0.05, confidence));
            prop_assert!(rank(quantile, confidence) <= rank(quantile, confidence - 0.1));
        }
    }
}
