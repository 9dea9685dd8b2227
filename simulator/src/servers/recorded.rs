//! Rules by which recorded hosts, as servers, have room.

use gleaner_policy::idle::IdleRule;
use gleaner_policy::quota::Limits;
use gleaner_schemas::lending::Mode;
use serde::{Deserialize, Serialize};

/// Rules by which recorded hosts lend their memory as servers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recorded {
    /// Mode of lending.
    pub mode: Mode,
    /// Idle time after which a host lends, in s.
    pub idle_after_s: f64,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// True if hosts have no owners, so that they are always idle.
    pub is_always_idle: bool,
}

impl Default for Recorded {
    fn default() -> Self {
        Self {
            mode: Mode::Paper,
            idle_after_s: IdleRule::default().idle_after_ms as f64 / 1_000.0,
            headroom_share: Limits::default().headroom_share,
            is_always_idle: false,
        }
    }
}
