//! Texts of refusals: the fact, the reason, and the time to retry.

use super::LendingLimit;
use gleaner_schemas::lending::{
    ANNOUNCE_EVERY_MS, Lease, QuotaReason, Refusal, RefusalKind, SLAB_BYTES,
};
use gleaner_schemas::units::{Bytes, Seconds};

fn refusal(kind: RefusalKind, detail: String, retry_in_ms: Option<i64>) -> Refusal {
    Refusal {
        kind,
        detail,
        retry_in_ms,
    }
}

/// Refusal of a request that can never be granted as it is.
pub(super) fn malformed(detail: String) -> Refusal {
    refusal(RefusalKind::Malformed, detail, None)
}

pub(super) fn other_size(lease: &Lease, whole_bytes: u64) -> Refusal {
    malformed(format!(
        "the key {:?} has a lease of {} already, and {} are asked for by it now: choose another key, or release that lease",
        lease.key,
        Bytes::from(lease.granted_bytes),
        Bytes::from(whole_bytes),
    ))
}

pub(super) fn id_in_use(lease_id: &str) -> Refusal {
    let detail = format!("the fresh id {lease_id} names a lease already: ask again");
    refusal(RefusalKind::Other, detail, Some(0))
}

pub(super) fn unknown_lease(lease_id: &str) -> Refusal {
    let detail = format!(
        "there is no lease {lease_id} on this host: it ran out, was released, or its memory was wanted back; ask for a new one"
    );
    refusal(RefusalKind::UnknownLease, detail, None)
}

pub(super) fn not_yours(client: &str, lease_id: &str) -> Refusal {
    let detail = format!(
        "the lease {lease_id} was not granted to {client:?}: only its client or an administrator may renew or release it"
    );
    refusal(RefusalKind::NotYours, detail, None)
}

pub(super) fn ending() -> Refusal {
    let detail = "the memory server of this host is ending".to_owned();
    refusal(RefusalKind::Ending, detail, Some(ANNOUNCE_EVERY_MS))
}

pub(super) fn grants_none() -> Refusal {
    let detail =
        "this host grants no leases: it leaves its quota to other memory servers on it".to_owned();
    refusal(RefusalKind::NoMemory, detail, None)
}

pub(super) fn too_many(most_leases_count: usize) -> Refusal {
    let detail = format!(
        "this host has {most_leases_count} leases, the most that it keeps: release some, or take fewer and larger ones"
    );
    refusal(RefusalKind::NoMemory, detail, Some(ANNOUNCE_EVERY_MS))
}

/// Refusal because no lease of any size is granted at present.
pub(super) fn not_lending(allowed: &LendingLimit, idle_quota_bytes: u64) -> Refusal {
    // Without a known time, the next announcement may bring a change.
    let retry_in_ms = allowed.until_ms.unwrap_or(ANNOUNCE_EVERY_MS).max(1);
    let when = allowed.until_ms.map_or_else(
        || "nobody can say until when".to_owned(),
        |ms| format!("at least for another {}", Seconds::from_ms(ms.max(1))),
    );
    let once_idle = Bytes::from(idle_quota_bytes);
    let (kind, detail) = match allowed.reason {
        QuotaReason::Paused => {
            let detail = match allowed.until_ms {
                Some(ms) => format!(
                    "the owner has paused lending for another {}",
                    Seconds::from_ms(ms.max(1))
                ),
                None => "the owner has paused lending until further notice".to_owned(),
            };
            return refusal(RefusalKind::Paused, detail, allowed.until_ms);
        }
        QuotaReason::Pressure => (
            RefusalKind::NoMemory,
            format!("memory runs short on this host; nothing new is lent {when}"),
        ),
        QuotaReason::InUse => (
            RefusalKind::InUse,
            format!("the owner is using this host, {when}; once idle it would lend {once_idle}"),
        ),
        QuotaReason::Waiting => (
            RefusalKind::InUse,
            format!(
                "this host has not been idle for long enough, {when}; once idle it would lend {once_idle}"
            ),
        ),
        QuotaReason::Loaded => (
            RefusalKind::InUse,
            format!(
                "this host is too loaded to count as idle, {when}; once idle it would lend {once_idle}"
            ),
        ),
        QuotaReason::Idle | QuotaReason::Spare | QuotaReason::Unknown => (
            RefusalKind::InUse,
            format!(
                "the owner of this host, or its memory, cannot be seen, {when}; until then it counts as in use"
            ),
        ),
    };
    refusal(kind, detail, Some(retry_in_ms))
}

pub(super) fn no_memory(quota_bytes: u64, lent_bytes: u64, whole_bytes: u64) -> Refusal {
    let unleased_bytes = quota_bytes.saturating_sub(lent_bytes) / SLAB_BYTES * SLAB_BYTES;
    let detail = format!(
        "{} are free of the {} that this host lends, and {} were requested: request less, or retry later",
        Bytes::from(unleased_bytes),
        Bytes::from(quota_bytes),
        Bytes::from(whole_bytes),
    );
    refusal(RefusalKind::NoMemory, detail, Some(ANNOUNCE_EVERY_MS))
}
