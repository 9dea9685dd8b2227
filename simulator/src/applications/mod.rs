//! Programs as generators of requests: the study's five. A program is a file here and a row of the table below.
//!
//! | program | data | pattern | requests |
//! | --- | --- | --- | --- |
//! | dmine | 4 GB in 8 files | three scans, all files side by side | 128 KB |
//! | db2 | 5.2 GB in 831 files | five queries: scans with look-ups between | 64 KB, 8 KB |
//! | lu | 512 MiB in 8 files | triangle scan of 128 slabs | slabs of 4 MiB |
//! | hotcold | 2 GiB | 80 % of the requests to 20 % of it | 8 KB |
//! | random | 2 GiB | random | 8 KB |
//!
//! Sizes are the study's (Acharya & Setia, section 3.2), and so are requests where it tells of them: the three real programs'
//! traces were never published. Each generator says what of it is assumed. The time that a program computes between two
//! requests is the study's for hotcold and random; for the others it is calibrated to one figure each, see [`calibrate`](crate::calibrate()).

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

/// A program that runs again and again over the same data.
pub trait Program {
    /// The requests of one run, in the order in which its processes take them.
    type Stream: Iterator<Item = Request>;

    /// Layout of the program's data.
    fn layout(&self) -> Layout;

    /// The run of this number. The same seed and number give the same requests.
    fn run(&self, seed: u64, number: u64) -> Self::Stream;

    /// Returns true if its regions, and its host's cached data, outlive a run: the next run has the same data.
    fn keeps_regions(&self) -> bool;

    /// Number of its processes that run at once on the client's CPUs: each computes and waits by itself.
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
    /// The study's programs, in its order: the ones that its tables and figures have.
    pub const STUDY: [Self; 5] = [
        Self::Dmine,
        Self::Db2,
        Self::Lu,
        Self::Hotcold,
        Self::Random,
    ];

    /// The application with `think_ns` of computing before each request.
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

/// An [`Application`] on CPUs of some speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacedApplication {
    application: Application,
    think_ns: u64,
}

/// The requests of one run of an application, and the facts about it that hold for every run.
pub trait Run: Iterator<Item = Request> {
    /// Data of the application.
    const LAYOUT: Layout;

    /// Time to compute before each request.
    const THINK_NS: u64;

    /// True where that time was **calibrated**: so that the ideal speedup on the study's client is the one in its Table
    /// 5 ([`calibrate`](crate::calibrate()); `tests/study.rs` finds the same).
    const IS_CALIBRATED: bool;

    /// True where the application's regions, and what its host has in memory, outlive a run.
    const KEEPS_REGIONS: bool;

    /// Number of its processes that run at once on the client's CPUs.
    const PROCESSES: u32;

    /// Returns a run that computes for `think_ns` before each request and draws from `dice`.
    fn new(think_ns: u64, dice: ChaCha8Rng) -> Self;
}

/// Draws a number below `count`, uniformly to within 2⁻³² of `count`.
fn below(count: u32, dice: &mut ChaCha8Rng) -> u32 {
    use rand::Rng;
    ((u64::from(dice.next_u32()) * u64::from(count)) >> 32) as u32
}

#[cfg(test)]
mod tests;
