//! Hosts as traced: the memory that each host could have lent over time, and the memory that its owner needed
//! at each return.
//!
//! ```text
//! dataset ── samples ──► fold: policy's idle rule, quota and accounting ──► Timeline: changes alone
//!            processes ► footprint: what an owner's return wants ─┘
//! ```
//!
//! A timeline has a change only when something changed. So a replay costs nothing while a host is idle and
//! its memory is constant. Nothing is assumed across a gap: a host that is off, asleep or unseen lends
//! nothing.

mod begin;
mod error;
mod fold;
mod footprint;
mod foresight;
mod read;
mod reading;
mod recorded_dataset;
mod samples;
mod timeline;

pub(crate) use begin::begin;
pub use error::{HostsError, Result};
pub use foresight::Foresight;
pub use read::{physical_bytes, read, read_host};
pub use reading::Reading;
pub use recorded_dataset::RecordedDataset;
pub(crate) use recorded_dataset::read_each;
pub use timeline::{
    Cause, Change, ModeQuotas, Presence, RecordedSample, Return, ReturnMemory, Timeline,
};
