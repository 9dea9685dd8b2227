//! Survival over calendar time: probability that memory available now is still available a time t later, and
//! the causes if it is not.
//!
//! Every instant of a period counts if it can be followed for t in any case, that is, if it lies at least t
//! before the end of the observation. Leaving out censored periods, or counting outcomes of short ones only,
//! would favour short periods; this rule favours none. Sums are in milliseconds, so that the result is exact
//! in continuous time and does not depend on the order in which periods and hosts are added.

use serde::{Deserialize, Serialize};

/// A period in which the region was available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spell {
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
    /// Number of the cause that ended the period; `None`: the observation ended, at `to_ms`.
    pub(crate) cause: Option<usize>,
    /// Time at which the observation would have ended in any case: the trace's end, or the next time about
    /// which nothing is known. Not before `to_ms`.
    pub(crate) observed_to_ms: i64,
}

/// Outcomes at one horizon of the instants that could be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FateTimes<const CAUSES: usize> {
    pub(crate) ahead_ms: i64,
    /// Total time of the instants with a known outcome.
    pub(crate) counted_ms: i64,
    /// Total time of the instants at whose horizon the memory is still available.
    pub(crate) survived_ms: i64,
    /// Total time of the instants after which the period ended before the horizon, by the cause of the end.
    #[serde(with = "by_cause")]
    pub(crate) ended_ms: [i64; CAUSES],
}

/// Serialised form of a time for each cause: serde knows only arrays of given lengths.
mod by_cause {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer, const CAUSES: usize>(
        ended_ms: &[i64; CAUSES],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        ended_ms.as_slice().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, const CAUSES: usize>(
        from: D,
    ) -> Result<[i64; CAUSES], D::Error> {
        let ended_ms = Vec::deserialize(from)?;
        let count = ended_ms.len();
        let wrong = |_| D::Error::invalid_length(count, &"a time for each cause");
        ended_ms.try_into().map_err(wrong)
    }
}

/// Sums for a fixed list of horizons; sums of several hosts can be merged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Residual<const CAUSES: usize> {
    pub(crate) ahead: Vec<FateTimes<CAUSES>>,
}

impl Spell {
    /// The end of the period's instants with a known outcome at `ahead_ms`, and the end of those that survive
    /// it. Both parts begin at `from_ms`.
    pub(crate) fn followed_to_ms(&self, ahead_ms: i64) -> (i64, i64) {
        let observed_to_ms = match self.cause {
            Some(_) => self.observed_to_ms.max(self.to_ms),
            None => self.to_ms,
        };
        let ahead_of = |end_ms: i64| end_ms.saturating_sub(ahead_ms);
        let counted_to_ms = self.to_ms.min(ahead_of(observed_to_ms)).max(self.from_ms);
        let survived_to_ms = ahead_of(self.to_ms).max(self.from_ms).min(counted_to_ms);
        (counted_to_ms, survived_to_ms)
    }
}

impl<const CAUSES: usize> Residual<CAUSES> {
    /// Sums without any instants, for these horizons.
    pub(crate) fn new(ahead_ms: &[i64]) -> Self {
        let nothing = |&ahead_ms: &i64| FateTimes {
            ahead_ms,
            counted_ms: 0,
            survived_ms: 0,
            ended_ms: [0; CAUSES],
        };
        Self {
            ahead: ahead_ms.iter().map(nothing).collect(),
        }
    }

    /// Adds one period. A cause of `CAUSES` or more counts as censored.
    pub(crate) fn add(&mut self, spell: &Spell) {
        let cause = spell.cause.filter(|&cause| cause < CAUSES);
        let spell = Spell { cause, ..*spell };
        for sum in &mut self.ahead {
            let (counted_to_ms, survived_to_ms) = spell.followed_to_ms(sum.ahead_ms);
            let counted_ms = counted_to_ms.saturating_sub(spell.from_ms);
            let survived_ms = survived_to_ms.saturating_sub(spell.from_ms);
            sum.counted_ms = sum.counted_ms.saturating_add(counted_ms);
            sum.survived_ms = sum.survived_ms.saturating_add(survived_ms);
            if let Some(ended_ms) = cause.and_then(|cause| sum.ended_ms.get_mut(cause)) {
                *ended_ms = ended_ms.saturating_add(counted_ms - survived_ms);
            }
        }
    }

    /// Adds another host's sums for the same horizons.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.ahead.iter_mut().zip(&other.ahead) {
            mine.counted_ms = mine.counted_ms.saturating_add(theirs.counted_ms);
            mine.survived_ms = mine.survived_ms.saturating_add(theirs.survived_ms);
            for (mine, theirs) in mine.ended_ms.iter_mut().zip(theirs.ended_ms) {
                *mine = mine.saturating_add(theirs);
            }
        }
    }
}

impl<const CAUSES: usize> FateTimes<CAUSES> {
    /// Probability that available memory is still available at the horizon; `None` if no instant could be
    /// followed that long.
    pub(crate) fn survival(&self) -> Option<f64> {
        self.share(self.survived_ms)
    }

    /// Probability that the period has ended by the horizon, by the cause of the first end.
    pub(crate) fn ended(&self, cause: usize) -> Option<f64> {
        self.share(*self.ended_ms.get(cause)?)
    }

