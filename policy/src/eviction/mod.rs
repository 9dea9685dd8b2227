//! Order in which pages leave when there is no room for another.
//!
//! The holder of the pages calls [`Eviction::evict`] until there is room, then [`Eviction::enter`] for the newcomer, and
//! [`Eviction::used`] for a page that is asked for and is in. A policy is a file here and a row of the table below.

mod fifo;
mod first_in;
mod lru;
mod policy;
mod queue;
mod s3_fifo;
mod sieve;
#[cfg(test)]
mod tests;

pub use policy::{UnknownPolicy, Visitor};

policy::policies! {
    /// The least recently used page leaves.
    "lru" => lru::Lru;
    /// The page that came first leaves.
    "fifo" => fifo::Fifo;
    /// No page leaves (Acharya and Setia, section 3.2: fit for scans).
    "first-in" => first_in::FirstIn;
    /// The page that came first and was not used since a hand passed it leaves (Zhang et al., NSDI 2024).
    "sieve" => sieve::Sieve;
    /// The oldest of the newcomers that were not used again leaves, or of the others (Yang et al., SOSP 2023).
    "s3-fifo" => s3_fifo::S3Fifo;
}

/// An order in which pages leave.
pub trait Eviction {
    /// Order of pages below `pages`, at most 2³² − 2, none of which is in it.
    fn of(pages: u32) -> Self;

    /// Makes room for pages below `pages`; those that are in stay.
    fn grow(&mut self, pages: u32);

    /// Returns true where the page is in.
    fn contains(&self, page: u32) -> bool;

    /// Takes the page in. One that is in already, or beyond the end, changes nothing.
    fn enter(&mut self, page: u32);

    /// Notes that the page was asked for. One that is not in changes nothing.
    fn used(&mut self, page: u32);

    /// Takes out the page that leaves next, of those that `may_leave` allows. It is called `most_asked` times at most.
    ///
    /// `None`: no page leaves, and the newcomer stays out.
    fn evict(&mut self, most_asked: usize, may_leave: impl FnMut(u32) -> bool) -> Option<u32>;

    /// Removes the page for a reason other than eviction: it was lost, or its holder does not need it. A page
    /// that is not in changes nothing.
    fn leave(&mut self, page: u32);
}
