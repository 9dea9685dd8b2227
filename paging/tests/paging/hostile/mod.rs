//! Programs that attack the built memory server: a recruiter, an agent and a client. Their messages are
//! mutated field by field, out of order, repeated, unrequested and endless. The memory server's memory must
//! stay bounded, an honest recruiter and its client must be served meanwhile, and the owner's return must
//! give everything back.

mod agent;
pub(crate) mod fields;
mod link;
pub(crate) mod pages;
mod stage;

/// Allowed growth of a daemon over all mutations of its messages, which together have tens of MiB.
pub(crate) const MOST_GROWN_BYTES: u64 = 32 << 20;
