//! Reports the limits that `follow` sets.

use gleaner_schemas::lending::{HostQuota, QuotaReason};
use gleaner_schemas::units::Bytes;
use serde::Serialize;
use std::io::Write;
use std::time::SystemTime;

/// Reason why a limit was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LimitReason {
    /// The quota sets the limit.
    Quota,
    /// No news of the quota arrived for too long.
    Lost,
    /// The source does not know the host.
    NoHost,
    /// The adapter ends, so that nothing will adjust the limit any more.
    Ending,
}

/// Report of a changed limit.
#[derive(Debug, Serialize)]
pub(super) struct Change<'a> {
    pub(super) time_ms: i64,
    pub(super) server: &'a str,
    pub(super) previous_limit_bytes: u64,
    pub(super) limit_bytes: u64,
    pub(super) used_bytes: u64,
    pub(super) limit_reason: LimitReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quota_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quota_reason: Option<QuotaReason>,
}

impl<'a> Change<'a> {
    pub(super) fn new(
        server: &'a str,
        limit_reason: LimitReason,
        quota: Option<&'a HostQuota>,
    ) -> Self {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self {
            time_ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            server,
            previous_limit_bytes: 0,
            limit_bytes: 0,
            used_bytes: 0,
            limit_reason,
            host_id: quota.map(|quota| quota.host_id.as_str()),
            quota_bytes: quota.map(|quota| quota.quota_bytes),
            quota_reason: quota.map(|quota| quota.reason),
        }
    }

    /// Prints the change to standard output. It is no error if nobody reads the output.
    pub(super) fn tell(&self, as_json: bool) {
        let mut out = std::io::stdout().lock();
        let _ = if as_json {
            let line = serde_json::to_string(self).unwrap_or_default();
            writeln!(out, "{line}")
        } else {
            writeln!(out, "{}", self.for_people())
        };
        let _ = out.flush();
    }

    fn for_people(&self) -> String {
        let because = match (self.limit_reason, self.quota_bytes, self.quota_reason) {
            (LimitReason::Quota, Some(bytes), Some(reason)) => {
                format!("the quota is {} ({})", Bytes::from(bytes), word(reason))
            }
            (LimitReason::Ending, ..) => "nobody follows the quota any more".to_owned(),
            (LimitReason::NoHost, ..) => "there is no quota".to_owned(),
            _ => "there was no news of the quota".to_owned(),
        };
        let previous = match self.previous_limit_bytes {
            0 => "no limit".to_owned(),
            bytes => Bytes::from(bytes).to_string(),
        };
        format!(
            "{}: {previous} → {}, of which {} in use: {because}",
            self.server,
            Bytes::from(self.limit_bytes),
            Bytes::from(self.used_bytes),
        )
    }
}

/// Name of the reason, as in JSON but with spaces.
fn word(reason: QuotaReason) -> String {
    let word = serde_json::to_value(reason).unwrap_or_default();
    word.as_str().unwrap_or_default().replace('_', " ")
}
