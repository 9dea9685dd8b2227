//! Programs that attack the built memory server: a recruiter, an agent and a client, each with messages that are mutated
//! by their structure, out of order, repeated, unasked and without number. What they send costs a bounded amount of
//! memory, an honest recruiter and its client are served meanwhile, and the owner's return gives everything back.

mod agent;
pub(crate) mod fields;
mod link;
pub(crate) mod pages;
mod stage;

/// Growth that a daemon may have over all mutations of its messages; together they have tens of MiB.
pub(crate) const MOST_GROWN_BYTES: u64 = 32 << 20;
