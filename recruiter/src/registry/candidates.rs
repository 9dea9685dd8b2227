//! Hosts that could give a lease, or why there are too few.

use super::host::Host;
use super::{Registry, Wanted};
use gleaner_policy::placement::Candidate;
use gleaner_schemas::lending::{Outlook, Refusal, RefusalKind};
use gleaner_schemas::units::Bytes;
use std::collections::HashMap;

/// Sooner than this nothing changes.
const LEAST_RETRY_MS: i64 = 1000;
/// Later than this something else may have.
const MOST_RETRY_MS: i64 = 300_000;
/// Where nothing tells when a host will be idle.
const RETRY_MS: i64 = 30_000;

/// Hosts with room that have none of the leases yet; at least `missing`.
pub(super) fn of(
    registry: &Registry,
    wanted: &Wanted,
    taken: &[&str],
    missing: usize,
    now_ms: i64,
) -> Result<Vec<Candidate>, Refusal> {
    let bytes = wanted.slabs_bytes();
    let mut held: HashMap<&str, u64> = HashMap::new();
    for lease in registry.leases_of(Some(&wanted.client), now_ms) {
        if let Some(host_id) = registry.host_of(&lease.lease.lease_id) {
            *held.entry(host_id).or_default() += lease.lease.granted_bytes;
        }
    }
    let mut with_room = 0;
    let mut candidates = Vec::new();
    for (host_id, host) in &registry.hosts {
        if host.link.is_none() || free(host) < bytes || taken.contains(&&**host_id) {
            continue;
        }
        with_room += 1;
        let stays = wanted
            .least_ms
            .map(|least_ms| stays(&host.quota.outlook, bytes, least_ms));
        let sure_enough = |p: f64| p >= registry.settings.confidence;
        if stays.is_some_and(|stays| !stays.is_some_and(sure_enough)) {
            continue;
        }
        candidates.push(Candidate {
            host_id: host.quota.host_id.clone(),
            free_bytes: free(host),
            lent_bytes: host.quota.lent_bytes,
            requests_per_s: host.requests_per_s,
            client_bytes: held.get(&**host_id).copied().unwrap_or_default(),
            idle_for_ms: host.quota.idle_for_ms,
            // Without a least time, what is known of the shortest that is.
            stays: stays.unwrap_or_else(|| longest(&host.quota.outlook, bytes)),
            failed_ms: host.failed_ms,
        });
    }
    if candidates.len() >= missing {
        return Ok(candidates);
    }
    Err(if with_room >= missing {
        too_long(registry, wanted, with_room, candidates.len())
    } else {
        no_memory(registry, wanted, with_room)
    })
}

/// What is free beyond what others are about to get.
fn free(host: &Host) -> u64 {
    host.quota.free_bytes.saturating_sub(host.pending_bytes)
}

/// The probability that so much stays for so long: of the outlooks that say at least as much.
fn stays(outlook: &[Outlook], bytes: u64, least_ms: i64) -> Option<f64> {
    let enough = |o: &&Outlook| o.bytes >= bytes && o.for_ms >= least_ms;
    let confidences = outlook.iter().filter(enough).map(|o| o.confidence);
    confidences.max_by(f64::total_cmp)
}

/// For comparing hosts where no length of time was asked for: the probability at the longest time that is told.
fn longest(outlook: &[Outlook], bytes: u64) -> Option<f64> {
    let enough = outlook.iter().filter(|o| o.bytes >= bytes);
    let longest = enough.max_by(|a, b| {
        let key = |o: &Outlook| (o.for_ms, o.confidence);
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    longest.map(|o| o.confidence)
}

fn no_memory(registry: &Registry, wanted: &Wanted, with_room: usize) -> Refusal {
    let linked = || registry.hosts.values().filter(|host| host.link.is_some());
    let most = linked().map(free).max().unwrap_or_default();
    let bytes = wanted.slabs_bytes();
    let idle_in = linked()
        .filter(|host| host.quota.once_idle_bytes >= bytes)
        .filter_map(|host| host.quota.idle_in_ms);
    let retry_in_ms = idle_in.min().unwrap_or(RETRY_MS);
    Refusal {
        kind: RefusalKind::NoMemory,
        detail: format!(
            "{with_room} of {} hosts have {} free, and {} with as much are needed; the most that is free on one host is {}",
            linked().count(),
            Bytes(bytes as f64),
            wanted.copies,
            Bytes(most as f64),
        ),
        retry_in_ms: Some(retry_in_ms.clamp(LEAST_RETRY_MS, MOST_RETRY_MS)),
    }
}

fn too_long(registry: &Registry, wanted: &Wanted, with_room: usize, sure: usize) -> Refusal {
    let bytes = wanted.slabs_bytes();
    let confidence = registry.settings.confidence;
    let outlooks = registry.hosts.values().flat_map(|host| &host.quota.outlook);
    let possible = outlooks
        .filter(|o| o.bytes >= bytes && o.confidence >= confidence)
        .map(|o| o.for_ms)
        .max();
    let possible = match possible {
        Some(ms) => format!("the longest that is expected of as much is {} s", ms / 1000),
        None => "nothing is known of how long as much stays; ask without least_ms, or give the recruiter forecasts (--forecasts)".to_owned(),
    };
    Refusal {
        kind: RefusalKind::TooLong,
        detail: format!(
            "{with_room} hosts have {} free, and of {sure} it is expected to stay for {} s with a confidence of {confidence}; {possible}",
            Bytes(bytes as f64),
            wanted.least_ms.unwrap_or_default() / 1000
        ),
        retry_in_ms: Some(MOST_RETRY_MS),
    }
}
