//! Programs that attack the built memory server: a recruiter, an agent and a client. Their messages are
//! mutated field by field, out of order, repeated, unrequested and endless. Meanwhile the memory server's
//! memory must stay bounded, and an honest recruiter and its client must be served. The owner's return must
//! give everything back.

mod agent;
pub(crate) mod fields;
mod link;
pub(crate) mod pages;
mod stage;

/// Allowed growth of a daemon's memory over all mutations, which together have tens of MiB.
pub(crate) const MOST_GROWN_BYTES: u64 = 32 << 20;
