//! Synthetic clusters: traces of invented hosts, of any number and length.
//!
//! A [`Fleet`] has the parameters of the model for each class of hosts. Those of `acharya-setia` are
//! **calibrated** to the tables of a study of 1998 (docs/synth.md says how); those of `modern` are
//! **invented**. Nothing about real people can be learnt from either. The data identify themselves:
//! `hosts.source` and `hosts.os_name` begin with `synthetic`.
//!
//! ```text
//! fleet (TOML) ──► life: owner, programs, jobs, files, kernel ──► rows ──► records ──► dataset
//!                   └────────► Moment (calibration)     power ──┘
//! ```
//!
//! - `fleet`, `preset`: the classes of hosts; `spread`: the differences between hosts of a class.
//! - `life`: the events on a host. As on real hosts, the memory categories sum to physical memory.
//! - `power`: some hosts sleep, or are turned off, when the owner leaves; each such time leaves a gap.
//! - `rows`: the rows that an agent would store. Available memory is divided into free memory, cache and idle
//!   processes.
//!
//! The seed determines every byte. Each part of each host draws from its own random stream (ChaCha8): a host
//! is therefore the same in a cluster of any size, and a longer trace begins like a shorter one.

mod cluster;
mod dice;
mod error;
mod fleet;
mod host;
mod life;
mod parameters;
mod power;
mod preset;
mod record;
mod rows;
mod spread;
mod write;

pub use cluster::Cluster;
pub use error::SynthError;
pub use fleet::{
    AbsenceProgram, Class, ClusterOf, Daemons, Files, Fleet, Habit, Job, Kernel, Lotsfree, Names,
    Owner, Programs, Share, System,
};
pub use host::SyntheticHost;
pub use life::{Life, Moment};
pub use parameters::Parameters;
pub use preset::Preset;
pub use record::{Record, Rows, SampleRows};
pub use write::{Progress, SynthSummary, write};

/// Bytes in a mebibyte.
const MIB: i64 = 1 << 20;
/// Page size of all hosts.
const PAGE_BYTES: i64 = 4096;

/// `bytes` rounded to whole pages.
const fn whole_pages(bytes: i64) -> i64 {
    bytes - bytes.rem_euclid(PAGE_BYTES)
}
