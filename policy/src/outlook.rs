//! Outlook of a quota: the part expected to stay, by time and confidence. It is the analysis' forecast,
//! applied to the borrowers' question.
//!
//! A quota of `q` bytes stays as long as `q` and the bytes held back stay available on the host. A part of
//! the quota is therefore a region of the forecast. The region's size is the part's bytes plus the bytes held
//! back. The memory available now is the quota plus the bytes held back, and the lowest available memory of
//! the last day is the low water plus the bytes held back. If the owner's cap or the hysteresis lowers the
//! quota, the forecast is too pessimistic, never too optimistic.
//!
//! Assumptions: a host that lends because it is idle must also stay idle ([`Scope::Idle`]), and its region is
//! as old as its idleness. A host that lends spare memory need not be idle ([`Scope::All`]); its region
//! counts as a day old if the low water of the last day covers it, otherwise as new. For a host that lends
//! nothing now, nothing is known.

use crate::forecast::table::{Question, Region, Table};
use crate::forecast::{AHEAD_S, State};
use gleaner_schemas::findings::Scope;
use gleaner_schemas::lending::{HostQuota, Outlook, QuotaReason, SLAB_BYTES};

/// Horizons of an outlook: ten minutes, and 1, 4, 8 and 24 hours.
pub const DURATIONS_MS: [i64; 5] = [600_000, 3_600_000, 14_400_000, 28_800_000, 86_400_000];

/// Confidences that an outlook gives.
pub const CONFIDENCES: [f64; 3] = [0.5, 0.9, 0.99];

/// Number of equal parts of the quota that are tried as sizes. Each is looked up at most once per horizon.
const SIZES: u64 = 16;

const DAY_MS: i64 = 86_400_000;

/// Probability that `bytes` of a host's quota stay throughout `duration_ms`; `None` if the host does not lend
/// that much, or if nothing was learnt about similar regions.
///
/// `hour_of_week` is in the fleet's time zone: 0 is Monday's first.
#[must_use]
pub fn stay_probability(
    table: &Table,
    quota: &HostQuota,
    bytes: u64,
    duration_ms: i64,
    hour_of_week: u8,
) -> Option<f64> {
    let scope = match quota.reason {
        QuotaReason::Idle => Scope::Idle,
        QuotaReason::Spare => Scope::All,
        _ => return None,
    };
    let stored = |bytes: u64| i64::try_from(bytes.saturating_add(quota.headroom_bytes)).ok();
    let low_bytes = quota.low_water_bytes.unwrap_or(0);
    let age_ms = match scope {
        Scope::Idle => quota.idle_for_ms.unwrap_or(0),
        Scope::All if low_bytes >= bytes => DAY_MS,
        Scope::All => 0,
    };
    let region_bytes = stored(bytes)?;
    table.probability(&Question {
        host: &quota.host_id,
        scope,
        region: Region::Bytes(region_bytes),
        state: State {
            age_s: age_ms / 1000,
            available_bytes: stored(quota.quota_bytes)?,
            low_bytes: stored(low_bytes)?,
            region_bytes,
        },
        hour_of_week,
        ahead_s: duration_ms.max(0).checked_add(999)? / 1000,
    })
}

/// The sizes that are tried, smallest first: parts of the quota in whole slabs.
fn sizes(quota: &HostQuota) -> Vec<u64> {
    let mut sizes: Vec<u64> = (1..=SIZES)
        .map(|part| u128::from(quota.quota_bytes) * u128::from(part) / u128::from(SIZES))
        .filter_map(|bytes| u64::try_from(bytes).ok())
        .map(|bytes| bytes / SLAB_BYTES * SLAB_BYTES)
        .filter(|bytes| *bytes > 0)
        .collect();
    sizes.dedup();
    sizes
}

