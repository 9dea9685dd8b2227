//! Programs that attack the built memory server: a recruiter, an agent and a client, each with messages that are mutated
//! by their structure, out of order, repeated, unasked and without number. What they send costs a bounded amount of
//! memory, an honest recruiter and its client are served meanwhile, and the owner's return gives everything back.

mod agent;
pub(crate) mod fields;
mod link;
#[allow(unreachable_pub)] // of the end-to-end tests, which would be a circle as a dependency
#[path = "../../../../tests/src/mutate.rs"]
mod mutate;
pub(crate) mod pages;
mod stage;

/// Growth that a daemon may have over all mutations of its messages; together they have tens of MiB.
pub(crate) const MOST_GROWN_BYTES: u64 = 32 << 20;

/// Most memory that a process ever had, in bytes.
pub(crate) fn peak_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mut lines = status.lines();
    let line = lines.find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}
