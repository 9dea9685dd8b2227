//! The NBD protocol: how pages travel between hosts, and how block devices are served.
//!
//! Fixed newstyle, `GO`, `INFO`, `LIST`, `STARTTLS`, simple replies, as doc/proto.md of the NetworkBlockDevice project has it. What
//! is here knows nothing of where bytes come from: a server is given [`Exports`], each with its [`Contents`].

mod channel;
pub mod client;
mod error;
mod export;
#[doc(hidden)]
pub mod fuzz;
mod guests;
mod leased;
mod listen;
mod load;
mod negotiate;
mod share;
mod strangers;
mod transmit;
pub mod wire;

pub use error::NegotiationError;
pub use export::{Caller, Contents, Export, Exports, Refused};
pub use guests::{Arrival, Gate, Guest, Guests, Rechecked};
pub use leased::{Leases, export_name, lease_of};
pub use listen::{Address, Listener, listen_at};
pub use load::{BOUNDS_US, Counted, Load};
pub use negotiate::{Door, greet};
pub use share::Shares;
pub use transmit::TransmissionError;

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
mod tests;
