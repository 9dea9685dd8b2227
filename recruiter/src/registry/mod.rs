//! Registry of hosts and leases. It is pure: it gets the time as an argument, and sends nothing.
//!
//! All its data come from the hosts' announcements and answers. So the registry is complete again one
//! announcement interval after a start. Hosts grant, renew and end their own leases; the registry only
//! records them.

mod candidates;
mod host;
mod intake;
mod leases;
mod limits;
mod own;
mod request;
#[cfg(test)]
mod tests;

pub use host::HostView;
pub(crate) use intake::check_answer;
use intake::{MOST_LEASES, check};
pub use leases::Key;
pub(crate) use limits::starting;
pub use own::OwnMemory;
pub use request::Plan;

use gleaner_policy::forecast::table::Table;
use gleaner_policy::outlook::outlook;
use gleaner_schemas::lending::{
    Announcement, Answer, HostQuota, OUTAGE_GRACE_MS, Outcome, Refusal, RefusalKind,
};
use host::Host;
use leases::Leases;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// Maximum number of hosts or leases that are processed while other threads wait for the registry.
const PORTION: usize = 512;

/// A host's id, shared by all references to it.
pub type HostId = Arc<str>;

/// Settings of the registry.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Time between two announcements of a host.
    pub announce_every_ms: i64,
    /// Maximum bytes leased to one client.
    pub client_bytes: Option<u64>,
    /// Maximum number of leases of one client.
    pub client_leases: Option<usize>,
    /// Share of all quotas that is never granted, so that hosts may shrink without ending leases.
    pub reserve_share: f64,
    /// Minimum probability that a lease lasts for the minimum duration that its request states.
    pub confidence: f64,
}

impl Settings {
    /// Time without messages after which a host counts as gone.
    #[must_use]
    pub fn silence_limit_ms(&self) -> i64 {
        self.announce_every_ms.saturating_mul(3)
    }
}

/// Forecasts of how long memory stays available, with the hour to which they apply.
#[derive(Clone)]
pub struct LoadedForecasts {
    /// Table of the analysis' forecasts.
    pub table: Arc<Table>,
    /// Hour of the week in the fleet's time zone; 0 is the first hour of Monday.
    pub hour_of_week: u8,
}

impl std::fmt::Debug for LoadedForecasts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "forecasts at hour {}", self.hour_of_week)
    }
}

/// Sums over linked hosts. They do not overflow, whatever hosts announce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes that may be lent.
    pub quota_bytes: u128,
    /// Bytes that are lent.
    pub lent_bytes: u128,
    /// Unleased bytes of the quotas.
    pub unleased_bytes: u128,
}

/// Quota of a host, with the time of its arrival.
#[derive(Clone, Debug)]
pub struct DatedQuota {
    /// Announced quota; 0 while the host is unreachable.
    pub quota: Arc<HostQuota>,
    /// Time at which the recruiter received the quota.
    pub announced_ms: i64,
}

impl DatedQuota {
    /// The host's quota with its present age.
    #[must_use]
    pub fn at(&self, now_ms: i64) -> HostQuota {
        let mut quota = HostQuota::clone(&self.quota);
        let since = now_ms.saturating_sub(self.announced_ms).max(0);
        quota.age_ms = quota.age_ms.saturating_add(since);
        quota
    }
}

/// Changes since the last call of [`Registry::take_changes`].
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Hosts whose quota has changed.
    pub changed: Vec<DatedQuota>,
    /// Hosts that were removed.
    pub gone: Vec<HostId>,
}

/// Hosts, leases and pending requests.
#[derive(Debug)]
pub struct Registry {
    settings: Settings,
    started_ms: i64,
    hosts: BTreeMap<HostId, Host>,
    leases: Leases,
    /// Requests in progress, by client and key. Each has the bytes and the number of leases that it may add.
    pending: BTreeMap<(String, String), (u64, usize)>,
    forecasts: Option<LoadedForecasts>,
    totals: Totals,
    changed: BTreeSet<HostId>,
    gone: BTreeSet<HostId>,
    /// Leases of removed hosts, with the time at which each expires on its host. Until then such a lease may
    /// still exist, also beyond its term while the host reaches no recruiter. It is known again when its host
    /// returns.
    out_of_sight: BTreeMap<String, (HostId, i64)>,
}

impl Registry {
    /// Makes an empty registry.
    #[must_use]
    pub fn new(settings: Settings, now_ms: i64) -> Self {
        Self {
            settings,
            started_ms: now_ms,
            hosts: BTreeMap::new(),
            leases: Leases::default(),
            pending: BTreeMap::new(),
            forecasts: None,
            totals: Totals::default(),
            changed: BTreeSet::new(),
            gone: BTreeSet::new(),
            out_of_sight: BTreeMap::new(),
        }
    }

