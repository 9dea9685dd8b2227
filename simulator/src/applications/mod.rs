//! Programs as generators of requests: the five of the study. Each program is a file in this module and a row
//! of the table of applications below.
//!
//! | program | data | pattern | requests |
//! | --- | --- | --- | --- |
//! | dmine | 4 GB in 8 files | three scans, all files side by side | 128 KB |
//! | db2 | 5.2 GB in 831 files | five queries: scans with look-ups between | 64 KB, 8 KB |
//! | lu | 512 MiB in 8 files | triangle scan of 128 slabs | slabs of 4 MiB |
//! | hotcold | 2 GiB | 80 % of the requests to 20 % of it | 8 KB |
//! | random | 2 GiB | random | 8 KB |
//!
//! Sizes are the study's (Acharya & Setia, section 3.2), and so are the requests as far as the study
//! describes them: the three real programs' traces were never published. Each generator states its
//! assumptions. The compute time between two requests is the study's for hotcold and random; for each of the
//! others it is calibrated to one figure, see [`calibrate`](crate::calibrate()).

mod db2;
mod dmine;
mod hotcold;
mod layout;
mod lu;
mod random;
mod table;

pub use layout::Layout;

use crate::Request;
use rand_chacha::ChaCha8Rng;

/// A program that runs repeatedly over the same data.
pub trait Program {
    /// Requests of one run, in the order in which the program's processes take them.
    type Stream: Iterator<Item = Request>;

    /// Layout of the program's data.
    fn layout(&self) -> Layout;

    /// Requests of the run with this number. The same seed and number give the same requests.
    fn run(&self, seed: u64, number: u64) -> Self::Stream;

    /// Returns true if the program's regions, and the data cached on its client, stay for the next run, which
    /// uses the same data.
    fn keeps_regions(&self) -> bool;

    /// Number of the program's processes that run concurrently on the client's CPUs. Each process computes
    /// and waits on its own.
    fn processes(&self) -> u32;
}

table::applications! {
    /// Association rules in retail data.
    "dmine" => Dmine(dmine::Scans);
    /// Decision support queries.
    "db2" => Db2(db2::Queries);
    /// LU decomposition of a matrix that does not fit into memory.
    "lu" => Lu(lu::Triangle);
    /// Synthetic: most requests to a fifth of the data.
    "hotcold" => Hotcold(hotcold::Draws);
    /// Synthetic: random requests.
    "random" => Random(random::Draws);
}

impl Application {
    /// The study's programs, in the order of its tables and figures.
    pub const STUDY: [Self; 5] = [
        Self::Dmine,
        Self::Db2,
        Self::Lu,
        Self::Hotcold,
        Self::Random,
    ];

    /// The application with a compute time of `think_ns` before each request.
    #[must_use]
    pub const fn thinking(self, think_ns: u64) -> PacedApplication {
        PacedApplication {
            application: self,
            think_ns,
        }
    }
}

impl std::fmt::Display for Application {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// An [`Application`] with a chosen compute time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacedApplication {
    application: Application,
    think_ns: u64,
}

/// Requests of one run of an application, and properties that hold for every run.
pub trait Run: Iterator<Item = Request> {
    /// Layout of the application's data.
    const LAYOUT: Layout;

    /// Compute time before each request.
    const THINK_NS: u64;

    /// True if [`Run::THINK_NS`] was **calibrated**, so that the ideal speedup on the study's client equals
    /// that of Table 5 ([`calibrate`](crate::calibrate()); `tests/study.rs` finds the same).
    const IS_CALIBRATED: bool;

    /// True if the application's regions, and the data cached on its client, stay for the next run.
    const KEEPS_REGIONS: bool;

    /// Number of the application's processes that run concurrently on the client's CPUs.
    const PROCESSES: u32;

    /// Makes a run that computes for `think_ns` before each request and draws its random numbers from `dice`.
    fn new(think_ns: u64, dice: ChaCha8Rng) -> Self;
}

/// Draws a number below `count`. Each probability differs from uniform by less than 2⁻³² of `count`.
fn below(count: u32, dice: &mut ChaCha8Rng) -> u32 {
    use rand::Rng;
    ((u64::from(dice.next_u32()) * u64::from(count)) >> 32) as u32
}

#[cfg(test)]
mod tests;
