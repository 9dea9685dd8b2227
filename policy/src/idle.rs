//! The idle rule (Acharya & Setia, section 3): a host is idle without keyboard or mouse activity and with a
//! 5-minute load average below 0.3, both for five minutes or more.

/// The rule's two limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdleRule {
    /// Time for which both conditions must have held.
    pub idle_after_ms: i64,
    /// The load average must be below this.
    pub load_limit: f64,
}

impl Default for IdleRule {
    /// The paper's limits: five minutes, 0.3.
    fn default() -> Self {
        Self {
            idle_after_ms: 300_000,
            load_limit: 0.3,
        }
    }
}

/// The rule's input from one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Time of the sample, on any clock that only increases within a run of samples.
    pub time_ms: i64,
    /// Time since the owner was last active; `None` if no source knows.
    pub owner_idle_ms: Option<i64>,
    /// Owner's part of the 5-minute load average (`guest_load::owner_load5`).
    pub load5: Option<f64>,
}

/// Verdict of the idle rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Idle since `since_ms`, the later of the last activity and the load's fall. The idle period therefore
    /// starts before the sample that showed it.
    Idle {
        /// Start of the idle period.
        since_ms: i64,
    },
    /// Not idle yet; idle at `at_ms` if neither activity nor load occurs until then.
    Waiting {
        /// Time at which the host would be idle.
        at_ms: i64,
    },
    /// The load is not below the limit.
    Loaded,
    /// Activity or load is unknown. Never counts as idle.
    Unknown,
}

impl Verdict {
    /// Returns true if memory may be recruited.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        matches!(self, Self::Idle { .. })
    }
}

/// State of the rule between samples. Start with a new one after each gap: nothing is assumed across a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleState {
    calm_since_ms: Option<i64>,
}

impl IdleState {
    /// State after a sample with this verdict, for a caller that did not keep the state. Later verdicts are
    /// the same as with the state itself, as long as the owner's last activity never moves back in time.
    #[must_use]
    pub fn after(rule: &IdleRule, verdict: Verdict) -> Self {
        let calm_since_ms = match verdict {
            Verdict::Idle { since_ms } => Some(since_ms),
            Verdict::Waiting { at_ms } => Some(at_ms.saturating_sub(rule.idle_after_ms)),
            Verdict::Loaded | Verdict::Unknown => None,
        };
        Self { calm_since_ms }
    }

    /// Adds the next sample, and returns its verdict.
    pub fn step(&mut self, rule: &IdleRule, seen: Observation) -> Verdict {
        let (Some(owner_idle_ms), Some(load5)) = (seen.owner_idle_ms, seen.load5) else {
            self.calm_since_ms = None;
            return Verdict::Unknown;
        };
        if load5 >= rule.load_limit || load5.is_nan() {
            self.calm_since_ms = None;
            return Verdict::Loaded;
        }
        let calm_since_ms = *self.calm_since_ms.get_or_insert(seen.time_ms);
        let since_ms = calm_since_ms.max(seen.time_ms.saturating_sub(owner_idle_ms.max(0)));
        let at_ms = since_ms.saturating_add(rule.idle_after_ms);
        if seen.time_ms >= at_ms {
            Verdict::Idle { since_ms }
        } else {
            Verdict::Waiting { at_ms }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: i64 = 60_000;

    fn at(time_ms: i64, owner_idle_ms: i64, load5: f64) -> Observation {
        Observation {
            time_ms,
            owner_idle_ms: Some(owner_idle_ms),
            load5: Some(load5),
        }
    }

    #[test]
    fn five_minutes_of_both() {
        let rule = IdleRule::default();
        let mut state = IdleState::default();
        // The owner left at minute 0, and the load fell at minute 2: from minute 7 on, the host counts as
        // idle since minute 2.
        assert_eq!(state.step(&rule, at(MINUTE, MINUTE, 0.5)), Verdict::Loaded);
        assert_eq!(
            state.step(&rule, at(2 * MINUTE, 2 * MINUTE, 0.29)),
            Verdict::Waiting { at_ms: 7 * MINUTE }
        );
        assert_eq!(
            state.step(&rule, at(7 * MINUTE, 7 * MINUTE, 0.1)),
            Verdict::Idle {
                since_ms: 2 * MINUTE
            }
        );
        // A key press at minute 8.
        assert_eq!(
            state.step(&rule, at(8 * MINUTE, 0, 0.1)),
            Verdict::Waiting { at_ms: 13 * MINUTE }
        );
        assert_eq!(
            state.step(&rule, at(13 * MINUTE, 5 * MINUTE, 0.1)),
            Verdict::Idle {
                since_ms: 8 * MINUTE
            }
        );
        assert_eq!(
            state.step(&rule, at(14 * MINUTE, 6 * MINUTE, 0.3)),
            Verdict::Loaded
        );
    }

    #[test]
    fn what_cannot_be_seen_is_never_idle() {
        let rule = IdleRule::default();
        let mut state = IdleState::default();
        let mut blind = at(0, 0, 0.0);
        blind.owner_idle_ms = None;
        assert_eq!(state.step(&rule, blind), Verdict::Unknown);
        let mut no_load = at(10 * MINUTE, 10 * MINUTE, 0.0);
        no_load.load5 = None;
        assert_eq!(state.step(&rule, no_load), Verdict::Unknown);
        assert_eq!(
            state.step(&rule, at(11 * MINUTE, 11 * MINUTE, f64::NAN)),
            Verdict::Loaded
        );
    }

    proptest! {
        /// Compares with the definition: at every sample since the idle period's start, both conditions held.
        #[test]
        fn idle_means_both_conditions_held(
            steps in proptest::collection::vec((1..4 * MINUTE, 0..12 * MINUTE, 0.0..0.5f64), 1..60)
        ) {
            let rule = IdleRule::default();
            let mut state = IdleState::default();
            let mut time_ms = 0;
            let mut seen: Vec<Observation> = Vec::new();
            for (gap, owner_idle, load) in steps {
                time_ms += gap;
                seen.push(at(time_ms, owner_idle, load));
                let verdict = state.step(&rule, seen[seen.len() - 1]);
                let calm_from = seen.iter().rev().take_while(|o| o.load5.is_some_and(|l| l < 0.3)).last();
                let expected = calm_from.is_some_and(|from| {
                    time_ms - from.time_ms >= rule.idle_after_ms && owner_idle >= rule.idle_after_ms
                });
                prop_assert_eq!(verdict.is_idle(), expected);
            }
        }

        /// A caller that keeps only the verdict gets the same results as one that keeps the state.
        #[test]
        fn a_verdict_is_enough_to_go_on_from(
            steps in proptest::collection::vec((1..4 * MINUTE, 0..12 * MINUTE, 0.0..0.5f64), 1..60)
        ) {
            let rule = IdleRule::default();
            let mut state = IdleState::default();
            let mut kept = Verdict::Unknown;
            let (mut time_ms, mut active_ms) = (0, i64::MIN);
            for (gap, owner_idle, load) in steps {
                time_ms += gap;
                active_ms = active_ms.max(time_ms - owner_idle);
                let seen = at(time_ms, time_ms - active_ms, load);
                let verdict = state.step(&rule, seen);
                kept = IdleState::after(&rule, kept).step(&rule, seen);
                prop_assert_eq!(kept, verdict);
            }
        }
    }
}
