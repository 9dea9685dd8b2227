//! Eviction: the order in which pages leave when there is no room for another.
//!
//! The holder of the pages calls [`Eviction::evict`] until there is room, then [`Eviction::enter`] for the
//! newcomer; it calls [`Eviction::used`] for each request of a stored page. A policy is a file in this module
//! and a row of the table below.

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
    /// No page leaves (Acharya and Setia, section 3.2: suits scans).
    "first-in" => first_in::FirstIn;
    /// From the hand's position on, the first page leaves that was not used since the hand last passed it
    /// (Zhang et al., NSDI 2024).
    "sieve" => sieve::Sieve;
    /// If newcomers fill a tenth of the room, the oldest newcomer that was not used again leaves; otherwise,
    /// the oldest unused one of the other pages (Yang et al., SOSP 2023).
    "s3-fifo" => s3_fifo::S3Fifo;
}

/// An order in which pages leave.
pub trait Eviction {
    /// Empty order for page numbers below `pages`, at most 2³² − 2.
    fn of(pages: u32) -> Self;

    /// Extends the page numbers to below `pages`; pages in the order keep their places.
    fn grow(&mut self, pages: u32);

    /// Returns true if the page is in the order.
    fn contains(&self, page: u32) -> bool;

    /// Adds the page. Ignores a page that is in the order already, or beyond the end.
    fn enter(&mut self, page: u32);

    /// Records that the page was requested. Ignores a page that is not in the order.
    fn used(&mut self, page: u32);

    /// Removes the page that leaves next, among those for which `may_leave` returns true. Calls `may_leave`
    /// at most `most_asked` times.
    ///
    /// Returns `None` if no page leaves; the newcomer is then not stored.
    fn evict(&mut self, most_asked: usize, may_leave: impl FnMut(u32) -> bool) -> Option<u32>;

    /// Removes the page for a reason other than eviction: it was lost, or its holder does not need it.
    /// Ignores a page that is not in the order.
    fn leave(&mut self, page: u32);
}
