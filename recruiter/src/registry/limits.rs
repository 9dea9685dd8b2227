//! Checks the limits of one client, and the reserve that all clients share.

use super::Registry;
use gleaner_schemas::lending::{LeaseRequest, Refusal, RefusalKind};
use gleaner_schemas::units::Bytes;

/// Time until a retry. Within minutes, leases end and hosts shrink.
const RETRY_MS: i64 = 60_000;

/// Refusal while the registry is incomplete after the start.
pub(crate) fn starting(what: &str, left_ms: i64) -> Refusal {
    Refusal {
        kind: RefusalKind::Starting,
        detail: format!(
            "the recruiter has just started and waits for every host's announcement before {what}, so that nothing is granted twice"
        ),
        retry_in_ms: Some(left_ms.max(1)),
    }
}

/// Checks that `missing` more leases are within the limits.
pub(super) fn check(
    registry: &Registry,
    client: &str,
    request: &LeaseRequest,
    missing: usize,
) -> Result<(), Refusal> {
    of_client(registry, client, request, missing)?;
    reserve(registry, request, missing)
}

fn of_client(
    registry: &Registry,
    client: &str,
    request: &LeaseRequest,
    missing: usize,
) -> Result<(), Refusal> {
    let holding = registry.leases.holding(client);
    let settings = &registry.settings;
    let pending = registry.pending.iter();
    let pending = pending.filter(|((of, _), _)| of == client);
    let (pending_bytes, pending_count) = pending.fold((0_u128, 0), |(bytes, count), (_, more)| {
        (bytes + u128::from(more.0), count + more.1)
    });
    let refused = |detail: String| {
        Err(Refusal {
            kind: RefusalKind::ClientLimit,
            detail,
            retry_in_ms: Some(RETRY_MS),
        })
    };
    if let Some(most) = settings.client_leases {
        let held = holding.leases_count + pending_count;
        if held.saturating_add(missing) > most {
            return refused(format!(
                "client {client} has {held} leases and requests {missing} more, above the limit of {most} per client: end some first"
            ));
        }
    }
    if let Some(most) = settings.client_bytes {
        let held = holding.granted_bytes + pending_bytes;
        let more = u128::from(request.slabs_bytes()) * missing as u128;
        if held + more > u128::from(most) {
            return refused(format!(
                "client {client} has {} and requests {} more, above the limit of {} per client: end leases first, or request less",
                shown(held),
                shown(more),
                Bytes(most as f64)
            ));
        }
    }
    Ok(())
}

fn reserve(registry: &Registry, request: &LeaseRequest, missing: usize) -> Result<(), Refusal> {
    let totals = registry.totals;
    let share = registry.settings.reserve_share;
    let reserve = (totals.quota_bytes as f64 * share) as u128;
    let pending: u128 = registry
        .pending
        .values()
        .map(|more| u128::from(more.0))
        .sum();
    let more = u128::from(request.slabs_bytes()) * missing as u128;
    let left = totals.unleased_bytes.saturating_sub(pending);
    // If not even the request itself fits, the list of candidates reports it instead.
    if more <= left && left - more < reserve {
        return Err(Refusal {
            kind: RefusalKind::Reserve,
            detail: format!(
                "{} of memory on all hosts are free, of which {} ({:.0} % of all quota) are held back so that hosts can shrink: {} more would touch that",
                shown(left),
                shown(reserve),
                share * 100.0,
                shown(more)
            ),
            retry_in_ms: Some(RETRY_MS),
        });
    }
    Ok(())
}

fn shown(bytes: u128) -> Bytes {
    Bytes(bytes as f64)
}
