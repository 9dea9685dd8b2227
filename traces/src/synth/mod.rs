//! Synthetic clusters: traces of hosts that never were, of any number and length, for benches and loads.
//!
//! Everything in them is **invented**: sizes, names, habits. They look like traces of modern workstations and obey
//! what a real trace obeys (categories that sum to physical memory, gaps, whole states, counters that grow within a
//! boot), so that whatever reads traces can be tried on them; nothing about real people can be learnt from
//! them. The data say so: `hosts.source` and `hosts.os_name` are `synthetic`.
//!
//! The model, in one step an interval:
//!
//! ```text
//! owner ──► power ──► processes ─┐
//!   │  (sleep, off,    files ────┼─► memory ──► policy::accounting ──► samples
//!   │   reboot)        kernel ───┘
//!   └─────► sources of activity
//! ```
//!
//! - `class`: six kinds of host from 8 to 128 GiB, in fixed shares; of the largest each has two NUMA nodes.
//! - `owner`: in by weekday and hour (UTC), at the keyboard for a while, away for a while; seldom at the weekend.
//! - `power`: some hosts sleep, some are turned off when the owner leaves, the others run on; now and then a
//!   reboot or a restart of the agent. Each leaves a gap.
//! - `processes`: system and session processes that stay, programs that the owner opens and closes, batch work.
//! - `files`: a catalogue of files that come into use, grow in the cache, and go.
//! - `memory`: the page cache fills what is free and is reclaimed at a floor; kernel memory grows with uptime.
//!
//! The seed decides every byte: each host draws from a stream of its own (ChaCha8, numbered by the host),
//! so that a host is the same in a cluster of any size, and longer traces begin as shorter ones do.

mod activity;
mod class;
mod cluster;
mod dice;
mod error;
mod files;
mod host;
mod memory;
mod owner;
mod power;
mod processes;
mod record;
mod step;
mod template;
mod write;

pub use cluster::{Cluster, Parameters};
pub use error::SynthError;
pub use host::HostTrace;
pub use record::{Record, Rows, SampleRows};
pub use write::{Progress, Written, write};

/// Bytes in a mebibyte.
const MIB: i64 = 1 << 20;
/// Page size of all hosts.
const PAGE_BYTES: i64 = 4096;

/// `bytes` in whole pages.
const fn whole_pages(bytes: i64) -> i64 {
    bytes - bytes.rem_euclid(PAGE_BYTES)
}