    /// Applies new settings from now on. Leases granted before are not changed.
    pub fn configure(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Records an announcement that host `host_id` made over the connection `link`. Later connections have
    /// higher numbers.
    ///
    /// # Errors
    /// Reason to end the connection: a later connection replaced it, or the announcement is not that of this
    /// host.
    pub fn announced(
        &mut self,
        host_id: &HostId,
        link: u64,
        said: Announcement,
        now_ms: i64,
    ) -> Result<(), Refusal> {
        check(host_id, &said)?;
        let mut said = said;
        if let Some(LoadedForecasts {
            table,
            hour_of_week,
        }) = &self.forecasts
        {
            said.quota.outlook = outlook(table, &said.quota, *hour_of_week);
        }
        let newest = self.hosts.get(host_id).map(|host| host.newest_link);
        if newest.is_some_and(|newest| newest > link) {
            return Err(replaced(self.settings.silence_limit_ms()));
        }
        self.subtract(host_id);
        let before = self.hosts.remove(host_id);
        let host = Host::of(before.as_ref(), link, said, now_ms);
        self.leases.replace(host_id, before.as_ref(), &host.leases);
        if before.is_none_or(|before| !same(&before.quota, &host.quota)) {
            self.changed.insert(Arc::clone(host_id));
        }
        self.gone.remove(host_id);
        self.hosts.insert(Arc::clone(host_id), host);
        self.add(host_id);
        Ok(())
    }

    /// Records a host's answer. Answers over replaced connections are ignored.
    pub fn answered(&mut self, host_id: &HostId, link: u64, answer: &Answer, now_ms: i64) {
        self.subtract(host_id);
        if let Some(host) = self.hosts.get_mut(host_id).filter(|h| h.link == Some(link)) {
            host.requests_per_s = answer.requests_per_s;
            match &answer.outcome {
                Outcome::Granted { lease } | Outcome::Renewed { lease }
                    if host.leases.len() < MOST_LEASES =>
                {
                    host.leases
                        .insert(lease.lease_id.clone(), (lease.clone(), now_ms));
                    self.leases.add(host_id, lease);
                }
                Outcome::Released { lease_id } => {
                    host.leases.remove(lease_id);
                    self.leases.remove(host_id, lease_id);
                }
                // A lease is ignored if its host already has as many as an announcement may contain. The host's
                // next announcement is then refused.
                Outcome::Granted { .. } | Outcome::Renewed { .. } | Outcome::Refused(_) => {}
            }
            if host.set_unleased(answer.unleased_bytes) {
                self.changed.insert(Arc::clone(host_id));
            }
        }
        self.add(host_id);
    }

    /// Removes a lease of which its host says that it does not exist.
    pub fn unknown_to_host(&mut self, host_id: &HostId, lease_id: &str) {
        if let Some(host) = self.hosts.get_mut(host_id) {
            host.leases.remove(lease_id);
        }
        self.leases.remove(host_id, lease_id);
    }

    /// Notes that the connection `link` has ended. The host is then unreachable, unless it has a later
    /// connection. Its leases continue.
    pub fn disconnected(&mut self, host_id: &HostId, link: u64) {
        self.subtract(host_id);
        if let Some(host) = self.hosts.get_mut(host_id).filter(|h| h.link == Some(link)) {
            host.link = None;
            host.set_unleased(0);
            self.changed.insert(Arc::clone(host_id));
        }
        self.add(host_id);
    }

    /// Notes that a host did not execute a request.
    pub fn failed(&mut self, host_id: &HostId, now_ms: i64) {
        if let Some(host) = self.hosts.get_mut(host_id) {
            host.failed_ms = Some(now_ms);
        }
    }

    /// Removes hosts that were silent for too long, and returns their ids.
    pub fn sweep(&mut self, now_ms: i64) -> Vec<HostId> {
        let silent_since = now_ms.saturating_sub(self.settings.silence_limit_ms());
        let silent = |(_, host): &(&HostId, &Host)| host.announced_ms <= silent_since;
        let silent: Vec<HostId> = self
            .hosts
            .iter()
            .filter(silent)
            .map(|(id, _)| id.clone())
            .collect();
        // This happens before hosts are removed. A host that has returned did not announce these leases
        // again, so they must not count when it is removed again.
        let hosts = &self.hosts;
        self.out_of_sight
            .retain(|_, (host_id, until_ms)| *until_ms > now_ms && !hosts.contains_key(host_id));
        for host_id in &silent {
            self.subtract(host_id);
            if let Some(host) = self.hosts.remove(host_id) {
                self.leases.replace(host_id, Some(&host), &BTreeMap::new());
                for (lease, said_ms) in host.leases.into_values() {
                    let until_ms = said_ms
                        .saturating_add(lease.expires_in_ms)
                        .saturating_add(OUTAGE_GRACE_MS);
                    let seen = (Arc::clone(host_id), until_ms);
                    self.out_of_sight.insert(lease.lease_id, seen);
                }
            }
            self.changed.remove(host_id);
            self.gone.insert(Arc::clone(host_id));
        }
        silent
    }

    /// Returns true if a lease was on a removed host and may still exist, since it has not expired there. A
    /// host that reconnects announces its leases itself.
    #[must_use]
    pub fn may_exist_on_removed_host(&self, lease_id: &str, now_ms: i64) -> bool {
        let seen = self.out_of_sight.get(lease_id);
        seen.is_some_and(|(host_id, until_ms)| {
            *until_ms > now_ms && !self.hosts.contains_key(host_id)
        })
    }

    /// Replaces the forecasts. The hosts' own outlooks arrive with their announcements.
    pub fn foresee(&mut self, forecasts: Option<LoadedForecasts>) {
        self.forecasts = forecasts;
    }

    /// Quotas of all hosts, in the order of their ids.
    #[must_use]
    pub fn quotas(&self) -> Vec<DatedQuota> {
        self.hosts.values().map(Host::latest_quota).collect()
    }

    /// Returns the changes since the last call of this function.
    pub fn take_changes(&mut self) -> Changes {
        let changed = std::mem::take(&mut self.changed);
        let seen = |id: &HostId| self.hosts.get(id).map(Host::latest_quota);
        Changes {
            changed: changed.iter().filter_map(seen).collect(),
            gone: std::mem::take(&mut self.gone).into_iter().collect(),
        }
    }

    /// Up to [`PORTION`] hosts after `after`, in the order of their ids. So no thread waits until ten
    /// thousand are copied.
    #[must_use]
    pub fn hosts_after(&self, after: &str, now_ms: i64) -> Vec<HostView> {
        let later = (Bound::Excluded(after), Bound::Unbounded);
        let hosts = self.hosts.range::<str, _>(later).take(PORTION);
        hosts.map(|(_, host)| host.view(now_ms)).collect()
    }

    /// Sums over linked hosts.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Number of known leases.
    #[must_use]
    pub fn leases_count(&self) -> usize {
        self.leases.count()
    }

    /// Time until all hosts should have announced themselves after the recruiter's start; `None` once it has
    /// passed.
    #[must_use]
    pub fn grants_in_ms(&self, now_ms: i64) -> Option<i64> {
        let left = self
            .started_ms
            .saturating_add(self.settings.announce_every_ms)
            .saturating_sub(now_ms);
        (left > 0).then_some(left)
    }

    fn add(&mut self, host_id: &HostId) {
        if let Some(host) = self.hosts.get(host_id).filter(|host| host.link.is_some()) {
            self.totals.quota_bytes += u128::from(host.quota.quota_bytes);
            self.totals.lent_bytes += u128::from(host.quota.lent_bytes);
            self.totals.unleased_bytes += u128::from(host.quota.unleased_bytes);
        }
    }

    fn subtract(&mut self, host_id: &HostId) {
        if let Some(host) = self.hosts.get(host_id).filter(|host| host.link.is_some()) {
            self.totals.quota_bytes -= u128::from(host.quota.quota_bytes);
            self.totals.lent_bytes -= u128::from(host.quota.lent_bytes);
            self.totals.unleased_bytes -= u128::from(host.quota.unleased_bytes);
        }
    }
}

/// Returns true if two quotas are equal, except for their age and the host's idle time.
fn same(before: &HostQuota, now: &HostQuota) -> bool {
    let timeless = |quota: &HostQuota| HostQuota {
        age_ms: 0,
        idle_for_ms: None,
        idle_in_ms: None,
        outlook: Vec::new(),
        ..quota.clone()
    };
    timeless(before) == timeless(now)
}

/// Refusal of a connection after a later connection of the same host has replaced it.
pub(crate) fn replaced(retry_in_ms: i64) -> Refusal {
    Refusal {
        kind: RefusalKind::Busy,
        detail: "another memory server with this host's id has connected since: if there are two, they share /etc/machine-id; give one a new one".to_owned(),
        retry_in_ms: Some(retry_in_ms),
    }
}
