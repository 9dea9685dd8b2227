//! Computes the memory limit of a third-party memory server.

use gleaner_schemas::lending::HostQuota;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Rule for limits, as configured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Minimum limit, since memcached has one.
    pub(super) minimum_bytes: u64,
    /// Share of the quota that the server may use.
    pub(super) share: f64,
    /// True if the quota must include the server's use, since the agent counts the server among its
    /// `guest_processes`.
    pub(super) quota_includes_use: bool,
}

impl Rule {
    /// Limit of a server that used `used_bytes` when `quota` was determined.
    ///
    /// If the agent counts the server as one of the owner's programs, it subtracts the server's use from the
    /// quota. Uncorrected, this use would shrink the limit until the server gets half. If no part of the
    /// quota is unleased, the limit is the minimum.
    pub(super) fn limit_bytes(&self, quota: &HostQuota, used_bytes: u64) -> u64 {
        let unleased_bytes = quota.quota_bytes.saturating_sub(quota.lent_bytes);
        if unleased_bytes == 0 {
            return self.minimum_bytes;
        }
        let own_bytes = if self.quota_includes_use {
            0
        } else {
            used_bytes
        };
        let lendable_bytes = unleased_bytes.saturating_add(own_bytes);
        ((lendable_bytes as f64 * self.share) as u64).max(self.minimum_bytes)
    }
}

/// Recent uses of a server, with their times. A quota was determined some time before its message arrives. If
/// the server has grown in between, the growth is not yet subtracted from the quota, and would count twice.
#[derive(Debug, Default)]
pub(super) struct Uses(VecDeque<(Instant, u64)>);

/// Maximum age of the recorded uses.
const KEPT: Duration = Duration::from_secs(300);
/// Maximum time from the sample of memory to the quota's arrival, in addition to the quota's stated age.
const ON_THE_WAY: Duration = Duration::from_secs(2);

impl Uses {
    pub(super) fn push(&mut self, now: Instant, used_bytes: u64) {
        self.0.push_back((now, used_bytes));
        while self.0.front().is_some_and(|(at, _)| now - *at > KEPT) {
            self.0.pop_front();
        }
    }

    /// Smallest use since a quota of this age was determined.
    pub(super) fn least_bytes(&self, now: Instant, age: Duration) -> u64 {
        let since = age.saturating_add(ON_THE_WAY);
        let late = self.0.iter().rev();
        let of_late = late.take_while(|(at, _)| now.saturating_duration_since(*at) <= since);
        of_late.map(|(_, used)| *used).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn quota(quota_mib: u64, lent_mib: u64) -> HostQuota {
        HostQuota {
            quota_bytes: quota_mib * MIB,
            lent_bytes: lent_mib * MIB,
            ..HostQuota::default()
        }
    }

    #[test]
    fn a_server_does_not_shrink_because_it_fills() {
        let rule = Rule {
            minimum_bytes: 64 * MIB,
            share: 0.5,
            quota_includes_use: false,
        };
        // Server and quota together have 1000 MiB. Whatever the server uses, its limit is half of them.
        for used_mib in [0, 100, 400, 500] {
            let limit = rule.limit_bytes(&quota(1000 - used_mib, 0), used_mib * MIB);
            assert_eq!(limit, 500 * MIB, "{used_mib}");
        }
        let including = Rule {
            quota_includes_use: true,
            ..rule
        };
        assert_eq!(including.limit_bytes(&quota(1000, 0), 400 * MIB), 500 * MIB);
        assert_eq!(including.limit_bytes(&quota(1000, 400), 0), 300 * MIB);
    }

    #[test]
    fn without_a_quota_what_it_has_is_not_its() {
        for quota_includes_use in [false, true] {
            let rule = Rule {
                minimum_bytes: 64 * MIB,
                share: 1.0,
                quota_includes_use,
            };
            assert_eq!(rule.limit_bytes(&quota(0, 0), 4096 * MIB), 64 * MIB);
            assert_eq!(rule.limit_bytes(&quota(10, 30), 4096 * MIB), 64 * MIB);
            assert_eq!(rule.limit_bytes(&quota(1, 0), 0), 64 * MIB);
        }
    }

    #[test]
    fn growth_since_the_figures_were_gathered_is_not_given_twice() {
        let mut uses = Uses::default();
        let begin = Instant::now();
        for second in 0..400 {
            uses.push(begin + Duration::from_secs(second), second * MIB);
        }
        let now = begin + Duration::from_secs(399);
        assert_eq!(uses.least_bytes(now, Duration::ZERO), 397 * MIB);
        assert_eq!(uses.least_bytes(now, Duration::from_secs(90)), 307 * MIB);
        assert_eq!(uses.least_bytes(now, Duration::MAX), 99 * MIB);
        assert_eq!(Uses::default().least_bytes(now, Duration::ZERO), 0);
    }
}
