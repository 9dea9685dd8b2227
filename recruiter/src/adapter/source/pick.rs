//! Selects the quota of one host.

use super::{Failure, QuotaNews};
use gleaner_schemas::lending::Quotas;

/// Choice of the host whose quota counts.
#[derive(Clone, Debug)]
pub(super) struct HostChoice {
    host_id: Option<String>,
}

impl HostChoice {
    /// Chooses the host `host_id`; without an id, the only host that there is.
    pub(super) fn new(host_id: Option<String>) -> Self {
        Self { host_id }
    }

    /// Selects this host's quota from the quotas of all hosts.
    pub(super) fn of_all(&self, quotas: Quotas, from: &str) -> QuotaNews {
        let count = quotas.hosts.len();
        let mut named = quotas.hosts.into_iter();
        let found = match &self.host_id {
            Some(id) => named.find(|host| host.host_id == *id),
            None => named.next().filter(|_| count == 1),
        };
        match (found, &self.host_id) {
            (Some(quota), _) => QuotaNews::Quota(quota),
            (None, Some(id)) => {
                QuotaNews::Nothing(Failure::Host(format!("{from} has no host {id}")))
            }
            (None, None) => QuotaNews::Nothing(Failure::Host(format!(
                "{from} has the quotas of {count} hosts"
            ))),
        }
    }

    /// Selects this host's quota from the quotas of changed hosts.
    pub(super) fn of_changed(&self, quotas: Quotas, only: &str) -> QuotaNews {
        let id = self.host_id.as_deref().unwrap_or(only);
        let found = quotas.hosts.into_iter().find(|host| host.host_id == id);
        found.map_or(QuotaNews::AsBefore, QuotaNews::Quota)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::lending::HostQuota;

    fn of(ids: &[&str]) -> Quotas {
        let one = |id: &&str| HostQuota {
            host_id: (*id).to_owned(),
            ..HostQuota::default()
        };
        Quotas {
            time_ms: 0,
            hosts: ids.iter().map(one).collect(),
        }
    }

    #[test]
    fn another_hosts_quota_is_never_taken() {
        let id = |heard| match heard {
            QuotaNews::Quota(quota) => Some(quota.host_id),
            _ => None,
        };
        let (any, b) = (HostChoice::new(None), HostChoice::new(Some("b".to_owned())));
        assert_eq!(id(any.of_all(of(&["a"]), "f")).as_deref(), Some("a"));
        assert_eq!(id(any.of_all(of(&["a", "b"]), "f")), None);
        assert_eq!(id(any.of_all(of(&[]), "f")), None);
        assert_eq!(id(b.of_all(of(&["a", "b"]), "f")).as_deref(), Some("b"));
        assert_eq!(id(b.of_all(of(&["a"]), "f")), None);
        assert_eq!(id(b.of_changed(of(&["a"]), "")), None);
        assert_eq!(id(any.of_changed(of(&["b"]), "a")), None);
        assert_eq!(
            id(any.of_changed(of(&["b", "a"]), "a")).as_deref(),
            Some("a")
        );
    }
}
