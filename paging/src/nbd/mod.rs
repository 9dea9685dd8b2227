//! The NBD protocol, which transfers pages between hosts and serves block devices.
//!
//! Supported are fixed newstyle, `GO`, `INFO`, `LIST`, `STARTTLS` and simple replies, as in doc/proto.md of
//! the NetworkBlockDevice project. This module does not depend on the origin of the bytes: a server is given
//! [`Exports`], each with its [`Contents`].

mod channel;
pub mod client;
mod encrypted;
mod error;
mod export;
#[doc(hidden)]
pub mod fuzz;
mod guests;
mod lease_exports;
mod listen;
mod load;
mod negotiate;
mod strangers;
mod transmit;
pub mod wire;

pub use error::NegotiationError;
pub use export::{Caller, Contents, Export, ExportRefusal, Exports};
pub use guests::{Arrival, Gate, Guest, Guests, RecheckResult};
pub use lease_exports::{ClientLeases, Leases, export_name, lease_of};
pub use listen::{Address, Listener, listen_at};
pub use load::{BOUNDS_US, Load, LoadCounts};
pub use negotiate::{Door, greet};
pub use transmit::TransmissionError;

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
mod tests;
