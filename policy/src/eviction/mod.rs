//! Which page leaves when there is no room for another.

mod lru;

pub use lru::Lru;
