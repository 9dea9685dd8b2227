//! Memory lent between hosts: the idle memory daemon (`gleaner-memoryd`) on those that have some, the clerk (`gleaner-clerk`) on
//! those that are short of it.
//!
//! Rooms, from the top; each uses only those after it: `ask`, `borrow`, `device`, `nbd`, `store`.

pub mod ask;
pub mod borrow;
pub mod device;
pub mod nbd;
pub mod store;
