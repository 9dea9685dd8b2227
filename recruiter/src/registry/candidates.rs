//! Lists candidate hosts for a lease, or states why there are too few.

use super::host::Host;
use super::{HostId, LoadedForecasts, Registry};
use gleaner_policy::outlook;
use gleaner_policy::placement::Candidate;
use gleaner_schemas::lending::{HostQuota, LeaseRequest, Outlook, Refusal, RefusalKind};
use gleaner_schemas::units::Bytes;

/// Minimum time until a retry, since nothing changes sooner.
const LEAST_RETRY_MS: i64 = 1000;
/// Maximum time until a retry, since circumstances may have changed by then.
const MOST_RETRY_MS: i64 = 300_000;
/// Time until a retry if nothing tells when a host will be idle.
const RETRY_MS: i64 = 30_000;

/// Time over which hosts are compared if the request states no minimum duration.
const USUAL_MS: i64 = 3_600_000;

/// Hosts that have room for a client's request and are not in `excluded`. Fails if there are fewer than
/// `missing`.
pub(super) fn of(
    registry: &Registry,
    (client, request): (&str, &LeaseRequest),
    excluded: &[&str],
    missing: usize,
) -> Result<Vec<Candidate>, Refusal> {
    let bytes = request.slabs_bytes();
    let held = registry.leases.by_host(client);
    let mut with_room = 0;
    let mut candidates = Vec::new();
    for (host_id, host) in &registry.hosts {
        if host.link.is_none()
            || host.address.is_none()
            || host.free_bytes() < bytes
            || excluded.contains(&&**host_id)
        {
            continue;
        }
        with_room += 1;
        let stays = |duration_ms| {
            stay_probability(registry.forecasts.as_ref(), &host.quota, bytes, duration_ms)
        };
        let stays = request
            .minimum_duration_ms
            .map(stays)
            .unwrap_or_else(|| stays(USUAL_MS));
        let sure_enough = |p: f64| p >= registry.settings.confidence;
        if request.minimum_duration_ms.is_some() && !stays.is_some_and(sure_enough) {
            continue;
        }
        candidates.push(Candidate {
            host_id: HostId::clone(host_id),
            unleased_bytes: host.free_bytes(),
            lent_bytes: host.quota.lent_bytes,
            requests_per_s: host.requests_per_s,
            client_bytes: held.get(&**host_id).copied().unwrap_or_default(),
            idle_for_ms: host.quota.idle_for_ms,
            stays,
            failed_ms: host.failed_ms,
        });
    }
    if candidates.len() >= missing {
        return Ok(candidates);
    }
    Err(if with_room >= missing {
        too_long(registry, request, with_room, candidates.len())
    } else {
        no_memory(registry, request, with_room)
    })
}

/// Probability that these bytes stay available for this time, by the forecasts or by the host's own outlook.
fn stay_probability(
    forecasts: Option<&LoadedForecasts>,
    quota: &HostQuota,
    bytes: u64,
    duration_ms: i64,
) -> Option<f64> {
    if let Some(LoadedForecasts {
        table,
        hour_of_week,
    }) = forecasts
    {
        return outlook::stay_probability(table, quota, bytes, duration_ms, *hour_of_week);
    }
    let enough = |o: &&Outlook| o.bytes >= bytes && o.duration_ms >= duration_ms;
    let confidences = quota.outlook.iter().filter(enough).map(|o| o.confidence);
    confidences.max_by(f64::total_cmp)
}

fn no_memory(registry: &Registry, request: &LeaseRequest, with_room: usize) -> Refusal {
    let linked = || registry.hosts.values().filter(|host| host.link.is_some());
    let serving = linked().filter(|host| host.address.is_some()).count();
    if serving == 0 && linked().any(|host| host.free_bytes() > 0) {
        return Refusal {
            kind: RefusalKind::NoMemory,
            detail: format!(
                "{} hosts offer memory and none serves pages: `listen` in their memoryd.toml says where",
                linked().count()
            ),
            retry_in_ms: Some(RETRY_MS),
        };
    }
    let most = linked().map(Host::free_bytes).max().unwrap_or_default();
    let bytes = request.slabs_bytes();
    let idle_in = linked()
        .filter(|host| host.quota.idle_quota_bytes >= bytes)
        .filter_map(|host| host.quota.idle_in_ms);
    let retry_in_ms = idle_in.min().unwrap_or(RETRY_MS);
    Refusal {
        kind: RefusalKind::NoMemory,
        detail: format!(
            "{with_room} of {} hosts{} have {} free, and {} with as much are needed; the most that is free on one host is {}",
            linked().count(),
            avoided(request),
            Bytes(bytes as f64),
            request.copies,
            Bytes(most as f64),
        ),
        retry_in_ms: Some(retry_in_ms.clamp(LEAST_RETRY_MS, MOST_RETRY_MS)),
    }
}

/// Part of a message about hosts that the client excluded.
fn avoided(request: &LeaseRequest) -> String {
    match request.avoided_host_ids.len() {
        0 => String::new(),
        count => format!(" ({count} left out as the client asked)"),
    }
}

fn too_long(registry: &Registry, request: &LeaseRequest, with_room: usize, sure: usize) -> Refusal {
    let bytes = request.slabs_bytes();
    let confidence = registry.settings.confidence;
    let outlooks = registry.hosts.values().flat_map(|host| &host.quota.outlook);
    let possible = outlooks
        .filter(|o| o.bytes >= bytes && o.confidence >= confidence)
        .map(|o| o.duration_ms)
        .max();
    let possible = match possible {
        Some(ms) => format!("the longest that is expected of as much is {} s", ms / 1000),
        None => "nothing is known of how long as much stays; ask without minimum_duration_ms, or give the recruiter forecasts (--forecasts)".to_owned(),
    };
    Refusal {
        kind: RefusalKind::TooLong,
        detail: format!(
            "{with_room} hosts have {} free, and of {sure} it is expected to stay for {} s with a confidence of {confidence}; {possible}",
            Bytes(bytes as f64),
            request.minimum_duration_ms.unwrap_or_default() / 1000
        ),
        retry_in_ms: Some(MOST_RETRY_MS),
    }
}
