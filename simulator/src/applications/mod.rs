//! What programs ask for: the study's five, as generators of requests.
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

pub use layout::Layout;

use crate::Request;
use crate::event::MS;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A program that runs again and again over the same data.
pub trait Program {
    /// The requests of one run, in the order in which its processes take them.
    type Stream: Iterator<Item = Request>;

    /// Its data.
    fn layout(&self) -> Layout;

    /// The run of this number. The same seed and number give the same requests.
    fn run(&self, seed: u64, number: u64) -> Self::Stream;

    /// Whether its regions, and what its host has in memory, outlive a run: its data are the same ones in the next.
    fn keeps_regions(&self) -> bool;

    /// How many of its processes run at once on the client's CPUs: each computes and waits by itself.
    fn processes(&self) -> u32;
}

/// The study's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Application {
    /// Association rules in retail data.
    Dmine,
    /// Decision support queries.
    Db2,
    /// LU decomposition of a matrix that does not fit into memory.
    Lu,
    /// Synthetic: most requests to a fifth of the data.
    Hotcold,
    /// Synthetic: random requests.
    Random,
}

impl Application {
    /// Each of them, in the study's order.
    pub const ALL: [Self; 5] = [
        Self::Dmine,
        Self::Db2,
        Self::Lu,
        Self::Hotcold,
        Self::Random,
    ];

    /// As the study spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dmine => "dmine",
            Self::Db2 => "db2",
            Self::Lu => "lu",
            Self::Hotcold => "hotcold",
            Self::Random => "random",
        }
    }

    /// How long it computes before each request. **Calibrated** for dmine, db2 and lu: so that the ideal speedup on the study's
    /// client is the one in its Table 5 ([`calibrate`](crate::calibrate()); `tests/calibration.rs` finds the same). The study's for the others
    /// (section 3.2: 10 ms).
    #[must_use]
    pub const fn think_ns(self) -> u64 {
        match self {
            Self::Dmine => dmine::THINK_NS,
            Self::Db2 => db2::THINK_NS,
            Self::Lu => lu::THINK_NS,
            Self::Hotcold | Self::Random => 10 * MS,
        }
    }

    /// With a time of its own to compute before each request.
    #[must_use]
    pub const fn thinking(self, think_ns: u64) -> Thinking {
        Thinking {
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

/// One of the study's programs on CPUs of some speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thinking {
    application: Application,
    think_ns: u64,
}

impl Program for Thinking {
    type Stream = Stream;

    fn layout(&self) -> Layout {
        match self.application {
            Application::Dmine => dmine::LAYOUT,
            Application::Db2 => db2::LAYOUT,
            Application::Lu => lu::LAYOUT,
            Application::Hotcold | Application::Random => random::LAYOUT,
        }
    }

    fn run(&self, seed: u64, number: u64) -> Stream {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        dice.set_stream(number);
        match self.application {
            Application::Dmine => Stream::Dmine(dmine::Scans::new(self.think_ns)),
            Application::Db2 => Stream::Db2(db2::Queries::new(self.think_ns, dice)),
            Application::Lu => Stream::Lu(lu::Triangle::new(self.think_ns)),
            Application::Hotcold => {
                Stream::Drawn(random::Draws::new(hotcold::block, self.think_ns, dice))
            }
            Application::Random => {
                Stream::Drawn(random::Draws::new(random::block, self.think_ns, dice))
            }
        }
    }

    fn keeps_regions(&self) -> bool {
        // Section 3.3.
        matches!(self.application, Application::Dmine | Application::Db2)
    }

    fn processes(&self) -> u32 {
        match self.application {
            // Parallel programs: traced on eight processors, run on a client with four (sections 3.2 and 3.3).
            Application::Dmine | Application::Db2 | Application::Lu => 4,
            // "a constant compute time of 10 ms between successive I/O requests": one process.
            Application::Hotcold | Application::Random => 1,
        }
    }
}

/// The requests of one run of an [`Application`].
#[derive(Clone, Debug)]
pub enum Stream {
    /// Of dmine.
    Dmine(dmine::Scans),
    /// Of db2.
    Db2(db2::Queries),
    /// Of lu.
    Lu(lu::Triangle),
    /// Of hotcold, and of random.
    Drawn(random::Draws),
}

impl Iterator for Stream {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        match self {
            Self::Dmine(stream) => stream.next(),
            Self::Db2(stream) => stream.next(),
            Self::Lu(stream) => stream.next(),
            Self::Drawn(stream) => stream.next(),
        }
    }
}

/// A number below `count`, each as likely to within 2⁻³² of `count`.
fn below(count: u32, dice: &mut ChaCha8Rng) -> u32 {
    use rand::Rng;
    ((u64::from(dice.next_u32()) * u64::from(count)) >> 32) as u32
}

#[cfg(test)]
mod tests;
