//! The life of a host: presence of the owner, running programs, memory in use. The module `rows` turns a life
//! into rows; the calibration uses lives directly.
//!
//! ```text
//! owner ──► programs, commands ─┐
//!   │       background, hogs ───┼─► process memory ─┐
//!   │       daemons ────────────┘   files, kernel ──┴─► Moment
//! ```
//!
//! Each part draws from its own random stream: a change to one part leaves the others' random numbers unchanged.

mod files;
mod jobs;
mod kernel;
mod owner;
mod programs;
mod running;

pub(super) use files::Files;
pub(super) use owner::{Owner, Stretch};
pub(super) use running::{Origin, Running};

use super::dice::Dice;
use super::fleet::{Class, Fleet};
use super::spread::{HostPosition, Property};
use super::{MIB, whole_pages};
use jobs::Jobs;
use kernel::Kernel;
use programs::Programs;
use running::daemons;
use std::sync::Arc;

/// Number of random streams per host.
const STREAMS: u64 = 8;

/// Life of one host.
#[derive(Debug)]
pub struct Life {
    physical_bytes: i64,
    owner: Owner,
    owner_dice: Dice,
    kernel: Kernel,
    files: Files,
    programs: Programs,
    jobs: Jobs,
    /// Running programs, ordered by number.
    running: Vec<Running>,
    daemons: Vec<Running>,
    next_number: u64,
    load5: f64,
}

/// State of a host at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Physical memory, in bytes.
    pub physical_bytes: i64,
    /// Kernel memory, lotsfree included, in bytes.
    pub kernel_bytes: i64,
    /// Cache of files in use, in bytes.
    pub file_bytes: i64,
    /// Memory of active processes, in bytes.
    pub process_bytes: i64,
    /// Memory of all other processes, resident or paged out, in bytes.
    pub idle_process_bytes: i64,
    /// True while the owner is at the keyboard.
    pub is_present: bool,
    /// Time of the owner's last activity, ms since 1970-01-01 UTC.
    pub active_ms: Option<i64>,
    /// Number of CPUs that were busy since the previous moment.
    pub load: f64,
    /// 5-minute load average.
    pub load5: f64,
}

impl Moment {
    /// Available memory, in bytes.
    #[must_use]
    pub const fn available_bytes(&self) -> i64 {
        self.physical_bytes - self.kernel_bytes - self.file_bytes - self.process_bytes
    }
}

impl Life {
    pub(super) fn new(
        fleet: &Fleet,
        class: &Class,
        seed: u64,
        index: usize,
        start_ms: i64,
    ) -> Self {
        let stream = |n: u64| Dice::new(seed, index as u64 * STREAMS + n);
        let standing = HostPosition::new(seed, index);
        let owner_dice = stream(1);
        let physical_bytes = class.memory_mib * MIB;
        let daemons_mib =
            class.daemons.mib * standing.factor(Property::Daemons, class.daemons.between_hosts);
        Self {
            physical_bytes,
            owner: Owner::new(&fleet.owner, &standing, start_ms),
            owner_dice,
            kernel: Kernel::new(&class.kernel, &standing, physical_bytes, stream(5)),
            files: Files::new(&class.files, &standing, stream(4)),
            programs: Programs::new(&class.programs, &fleet.names.programs, &standing, stream(2)),
            jobs: Jobs::new(class, &fleet.names, &standing, stream(3)),
            running: Vec::new(),
            daemons: daemons(&fleet.names.daemons, daemons_mib),
            next_number: 0,
            load5: 0.0,
        }
    }

    /// Boots the host: programs that ran before are gone, and the cache is empty.
    pub(super) fn boot(&mut self, booted_ms: i64) {
        self.running.clear();
        self.running.extend(self.daemons.iter().cloned());
        self.next_number = self.running.len() as u64;
        for running in &mut self.running {
            running.started_ms = booted_ms;
        }
        self.kernel.boot();
        self.files.boot();
        self.load5 = 0.0;
    }

    /// The owner's stretch at the keyboard at `time_ms`, or else the next stretch. Times must not decrease
    /// from call to call.
    pub(super) fn stretch(&mut self, time_ms: i64) -> Stretch {
        self.owner.stretch(&mut self.owner_dice, time_ms)
    }

    /// Time of the owner's last activity before the `time_ms` of the last call of [`Self::stretch`].
    pub(super) const fn last_active_ms(&self) -> Option<i64> {
        self.owner.last_active_ms()
    }

    /// Number of the random stream from which the rows of the host `index` are drawn.
    pub(super) const fn stream_of_rows(index: usize) -> u64 {
        index as u64 * STREAMS
    }

