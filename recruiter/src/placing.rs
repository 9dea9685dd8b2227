//! Executes a request for leases. It asks one host after another, and hosts for several copies concurrently,
//! until there are as many leases as requested. The client gets all of these leases or none.

use crate::links::AnswerFailure;
use crate::registry::HostId;
use crate::state::RecruiterState;
use gleaner_policy::placement::{Candidate, Request, Shortage};
use gleaner_schemas::lending::{
    GrantRequest, Lease, LeaseRequest, LeaseView, Outcome, Refusal, RefusalKind, RequestKind,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// Leases with which a request was granted.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) leases: Vec<LeaseView>,
    /// True if any lease is new; false if all leases already existed under the key.
    pub(crate) is_new: bool,
}

/// Grants a client's request. It continues if its caller is dropped, and the client then finds the leases by
/// their key.
pub(crate) async fn grant(
    state: Arc<RecruiterState>,
    client: String,
    request: LeaseRequest,
) -> Result<Grant, Refusal> {
    let work = tokio::spawn(async move {
        let plan = state.registry().plan(&client, &request, state.now_ms())?;
        for lease in &plan.superfluous {
            release_later(&state, lease);
        }
        if plan.missing == 0 {
            return Ok(Grant {
                leases: plan.found,
                is_new: false,
            });
        }
        let ended = PlaceGuard {
            state: Arc::clone(&state),
            client: &client,
            key: &request.key,
        };
        let found = plan.found;
        let search = Search {
            state: &state,
            client: &client,
            request: &request,
            missing: plan.missing,
            candidates: plan.candidates,
            hosts_limit: plan.missing + state.asking().extra_hosts_limit,
            deadline: Instant::now() + state.asking().grant_timeout,
        };
        let granted = search.run().await;
        drop(ended);
        granted.map(|granted| Grant {
            leases: found.into_iter().chain(granted).collect(),
            is_new: true,
        })
    });
    work.await.unwrap_or_else(|e| {
        Err(Refusal {
            kind: RefusalKind::Other,
            detail: format!("the request failed inside the recruiter: {e}"),
            retry_in_ms: Some(1000),
        })
    })
}

/// Releases the request's reservation in the registry, however the request ends.
struct PlaceGuard<'a> {
    state: Arc<RecruiterState>,
    client: &'a str,
    key: &'a str,
}

impl Drop for PlaceGuard<'_> {
    fn drop(&mut self) {
        self.state.registry().finished(self.client, self.key);
    }
}

/// Search for hosts that grant the missing leases.
struct Search<'a> {
    state: &'a Arc<RecruiterState>,
    client: &'a str,
    request: &'a LeaseRequest,
    missing: usize,
    candidates: Vec<Candidate>,
    /// Number of hosts that this request may still ask.
    hosts_limit: usize,
    deadline: Instant,
}

/// A host and its answer.
type HostAnswer = (HostId, Result<Outcome, AnswerFailure>);

