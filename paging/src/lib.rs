//! Memory lent between hosts: the memory server (`gleaner-memoryd`) runs on hosts that have idle memory, and
//! the clerk (`gleaner-clerk`) on hosts that are short of memory.
//!
//! Rooms, from the top; each uses only those after it: `ask`, `borrow`, `device`, `nbd`, `store`, `websocket`.

pub mod ask;
pub mod borrow;
pub mod device;
pub mod nbd;
pub mod store;
pub mod websocket;
