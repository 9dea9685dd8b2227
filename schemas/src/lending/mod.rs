//! The types of lending: the memory that a host may lend, its leases, and the messages between memory
//! servers, the recruiter and the owner.
//!
//! Only the memory server (`gleaner-memoryd`) that holds the memory grants, renews and revokes a lease. The
//! recruiter chooses hosts, forwards requests and keeps a list of leases. Times between machines are lengths
//! (`_in_ms`, `_for_ms`), because clocks differ.

mod lease;
mod lease_api;
mod link;
mod owner;
mod placement;
mod quota;
mod whole;

pub use lease::{Lease, Refusal, RefusalKind};
pub use lease_api::{
    LeaseList, LeaseRequest, LeaseView, MOST_AVOIDED, RenewalRequest, host_client,
};
pub use link::{
    ANNOUNCE_EVERY_MS, Announcement, Answer, GONE_AFTER_MS, GrantRequest, HostMessage,
    MOST_REVOCATIONS_BYTES, OUTAGE_GRACE_MS, Outcome, RecruiterMessage, Request, RequestKind,
    Revocations, VERSION,
};
pub use owner::{
    LatencyClass, LendingState, OwnerCommand, OwnerReply, PagesServed, ReclaimRecord,
    RevocationCount,
};
pub use placement::{Placement, UnknownPlacement};
pub use quota::{HostQuota, Mode, Outlook, QuotaReason, Quotas};

/// Unit in which memory is lent and returned: a huge page of x86-64 and of most other architectures. Freeing
/// single pages of a huge page frees nothing.
pub const SLAB_BYTES: u64 = 2 << 20;