/// The largest part of a host's quota that is expected to stay throughout `duration_ms` with this confidence;
/// 0 if no part is that certain, or if nothing was learnt about similar regions.
///
/// Memory that stays for long also stays for less: a size must be as certain for each shorter horizon in the
/// table. The result therefore never grows with `duration_ms` or `confidence`, whatever the table has for
/// single horizons.
#[must_use]
pub fn expected_bytes(
    table: &Table,
    quota: &HostQuota,
    duration_ms: i64,
    confidence: f64,
    hour_of_week: u8,
) -> u64 {
    let shorter = || {
        let times_ms = AHEAD_S.iter().rev().map(|ahead_s| ahead_s * 1000);
        times_ms.filter(|ahead_ms| *ahead_ms < duration_ms)
    };
    let is_sure = |bytes: &u64| {
        // The longest horizon first: it is seldom the most certain.
        std::iter::once(duration_ms)
            .chain(shorter())
            .all(|ahead_ms| {
                let stays = stay_probability(table, quota, *bytes, ahead_ms, hour_of_week);
                stays.is_some_and(|p| p >= confidence)
            })
    };
    let sizes = sizes(quota);
    sizes.into_iter().rev().find(is_sure).unwrap_or(0)
}

/// The largest part of a host's quota that stays, for each of [`DURATIONS_MS`] and [`CONFIDENCES`]; it never
/// grows with the horizon or the confidence. Empty if nothing was learnt about similar regions; 0 bytes if no
/// part is that certain.
#[must_use]
pub fn outlook(table: &Table, quota: &HostQuota, hour_of_week: u8) -> Vec<Outlook> {
    let sizes = sizes(quota);
    let mut found = Vec::new();
    let mut most_bytes = [u64::MAX; CONFIDENCES.len()];
    for duration_ms in DURATIONS_MS {
        let mut is_known = false;
        // A higher confidence allows at most the same size: a size too large for one confidence need not be
        // tried for the next.
        let mut left = sizes.iter().rev().copied().peekable();
        for (confidence, most) in CONFIDENCES.into_iter().zip(&mut most_bytes) {
            let mut bytes = 0;
            while let Some(&size) = left.peek() {
                let probability = stay_probability(table, quota, size, duration_ms, hour_of_week);
                is_known |= probability.is_some();
                if size <= *most && probability.is_some_and(|p| p >= confidence) {
                    bytes = size;
                    break;
                }
                left.next();
            }
            if is_known {
                *most = bytes;
                found.push(Outlook {
                    duration_ms,
                    confidence,
                    bytes,
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::ForecastCell;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn cell(scope: Scope, margin_bin: Option<i64>, ahead_s: i64, probability: f64) -> ForecastCell {
        ForecastCell {
            scope,
            region_bytes: Some(GIB as i64),
            region_share: None,
            age_bin: margin_bin.map(|_| 0), // a cell by margin must name the age too
            margin_bin,
            low_bin: None,
            ahead_s,
            probability,
            instants_count: 1,
        }
    }

    /// A quota of a host with 1 GiB: 128 MiB may be lent, and the rest is held back.
    fn quota(reason: QuotaReason) -> HostQuota {
        HostQuota {
            quota_bytes: 128 * MIB,
            headroom_bytes: 896 * MIB,
            idle_for_ms: Some(60_000),
            low_water_bytes: Some(64 * MIB),
            reason,
            ..HostQuota::default()
        }
    }

    /// Table with states by age only: bins 0 to 3.
    fn by_age(scope: Scope, probabilities: [f64; 4]) -> Table {
        let cells: Vec<_> = probabilities.into_iter().zip(0..).collect();
        let cells = cells.into_iter().map(|(p, age_bin)| ForecastCell {
            age_bin: Some(age_bin),
            ..cell(scope, None, 3600, p)
        });
        Table::new(&cells.collect::<Vec<_>>(), &[], &[])
    }

    #[test]
    fn by_reason_the_scope_and_the_age() {
        let idle = by_age(Scope::Idle, [0.1, 0.2, 0.3, 0.4]);
        let all = by_age(Scope::All, [0.5, 0.6, 0.7, 0.8]);
        let ask =
            |table, quota: &HostQuota, mib| stay_probability(table, quota, mib * MIB, 3_600_000, 0);
        let near = |found: Option<f64>, p: f64| assert!((found.unwrap() - p).abs() < 1e-12);
        let mut host = quota(QuotaReason::Idle);
        near(ask(&idle, &host, 128), 0.1);
        host.idle_for_ms = Some(14_400_000);
        near(ask(&idle, &host, 128), 0.3);
        assert_eq!(ask(&all, &host, 128), None);
        host.reason = QuotaReason::Spare;
        near(ask(&all, &host, 64), 0.8);
        near(ask(&all, &host, 66), 0.5);
        assert_eq!(ask(&idle, &host, 64), None);
        // More than the quota; and hosts that lend nothing now.
        assert_eq!(ask(&all, &host, 130), None);
        for reason in [
            QuotaReason::Waiting,
            QuotaReason::Pressure,
            QuotaReason::Paused,
        ] {
            host.reason = reason;
            assert_eq!(ask(&all, &host, 2), None);
            assert_eq!(outlook(&all, &host, 0), []);
        }
    }

    #[test]
    fn the_largest_that_is_sure_enough() {
        // The bytes held back count in the margin. Of 1024 MiB available, 896 are held back: parts of up to
        // 34 MiB (930.9 MiB in all) have a margin of 1.1.
        let cells = [
            cell(Scope::Idle, Some(0), 600, 0.9),
            cell(Scope::Idle, Some(1), 600, 0.995),
            cell(Scope::Idle, Some(0), 3600, 0.6),
            cell(Scope::Idle, Some(1), 3600, 0.7),
        ];
        let table = Table::new(&cells, &[], &[]);
        let found = outlook(&table, &quota(QuotaReason::Idle), 0);
        let of = |duration_ms, confidence, mib: u64| Outlook {
            duration_ms,
            confidence,
            bytes: mib * MIB,
        };
        // Sixteenths of the quota are 8 MiB. Nothing was learnt for more than an hour.
        assert_eq!(
            found,
            [
                of(600_000, 0.5, 128),
                of(600_000, 0.9, 128),
                of(600_000, 0.99, 32),
                of(3_600_000, 0.5, 128),
                of(3_600_000, 0.9, 0),
                of(3_600_000, 0.99, 0),
            ]
        );
    }

    #[test]
    fn what_is_expected_at_one_time_with_one_confidence() {
        // As above: of 128 MiB, 32 have a margin of 1.1.
        let cells = [
            cell(Scope::Idle, Some(0), 600, 0.9),
            cell(Scope::Idle, Some(1), 600, 0.995),
            cell(Scope::Idle, Some(0), 1800, 0.6),
            cell(Scope::Idle, Some(1), 1800, 0.7),
            // The confidence for an hour cannot exceed that for half an hour.
            cell(Scope::Idle, Some(0), 3600, 0.95),
            cell(Scope::Idle, Some(1), 3600, 0.65),
        ];
        let table = Table::new(&cells, &[], &[]);
        let host = quota(QuotaReason::Idle);
        let ask = |for_s: i64, confidence| {
            expected_bytes(&table, &host, for_s * 1000, confidence, 0) / MIB
        };
        assert_eq!(
            [0.5, 0.9, 0.99, 0.999].map(|c| ask(600, c)),
            [128, 128, 32, 0]
        );
        assert_eq!([0.5, 0.65, 0.9].map(|c| ask(1800, c)), [128, 32, 0]);
        // Between two horizons the longer one counts.
        assert_eq!(ask(601, 0.65), 32);
        assert_eq!([0.5, 0.62, 0.9].map(|c| ask(3600, c)), [128, 32, 0]);
        // Nothing was learnt for more than an hour, nor for a host that lends spare memory while busy.
        assert_eq!(ask(3601, 0.0), 0);
        let spare = quota(QuotaReason::Spare);
        assert_eq!(expected_bytes(&table, &spare, 600_000, 0.5, 0), 0);
    }

    proptest! {
        /// For any table, even an empty one, the result never grows with horizon or confidence, never exceeds
        /// the quota, and has the requested probability by `stay_probability`.
        #[test]
        fn expectations_fall(
            odds in prop::collection::vec((0..6i64, 0..9usize, 0.0..1.0f64), 1..60),
            quota_mib in 0..400u64,
            asked in prop::collection::vec((1..100_000_000i64, 0.0..1.0f64), 2..8),
        ) {
            let cells: Vec<_> = odds.iter().map(|&(margin, ahead, p)| {
                cell(Scope::Idle, Some(margin), AHEAD_S[ahead], p)
            }).collect();
            let table = Table::new(&cells, &[], &[]);
            let host = HostQuota { quota_bytes: quota_mib * MIB, ..quota(QuotaReason::Idle) };
            let found: Vec<_> = asked.iter().map(|&(duration_ms, confidence)| {
                (duration_ms, confidence, expected_bytes(&table, &host, duration_ms, confidence, 9))
            }).collect();
            for &(duration_ms, confidence, bytes) in &found {
                prop_assert!(bytes <= host.quota_bytes && bytes % SLAB_BYTES == 0);
                prop_assert!(bytes == 0
                    || stay_probability(&table, &host, bytes, duration_ms, 9).is_some_and(|p| p >= confidence));
                for &(longer_ms, surer, less) in &found {
                    prop_assert!(longer_ms < duration_ms || surer < confidence || less <= bytes);
                }
            }
        }

        /// Compares with a separate search over every size and horizon; the result never grows with horizon
        /// or confidence.
        #[test]
        fn outlooks_fall(
            odds in prop::collection::vec((0..6i64, 0..9usize, 0.0..1.0f64), 1..40),
            quota_mib in 0..400u64,
            low_mib in 0..400u64,
        ) {
            let cells: Vec<_> = odds.iter().map(|&(margin, ahead, p)| {
                cell(Scope::Idle, Some(margin), crate::forecast::AHEAD_S[ahead], p)
            }).collect();
            let table = Table::new(&cells, &[], &[]);
            let host = HostQuota {
                quota_bytes: quota_mib * MIB,
                headroom_bytes: 100 * MIB,
                low_water_bytes: Some(low_mib * MIB),
                reason: QuotaReason::Idle,
                ..HostQuota::default()
            };
            let found = outlook(&table, &host, 0);
            for o in &found {
                prop_assert!(o.bytes <= host.quota_bytes && o.bytes % SLAB_BYTES == 0);
                prop_assert!(o.bytes == 0
                    || stay_probability(&table, &host, o.bytes, o.duration_ms, 0).unwrap() >= o.confidence);
                for other in &found {
                    if other.duration_ms >= o.duration_ms && other.confidence >= o.confidence {
                        prop_assert!(other.bytes <= o.bytes);
                    }
                }
                // No larger size was skipped, unless a shorter horizon or lower confidence forbids it.
                let bound = found.iter().filter(|s| s.duration_ms <= o.duration_ms && s.confidence <= o.confidence && **s != *o)
                    .map(|s| s.bytes).min().unwrap_or(u64::MAX);
                for part in 1..=SIZES {
                    let size = host.quota_bytes * part / SIZES / SLAB_BYTES * SLAB_BYTES;
                    if size > o.bytes && size <= bound {
                        let p = stay_probability(&table, &host, size, o.duration_ms, 0);
                        prop_assert!(p.is_none_or(|p| p < o.confidence), "{size} {p:?} {o:?}");
                    }
                }
            }
        }
    }
}
