//! Choice of the region sizes for figures and sentences: a few sizes with different odds.

use gleaner_schemas::findings::{AvailabilityOdds, Findings, Notion, Scope};
use std::collections::BTreeMap;

/// Maximum number of sizes in one figure.
const MOST: usize = 3;

/// Difference of odds below which two sizes count as equal.
const ALIKE_SHARE: f64 = 0.005;

/// Odds of all hosts together, by the notion [`Notion::Available`].
pub(super) fn pooled(findings: &Findings) -> impl Iterator<Item = &AvailabilityOdds> {
    findings
        .availability_odds
        .iter()
        .filter(|o| o.size_class == "all" && o.notion == Notion::Available)
}

/// Odds of one size in one scope.
pub(super) fn odds_of(
    findings: &Findings,
    scope: Scope,
    region_bytes: i64,
    ahead_s: f64,
) -> Option<&AvailabilityOdds> {
    pooled(findings)
        .find(|o| o.scope == scope && o.region_bytes == region_bytes && o.ahead_s == ahead_s)
}

/// Region size that sentences use: the middle one of the sizes that have values by hour and are available for
/// at least half of the time.
pub(super) fn middle(findings: &Findings) -> Option<i64> {
    const OFTEN_SHARE: f64 = 0.5;
    let mut shares: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    let by_hour = findings.availability_by_hour.iter();
    for a in by_hour.filter(|a| a.size_class == "all" && a.scope == Scope::All) {
        let (sum, hours) = shares.entry(a.region_bytes).or_default();
        *sum += a.available_share;
        *hours += 1.0;
    }
    let known = sizes(pooled(findings).map(|o| o.region_bytes));
    let often = shares.into_iter();
    let often =
        often.filter(|(size, (sum, hours))| *sum >= OFTEN_SHARE * hours && known.contains(size));
    let often: Vec<i64> = often.map(|(size, _)| size).collect();
    let list = if often.is_empty() { known } else { often };
    list.get(list.len() / 2).copied()
}

/// Up to three sizes with different odds, the middle size first.
pub(super) fn shown(findings: &Findings) -> Vec<i64> {
    let Some(middle) = middle(findings) else {
        return Vec::new();
    };
    let mut others = sizes(pooled(findings).map(|o| o.region_bytes)).into_iter();
    let mut shown = vec![middle];
    // Sizes are taken from both ends inwards, since the ends bound the range of sizes.
    while let Some(largest) = others.next_back() {
        for size in [Some(largest), others.next()].into_iter().flatten() {
            if shown.len() < MOST && shown.iter().all(|s| !alike(findings, *s, size)) {
                shown.push(size);
            }
        }
    }
    shown[1..].sort_unstable();
    shown
}

/// Returns true if two sizes have the same odds at every horizon.
fn alike(findings: &Findings, a: i64, b: i64) -> bool {
    let of = |size| {
        pooled(findings)
            .filter(move |o| o.region_bytes == size)
            .map(|o| (o.scope, o.ahead_s, o.available_probability))
    };
    of(a).all(|(scope, ahead_s, still)| {
        of(b).any(|(s, h, other)| s == scope && h == ahead_s && (still - other).abs() < ALIKE_SHARE)
    })
}

fn sizes(of: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut sizes: Vec<i64> = of.collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::lasting::odds::tests::odds;
    use gleaner_schemas::findings::AvailabilityByHour;

    #[test]
    fn sizes_that_fare_alike_are_told_once() {
        let mut findings = Findings::default();
        assert!(shown(&findings).is_empty());
        for (gib, still) in [(1, 0.9), (2, 0.9), (4, 0.9), (8, 0.7), (16, 0.5)] {
            findings.availability_odds.push(AvailabilityOdds {
                region_bytes: gib << 30,
                available_probability: still,
                ..odds()
            });
        }
        assert_eq!(shown(&findings), [4 << 30, 8 << 30, 16 << 30]);
    }

    #[test]
    fn a_size_that_is_seldom_there_is_not_spoken_of() {
        let mut findings = Findings::default();
        for (gib, available_share) in [(1, 0.9), (4, 0.1), (16, 0.0)] {
            findings.availability_odds.push(AvailabilityOdds {
                region_bytes: gib << 30,
                ..odds()
            });
            findings.availability_by_hour.push(AvailabilityByHour {
                size_class: "all".into(),
                scope: Scope::All,
                region_bytes: gib << 30,
                weekday: 1,
                hour: 9,
                available_share,
                available_1h_probability: None,
                counted_s: 0.0,
            });
        }
        assert_eq!(middle(&findings), Some(1 << 30));
        findings.availability_by_hour.clear();
        assert_eq!(middle(&findings), Some(4 << 30));
    }
}
