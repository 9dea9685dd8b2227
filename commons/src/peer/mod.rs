//! Exchange of blocks with the other members of a commons, over HTTP/1.1 and mutual TLS with hosts'
//! certificates.
//!
//! [`Cluster`] finds a block in other hosts' memory: it asks the block's home, and by the home's answer a
//! holder, or the home a second time while another host fetches the block. [`BlockServer`] answers the same
//! requests of others. No answer is trusted: a block whose hash differs is discarded.

mod client;
mod cluster;
pub mod fuzz;
mod resolver;
mod server;
mod states;
#[cfg(test)]
mod tests;
mod wire;

pub use client::PeerFault;
pub use cluster::{Cluster, ClusterCounters, ClusterError};
pub use server::BlockServer;
pub use states::PeerStatus;