    fn share(&self, of_ms: i64) -> Option<f64> {
        (self.counted_ms > 0).then(|| of_ms as f64 / self.counted_ms as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn residual(spells: &[Spell], ahead_ms: &[i64]) -> Residual<2> {
        let mut residual = Residual::new(ahead_ms);
        spells.iter().for_each(|spell| residual.add(spell));
        residual
    }

    #[test]
    fn worked_by_hand() {
        let spells = [
            // The first period ends at 100 by cause 1; the observation lasts to 1000.
            Spell {
                from_ms: 0,
                to_ms: 100,
                cause: Some(1),
                observed_to_ms: 1000,
            },
            // The second period is censored at the observation's end.
            Spell {
                from_ms: 700,
                to_ms: 1000,
                cause: None,
                observed_to_ms: 1000,
            },
        ];
        let found = residual(&spells, &[0, 40, 200, 400, 950, 2000]);
        let figures: Vec<_> = found
            .ahead
            .iter()
            .map(|a| (a.counted_ms, a.survived_ms, a.ended_ms))
            .collect();
        assert_eq!(
            figures,
            [
                (400, 400, [0, 0]),
                // Of the first, 0..60 survive and 60..100 do not; of the second, 700..960 survive.
                (360, 320, [0, 40]),
                // No instant of the first survives; 700..800 of the second do.
                (200, 100, [0, 100]),
                // No instant of the second can be followed.
                (100, 0, [0, 100]),
                // Of the first, only 0..50 can be followed.
                (50, 0, [0, 50]),
                (0, 0, [0, 0]),
            ]
        );
        assert_eq!(found.ahead[2].survival(), Some(0.5));
        assert_eq!(found.ahead[2].ended(1), Some(0.5));
        assert_eq!(found.ahead[2].ended(2), None);
        assert_eq!(found.ahead[5].survival(), None);
    }

    #[test]
    fn times_from_a_damaged_clock_do_not_overflow() {
        let spell = Spell {
            from_ms: i64::MIN,
            to_ms: i64::MAX,
            cause: Some(0),
            observed_to_ms: i64::MAX,
        };
        let found = residual(&[spell, spell], &[1]);
        assert_eq!(found.ahead[0].counted_ms, i64::MAX);
        let backward = Spell {
            from_ms: 10,
            to_ms: 5,
            ..spell
        };
        assert_eq!(residual(&[backward], &[1]).ahead[0].counted_ms, 0);
    }

    /// Examines each millisecond separately, from the definition.
    fn slowly(spells: &[Spell], ahead_ms: i64) -> (i64, i64, [i64; 2]) {
        let (mut counted, mut survived, mut ended) = (0, 0, [0, 0]);
        for spell in spells {
            for now in spell.from_ms..spell.to_ms {
                let then = now + ahead_ms;
                if then >= spell.observed_to_ms {
                    continue;
                }
                counted += 1;
                if then < spell.to_ms {
                    survived += 1;
                } else {
                    ended[spell.cause.unwrap()] += 1;
                }
            }
        }
        (counted, survived, ended)
    }

    fn spells() -> impl Strategy<Value = Vec<Spell>> {
        let one = (0..50i64, 1..50i64, prop::option::of((0..2usize, 0..50i64)));
        prop::collection::vec(one, 0..10).prop_map(|all| {
            let spell = |(from_ms, ms, end): (i64, i64, Option<(usize, i64)>)| Spell {
                from_ms,
                to_ms: from_ms + ms,
                cause: end.map(|(cause, _)| cause),
                observed_to_ms: from_ms + ms + end.map_or(0, |(_, more)| more),
            };
            all.into_iter().map(spell).collect()
        })
    }

    proptest! {
        #[test]
        fn equals_the_slow_version(spells in spells(), ahead_ms in 0..80i64) {
            let found = residual(&spells, &[ahead_ms]).ahead[0];
            let fields = (found.counted_ms, found.survived_ms, found.ended_ms);
            prop_assert_eq!(fields, slowly(&spells, ahead_ms));
            prop_assert_eq!(found.counted_ms, found.survived_ms + found.ended_ms.iter().sum::<i64>());
        }

        #[test]
        fn merging_is_the_same_as_having_all(a in spells(), b in spells()) {
            let of = |spells: &[Spell]| residual(spells, &[0, 10, 40]);
            let all = of(&[a.clone(), b.clone()].concat());
            let (mut ab, mut ba) = (of(&a), of(&b));
            ab.merge(&of(&b));
            ba.merge(&of(&a));
            prop_assert_eq!(&ab, &all);
            prop_assert_eq!(ba, all);
        }

        /// A long observation of a region that comes and goes, cut at any time: the instants that can be
        /// followed have the same outcomes as in the whole observation.
        #[test]
        fn a_cut_takes_instants_and_changes_none(
            lengths in prop::collection::vec((1..20i64, 1..20i64), 1..10),
            cut_ms in 1..100i64,
            ahead_ms in 0..40i64,
        ) {
            let mut now = 0;
            let whole: Vec<Spell> = lengths.iter().map(|(available, not)| {
                let from_ms = now;
                now += available + not;
                Spell { from_ms, to_ms: from_ms + available, cause: Some(0), observed_to_ms: i64::MAX }
            }).collect();
            let seen: Vec<Spell> = whole.iter().filter(|s| s.from_ms < cut_ms).map(|s| Spell {
                to_ms: s.to_ms.min(cut_ms),
                cause: s.cause.filter(|_| s.to_ms < cut_ms),
                observed_to_ms: cut_ms,
                ..*s
            }).collect();
            let found = residual(&seen, &[ahead_ms]).ahead[0];
            let instants = || whole.iter().flat_map(|s| (s.from_ms..s.to_ms).map(move |t| (t, s.to_ms)))
                .filter(|(t, _)| t + ahead_ms < cut_ms);
            prop_assert_eq!(found.counted_ms, instants().count() as i64);
            let last = instants().filter(|(t, to)| t + ahead_ms < *to).count();
            prop_assert_eq!(found.survived_ms, last as i64);
        }
    }
}