impl Search<'_> {
    async fn run(mut self) -> Result<Vec<LeaseView>, Refusal> {
        let mut asked = JoinSet::new();
        let mut granted: Vec<LeaseView> = Vec::new();
        let mut refused = Vec::new();
        let mut is_exhausted = false;
        while granted.len() < self.missing {
            let more = self.missing - granted.len() - asked.len();
            if more > 0 && !is_exhausted {
                match self.choose(more) {
                    Ok(hosts) => hosts.iter().for_each(|host| {
                        asked.spawn(self.ask(HostId::clone(&host.host_id)));
                    }),
                    Err(shortage) if granted.is_empty() && refused.is_empty() => {
                        return Err(self.short(&shortage)); // nobody was asked
                    }
                    // Some hosts have not answered yet. They are awaited before the granted leases are
                    // released.
                    Err(_) => is_exhausted = true,
                }
            }
            let Ok(Some(told)) = timeout_at(self.deadline, asked.join_next()).await else {
                break;
            };
            let Ok((host_id, outcome)) = told else {
                continue; // the runtime is ending
            };
            match outcome {
                Ok(Outcome::Granted { lease }) => granted.push(self.view(&host_id, lease)),
                Ok(Outcome::Refused(refusal)) => refused.push((host_id, refusal)),
                Ok(Outcome::Renewed { .. } | Outcome::Released { .. }) => {
                    let detail = "its answer was to another question".to_owned();
                    refused.push((host_id, unreachable(detail)));
                }
                Err(unanswered) => {
                    let now_ms = self.state.now_ms();
                    self.state.registry().failed(&host_id, now_ms);
                    refused.push((host_id, unreachable(words(unanswered).to_owned())));
                }
            }
        }
        if granted.len() >= self.missing {
            return Ok(granted);
        }
        // Leases that hosts grant after this are found by their key, or expire, since nobody renews them.
        asked.detach_all();
        let releases: JoinSet<()> = granted
            .iter()
            .map(|lease| release(self.state, lease))
            .collect();
        releases.join_all().await;
        Err(self.failed(granted.len(), &refused))
    }

    /// Chooses the next hosts to ask. Fails if there are too few hosts, or if the request may ask no more
    /// hosts.
    fn choose(&mut self, copies: usize) -> Result<Vec<Candidate>, Shortage> {
        if copies > self.hosts_limit {
            return Err(Shortage::default());
        }
        self.hosts_limit -= copies;
        let request = Request {
            client: self.client,
            bytes: self.request.slabs_bytes(),
            copies,
        };
        let usual = || self.state.asking().placement;
        let placement = self.request.placement.unwrap_or_else(usual);
        self.state.choose(placement, &request, &mut self.candidates)
    }

    /// Refusal of a request for which hosts seemed to have room, but too few of them can be asked now.
    fn short(&self, shortage: &Shortage) -> Refusal {
        Refusal {
            kind: RefusalKind::NoMemory,
            detail: format!("{shortage}; {} are needed", self.missing),
            retry_in_ms: Some(shortage.retry_in_ms.unwrap_or(1000).max(1)),
        }
    }

    /// Asks one host for a lease. Meanwhile the bytes of the lease are reserved on this host.
    fn ask(&self, host_id: HostId) -> impl Future<Output = HostAnswer> + use<> {
        let bytes = self.request.slabs_bytes();
        let asked = RequestKind::Grant(GrantRequest {
            client: self.client.to_owned(),
            key: self.request.key.clone(),
            bytes,
            term_ms: self.request.term_ms,
        });
        let state = Arc::clone(self.state);
        state.registry().reserve_bytes(&host_id, bytes);
        async move {
            let patience = state.asking().answer_timeout;
            let outcome = state.links.ask(&host_id, asked, patience).await;
            state.registry().release_reservation(&host_id, bytes);
            (host_id, outcome)
        }
    }

    fn view(&self, host_id: &HostId, lease: Lease) -> LeaseView {
        let now_ms = self.state.now_ms();
        let known = self.state.registry().lease(&lease.lease_id, now_ms);
        known.unwrap_or_else(|| LeaseView {
            host_id: host_id.to_string(),
            address: None,
            is_reachable: false, // the lease was reclaimed or lost just now
            lease,
        })
    }

    /// Refusal of a request, which sums up the hosts' refusals.
    fn failed(&self, granted_count: usize, refused: &[(HostId, Refusal)]) -> Refusal {
        let of_all = if self.missing > 1 {
            format!(
                "{granted_count} of {} copies were granted, and returned again; ",
                self.missing
            )
        } else {
            String::new()
        };
        let Some((host_id, last)) = refused.last() else {
            return Refusal {
                kind: RefusalKind::Unreachable,
                detail: format!("{of_all}no host has answered in time"),
                retry_in_ms: Some(1000),
            };
        };
        let soonest = refused
            .iter()
            .filter_map(|(_, refusal)| refusal.retry_in_ms);
        Refusal {
            kind: last.kind,
            detail: format!(
                "{of_all}{} hosts were asked and refused, host {host_id} last: {}",
                refused.len(),
                last.detail
            ),
            retry_in_ms: soonest.min().or(Some(1000)),
        }
    }
}

fn unreachable(detail: String) -> Refusal {
    Refusal {
        kind: RefusalKind::Unreachable,
        detail,
        retry_in_ms: Some(1000),
    }
}

/// Describes why a host did not answer.
pub(crate) fn words(unanswered: AnswerFailure) -> &'static str {
    match unanswered {
        AnswerFailure::NotLinked => "it is not linked with this recruiter now",
        AnswerFailure::Late => "it did not answer in time",
        AnswerFailure::Overwhelmed => "too much is being asked of it already",
    }
}

fn release(
    state: &Arc<RecruiterState>,
    lease: &LeaseView,
) -> impl Future<Output = ()> + Send + use<> {
    let state = Arc::clone(state);
    let (host_id, lease_id) = (HostId::from(&*lease.host_id), lease.lease.lease_id.clone());
    let client = Some(lease.lease.client.clone());
    async move {
        let asked = RequestKind::Release { client, lease_id };
        let patience = Duration::min(state.asking().answer_timeout, Duration::from_secs(1));
        let _ = state.links.ask(&host_id, asked, patience).await; // if this fails, the lease expires
    }
}

fn release_later(state: &Arc<RecruiterState>, lease: &LeaseView) {
    tokio::spawn(release(state, lease));
}
