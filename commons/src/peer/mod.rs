//! Exchange of blocks with the other members of a commons, over HTTP/1.1 and mutual TLS with hosts'
//! certificates.
//!
//! [`Cluster`] finds a block in other hosts' memory: it asks the block's home, and by the home's answer a
//! holder, or the home a second time while another host fetches the block. [`BlockServer`] answers the same
//! requests of others. [`Exchange`] and [`NodeServer`] do the same for members with a recruiter, by the decisions
//! of [`crate::global`]. No answer is trusted: a block whose hash differs is discarded.

mod client;
mod cluster;
mod door;
mod exchange;
mod found_share;
pub mod fuzz;
mod node_server;
mod resolver;
mod server;
mod states;
#[cfg(test)]
mod tests;
mod wire;

pub use client::PeerFault;
pub use cluster::{Cluster, ClusterCounters, ClusterError};
pub use door::MemberDoor;
pub use exchange::{Exchange, PutCounters};
pub use node_server::NodeServer;
pub use server::BlockServer;
pub use states::PeerStatus;
