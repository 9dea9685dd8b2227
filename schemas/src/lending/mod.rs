//! The words of lending: what a host may lend, who has leased it, and what memory servers, the recruiter and
//! the owner say to each other.
//!
//! A lease is granted, renewed and revoked by the memory server (`gleaner-memoryd`) that holds the memory, and by nobody
//! else; the recruiter places, introduces and remembers. Times between machines are lengths (`_in_ms`, `_for_ms`): clocks differ.

mod lease;
mod lease_api;
mod link;
mod owner;
mod placement;
mod quota;
mod whole;

pub use lease::{Lease, Refusal, RefusalKind};
pub use lease_api::{LeaseList, LeaseRequest, LeaseView, MOST_AVOIDED, RenewalRequest};
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

/// Memory is lent, and given back, in pieces of this size: a huge page of x86-64 and of most others. Freeing single
/// pages of a huge page frees nothing.
pub const SLAB_BYTES: u64 = 2 << 20;
