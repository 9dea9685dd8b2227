//! The settings that are tried: each limit varied alone, and a grid of two of them.

use gleaner_policy::idle::IdleRule;
use gleaner_policy::quota::Mode;
use gleaner_schemas::findings::{LendingMode, Parameters, Scope};

const IDLE_AFTER_S: [f64; 5] = [120.0, 300.0, 600.0, 1200.0, 1800.0];
/// Limits of the load that are tried; `None`: any load.
const LOAD_LIMITS: [Option<f64>; 4] = [Some(0.1), Some(0.3), Some(1.0), None];
const HEADROOM_SHARES: [f64; 4] = [0.05, 0.10, 0.15, 0.25];
const MINIMUM_IDLE_S: [f64; 3] = [0.0, 300.0, 900.0];

/// A setting of the limits of lending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    /// Name of the limit that differs from the defaults.
    pub(super) varied: &'static str,
    pub(super) idle_after_s: f64,
    pub(super) load_limit: Option<f64>,
    pub(super) headroom_share: f64,
    pub(super) minimum_idle_s: f64,
    pub(super) scope: Scope,
    pub(super) mode: LendingMode,
}

impl Setting {
    /// All settings; `parameters` has the default limits.
    pub(super) fn all(parameters: &Parameters) -> Vec<Self> {
        let modes = [LendingMode::Paper, LendingMode::Gentle];
        modes
            .into_iter()
            .flat_map(|mode| Self::of_mode(mode, parameters))
            .collect()
    }

    fn of_mode(mode: LendingMode, parameters: &Parameters) -> Vec<Self> {
        let default = Self {
            varied: "none",
            idle_after_s: parameters.idle_after_s,
            load_limit: Some(parameters.load_limit),
            headroom_share: parameters.headroom_share,
            minimum_idle_s: 0.0,
            scope: Scope::Idle,
            mode,
        };
        let mut all = vec![
            default,
            Self {
                varied: "scope",
                scope: Scope::All,
                ..default
            },
        ];
        all.extend(IDLE_AFTER_S.map(|idle_after_s| Self {
            varied: "idle_after_s",
            idle_after_s,
            ..default
        }));
        all.extend(LOAD_LIMITS.map(|load_limit| Self {
            varied: "load_limit",
            load_limit,
            ..default
        }));
        all.extend(HEADROOM_SHARES.map(|headroom_share| Self {
            varied: "headroom_share",
            headroom_share,
            ..default
        }));
        all.extend(MINIMUM_IDLE_S.map(|minimum_idle_s| Self {
            varied: "minimum_idle_s",
            minimum_idle_s,
            ..default
        }));
        // A setting equal to the defaults is listed once.
        let is_default = |s: &Self| {
            Self {
                varied: "none",
                ..*s
            } == default
        };
        let mut seen = false;
        all.retain(|s| !is_default(s) || !std::mem::replace(&mut seen, true));
        all.extend(IDLE_AFTER_S.into_iter().flat_map(|idle_after_s| {
            HEADROOM_SHARES.map(|headroom_share| Self {
                varied: "idle_after_s,headroom_share",
                idle_after_s,
                headroom_share,
                ..default
            })
        }));
        all
    }

    pub(super) fn rule(&self) -> IdleRule {
        IdleRule {
            idle_after_ms: milliseconds(self.idle_after_s),
            load_limit: self.load_limit.unwrap_or(f64::INFINITY),
        }
    }

    pub(super) fn minimum_idle_ms(&self) -> i64 {
        milliseconds(self.minimum_idle_s)
    }

    pub(super) fn policy_mode(&self) -> Mode {
        match self.mode {
            LendingMode::Paper => Mode::Paper,
            LendingMode::Gentle => Mode::Gentle,
        }
    }
}

fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_a_grid() {
        let all = Setting::all(&Parameters::default());
        let of = |varied: &str| all.iter().filter(|s| s.varied == varied).count();
        // Number of settings over both modes. The default values are in each list, but they count only in
        // `none`.
        let counts = [
            "none",
            "scope",
            "idle_after_s",
            "load_limit",
            "headroom_share",
            "minimum_idle_s",
        ]
        .map(of);
        assert_eq!(counts, [2, 2, 8, 6, 6, 4]);
        assert_eq!(of("idle_after_s,headroom_share"), 2 * 5 * 4);
        assert_eq!(all.len(), 28 + 40);
        let any_load = all.iter().find(|s| s.load_limit.is_none()).unwrap();
        assert_eq!(any_load.rule().load_limit, f64::INFINITY);
    }
}
