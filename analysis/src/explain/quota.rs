//! Origin of the lease quota of one sample, as defined in `policy::quota`.

use super::{less, term};
use crate::derived::HostHistory;
use crate::owner::quota::categories;
use gleaner_policy::accounting::headroom_bytes;
use gleaner_policy::quota::{Limits, Mode, quota};
use gleaner_schemas::findings::ExplainedQuota;
use gleaner_schemas::units::stored;

/// Quota with its terms; `None` if the trace lacks the categories.
pub(super) fn of(host: &HostHistory<'_>, at: usize, headroom_share: f64) -> Option<ExplainedQuota> {
    let categories = categories(&host.trace.samples, at)?;
    let harvestable_bytes = host.trace.samples.harvestable_bytes[at];
    let limits = Limits {
        mode: Mode::Gentle,
        headroom_share,
        ..Limits::default()
    };
    let found = quota(
        &categories,
        host.trace.samples.mem_available(at, headroom_share),
        host.idleness.verdicts[at],
        &limits,
    );
    let headroom = headroom_bytes(categories.physical_bytes, headroom_share);
    Some(ExplainedQuota {
        quota_bytes: stored(found.quota_bytes),
        idle_quota_bytes: stored(found.idle_quota_bytes),
        paper_quota_bytes: stored(found.paper_quota_bytes),
        paper_quota_terms: vec![
            term("available", Some(stored(categories.available_bytes))),
            term("lent already", Some(stored(categories.guest_bytes))),
            less("headroom", Some(stored(headroom))),
        ],
        harvestable_bytes,
    })
}
