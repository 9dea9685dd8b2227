//! Clients of the daemons' sockets on this machine: the clerk's status ([`clerk()`], [`device`]) and the
//! owner's commands to the memory server ([`memoryd()`]).

mod clerk;
mod memoryd;

pub use clerk::{clerk, device};
pub use memoryd::{AskError, memoryd};