    /// Kernel memory taken at boot.
    pub(super) const fn static_bytes(&self) -> i64 {
        self.kernel.static_bytes()
    }

    /// Running programs, ordered by number.
    pub(super) fn running(&self) -> &[Running] {
        &self.running
    }

    pub(super) const fn files(&self) -> &Files {
        &self.files
    }

    /// Advances to `time_ms`. Since the previous step the host has been running for `interval_ms`.
    pub fn step(&mut self, time_ms: i64, interval_ms: i64) -> Moment {
        let stretch = self.stretch(time_ms);
        let is_present = stretch.from_ms <= time_ms;
        let left_ms = self.owner.last_active_ms();
        let active_ms = if is_present {
            let pause_ms = self.owner_dice.between(0, 20_000);
            Some((time_ms - pause_ms).max(stretch.from_ms))
        } else {
            left_ms
        };
        let step = Step {
            time_ms,
            interval_ms,
            is_present,
            returns_ms: stretch.from_ms,
            left_ms,
        };
        self.running.retain(|running| running.ends_ms > time_ms);
        self.programs
            .step(&step, &mut self.running, &mut self.next_number);
        self.jobs
            .step(&step, &mut self.running, &mut self.next_number);
        let load = self.running.iter().map(|r| r.load).sum();
        let kept = 300_000.0 / (300_000.0 + interval_ms as f64); // close to exponential decay
        self.load5 = self.load5 * kept + load * (1.0 - kept);

        let kernel_bytes = self.kernel.step(&step);
        let is_busy = is_present || self.running.iter().any(|r| r.load >= 0.5);
        let file_bytes = (self.files).step(&step, is_busy, self.physical_bytes - kernel_bytes);
        let room_bytes = self.physical_bytes - kernel_bytes - file_bytes;
        make_room(&mut self.running, room_bytes);
        let sum = |is_active: bool| {
            let some = self.running.iter().filter(|r| r.is_active == is_active);
            some.map(|r| if is_active { r.resident_bytes } else { r.bytes })
                .sum()
        };
        Moment {
            physical_bytes: self.physical_bytes,
            kernel_bytes,
            file_bytes,
            process_bytes: sum(true),
            idle_process_bytes: sum(false),
            is_present,
            active_ms,
            load,
            load5: (self.load5 * 100.0).round() / 100.0,
        }
    }
}

/// Keeps all active programs resident if they fit; if not, the largest are paged out first. `room_bytes` is
/// the memory left for them.
fn make_room(running: &mut [Running], room_bytes: i64) {
    let mut missing = -room_bytes;
    for running in running.iter_mut() {
        running.resident_bytes = running.bytes;
        missing += if running.is_active { running.bytes } else { 0 };
    }
    while missing > 0 {
        let active = running
            .iter_mut()
            .filter(|r| r.is_active && r.resident_bytes > 0);
        let Some(largest) = active.max_by_key(|r| r.resident_bytes) else {
            return;
        };
        let out = largest.resident_bytes.min(missing);
        largest.resident_bytes -= out;
        missing -= out;
    }
}

/// A step from one moment to the next.
#[derive(Clone, Copy, Debug)]
struct Step {
    time_ms: i64,
    /// Time during which the host ran; nothing happens while it sleeps.
    interval_ms: i64,
    is_present: bool,
    /// Time of the owner's last return, or of the next one while the owner is away.
    returns_ms: i64,
    left_ms: Option<i64>,
}

impl Step {
    /// Probability that an event with the rate `per_hour` occurs within the step; at most 1.
    fn chance(&self, per_hour: f64) -> f64 {
        (per_hour * self.interval_ms as f64 / 3_600_000.0).min(1.0)
    }
}

/// Draws a size with mean `mib`, in bytes of whole pages; the sd of its logarithm is `sigma`.
fn size(dice: &mut Dice, mib: f64, sigma: f64) -> i64 {
    let median = mib * (-sigma * sigma / 2.0).exp();
    let bytes = dice.around(median, sigma).min(1e7) * MIB as f64;
    whole_pages(bytes as i64).max(super::PAGE_BYTES)
}

/// Converts names to shared strings.
fn shared(names: &[String]) -> Vec<Arc<str>> {
    names.iter().map(|name| Arc::from(name.as_str())).collect()
}

/// Chooses one of several names at random.
fn one_of(dice: &mut Dice, names: &[Arc<str>]) -> Arc<str> {
    let at = usize::try_from(dice.between(0, names.len() as i64)).unwrap_or(0);
    names.get(at).cloned().unwrap_or_default()
}
