//! A running program.

use crate::synth::{MIB, PAGE_BYTES, whole_pages};
use std::sync::Arc;

/// Origin of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A daemon, which runs from boot on.
    Daemon,
    /// A program opened by the owner.
    Program,
    /// A job that ends by itself.
    Job,
}

/// A running program.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    /// Number of the program; it increases within a boot.
    pub(crate) number: u64,
    pub(crate) name: Arc<str>,
    pub(crate) origin: Origin,
    pub(crate) started_ms: i64,
    pub(crate) ends_ms: i64,
    /// Memory that the program uses if all of it is resident, in bytes.
    pub(crate) bytes: i64,
    /// Resident part of `bytes`.
    pub(crate) resident_bytes: i64,
    /// True if the program has used the CPU since the previous moment.
    pub(crate) is_active: bool,
    /// True if the program stays active while the owner is away.
    pub(crate) is_active_while_away: bool,
    /// Number of CPUs that the program keeps busy.
    pub(crate) load: f64,
}

/// The daemons. The first is the display server, which has as much memory as all others together.
pub(super) fn daemons(names: &[String], mib: f64) -> Vec<Running> {
    let others = names.len().saturating_sub(1);
    let daemon = |(at, name): (usize, &String)| {
        let share = match at {
            0 if others == 0 => 1.0,
            0 => 0.5,
            _ => 0.5 / others as f64,
        };
        let bytes = whole_pages((mib * share * MIB as f64) as i64).max(PAGE_BYTES);
        Running {
            number: at as u64,
            name: Arc::from(name.as_str()),
            origin: Origin::Daemon,
            started_ms: 0,
            ends_ms: i64::MAX,
            bytes,
            resident_bytes: bytes,
            is_active: true,
            is_active_while_away: true,
            load: 0.0,
        }
    };
    names.iter().enumerate().map(daemon).collect()
}
