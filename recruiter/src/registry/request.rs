//! Plans a request for leases: finds the existing leases of its key, checks permission, and lists hosts to
//! ask.

use super::{HostId, Registry, candidates, limits, own};
use gleaner_policy::placement::Candidate;
use gleaner_schemas::lending::{LeaseRequest, LeaseView, Refusal, RefusalKind};

/// Plan for executing a request.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Existing leases of this key, at most as many as requested.
    pub found: Vec<LeaseView>,
    /// Further leases of this key. A late answer or another recruiter left them over.
    pub superfluous: Vec<LeaseView>,
    /// Number of leases that are still missing.
    pub missing: usize,
    /// Hosts able to lend the missing leases.
    pub candidates: Vec<Candidate>,
}

impl Registry {
    /// Plans a client's request. If leases are missing, the request holds a reservation until
    /// [`Self::finished`].
    ///
    /// # Errors
    /// Reason of the refusal, with the time after which to try again.
    pub fn plan(
        &mut self,
        client: &str,
        request: &LeaseRequest,
        now_ms: i64,
    ) -> Result<Plan, Refusal> {
        let key = (client.to_owned(), request.key.clone());
        if self.pending.contains_key(&key) {
            return Err(Refusal {
                kind: RefusalKind::Busy,
                detail: format!(
                    "a request with key {:?} is in progress: repeat it to get its result",
                    request.key
                ),
                retry_in_ms: Some(1000),
            });
        }
        let (found, superfluous) = self.found(client, request, now_ms)?;
        let missing = copies(request).saturating_sub(found.len());
        let plan = Plan {
            missing,
            found,
            superfluous,
            candidates: Vec::new(),
        };
        if missing == 0 {
            return Ok(plan);
        }
        if let Some(left_ms) = self.grants_in_ms(now_ms) {
            return Err(limits::starting("leases are granted", left_ms));
        }
        let bytes = request.slabs_bytes();
        limits::check(self, client, request, missing)?;
        let excluded: Vec<&str> = plan
            .found
            .iter()
            .map(|lease| lease.host_id.as_str())
            .chain(request.avoided_host_ids.iter().map(String::as_str))
            .collect();
        let candidates = match &request.host_id {
            Some(host_id) => own::candidates(self, request, host_id)?,
            None => candidates::of(self, (client, request), &excluded, missing)?,
        };
        let most = bytes.saturating_mul(missing as u64);
        self.pending.insert(key, (most, missing));
        Ok(Plan { candidates, ..plan })
    }

    /// Releases the reservation of a planned request.
    pub fn finished(&mut self, client: &str, key: &str) {
        self.pending.remove(&(client.to_owned(), key.to_owned()));
    }

    /// Reserves bytes of a host that is about to be asked, so that no other request counts on them.
    pub fn reserve_bytes(&mut self, host_id: &HostId, bytes: u64) {
        if let Some(host) = self.hosts.get_mut(host_id) {
            host.pending_bytes = host.pending_bytes.saturating_add(bytes);
        }
    }

    /// Releases the bytes after the host has answered, or when it will not answer.
    pub fn release_reservation(&mut self, host_id: &HostId, bytes: u64) {
        if let Some(host) = self.hosts.get_mut(host_id) {
            host.pending_bytes = host.pending_bytes.saturating_sub(bytes);
        }
    }

    /// Leases of this key: first as many as requested, then the superfluous ones. Leases on reachable hosts
    /// come first.
    fn found(
        &self,
        client: &str,
        request: &LeaseRequest,
        now_ms: i64,
    ) -> Result<(Vec<LeaseView>, Vec<LeaseView>), Refusal> {
        let ids = self.leases.of_key(client, &request.key);
        let mut found: Vec<_> = ids.filter_map(|id| self.lease(id, now_ms)).collect();
        let bytes = request.slabs_bytes();
        if let Some(other) = found
            .iter()
            .find(|found| found.lease.granted_bytes != bytes)
        {
            return Err(Refusal {
                kind: RefusalKind::Malformed,
                detail: format!(
                    "key {:?} has a lease of {} bytes already, and {bytes} are requested: use another key for another lease",
                    request.key, other.lease.granted_bytes
                ),
                retry_in_ms: None,
            });
        }
        found.sort_by(|a, b| {
            let rank = |lease: &LeaseView| (!lease.is_reachable, lease.lease.lease_id.clone());
            rank(a).cmp(&rank(b))
        });
        let superfluous = found.split_off(copies(request).min(found.len()));
        Ok((found, superfluous))
    }
}

fn copies(request: &LeaseRequest) -> usize {
    request.copies as usize
}
