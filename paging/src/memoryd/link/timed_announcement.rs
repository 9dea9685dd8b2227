//! An announcement with its age.

use gleaner_schemas::lending::Announcement;
use std::sync::Arc;
use std::time::Instant;

/// Announcement to send, with the time at which it was made.
#[derive(Clone, Debug)]
pub(super) struct TimedAnnouncement {
    at: Instant,
    announcement: Arc<Announcement>,
}

impl TimedAnnouncement {
    /// Makes an announcement that holds from now on.
    pub(super) fn now(announcement: Arc<Announcement>) -> Self {
        Self {
            at: Instant::now(),
            announcement,
        }
    }

    /// Returns the announcement with its durations adjusted to `now`, for a recruiter that connects later.
    pub(super) fn adjusted_to(&self, now: Instant) -> Announcement {
        let passed = now.saturating_duration_since(self.at).as_millis();
        let passed_ms = i64::try_from(passed).unwrap_or(i64::MAX);
        let mut told = Announcement::clone(&self.announcement);
        let quota = &mut told.quota;
        quota.age_ms = quota.age_ms.saturating_add(passed_ms);
        quota.idle_for_ms = quota.idle_for_ms.map(|ms| ms.saturating_add(passed_ms));
        quota.idle_in_ms = quota
            .idle_in_ms
            .map(|ms| ms.saturating_sub(passed_ms).max(0));
        for lease in &mut told.leases {
            lease.expires_in_ms = lease.expires_in_ms.saturating_sub(passed_ms).max(0);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::lending::{HostQuota, Lease};
    use std::time::Duration;

    #[test]
    fn what_is_told_late_is_told_as_it_is_by_then() {
        let quota = HostQuota {
            age_ms: 5,
            idle_for_ms: Some(100),
            idle_in_ms: Some(1500),
            ..HostQuota::default()
        };
        let lease = Lease {
            expires_in_ms: 10_000,
            ..Lease::default()
        };
        let announcement = Announcement {
            quota,
            leases: vec![lease],
            ..Announcement::default()
        };
        let announced = TimedAnnouncement::now(Arc::new(announcement.clone()));
        assert_eq!(announced.adjusted_to(announced.at), announcement);
        let told = announced.adjusted_to(announced.at + Duration::from_secs(2));
        let quota = told.quota;
        assert_eq!(
            (quota.age_ms, quota.idle_for_ms, quota.idle_in_ms),
            (2005, Some(2100), Some(0))
        );
        assert_eq!(told.leases[0].expires_in_ms, 8000);
    }
}
