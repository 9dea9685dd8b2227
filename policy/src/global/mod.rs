//! Global memory: the memory of all nodes of a cluster as one cache, by the rules of Feeley et al.,
//! *Implementing Global Memory Management in a Workstation Cluster*, SOSP 1995 (GMS).
//!
//! A [`node::Node`] decides everything for one host: which page it evicts, whether the page is dropped or put
//! to another node, whether it stores a page that others put to it, where pages are found, and when an epoch
//! begins. It is a state machine without clock, randomness or I/O: a driver (a simulator, or a daemon) passes
//! events, the time and random numbers, and carries out the actions. docs/gms.md explains the rules.
//!
//! Five policies ([`settings::MemoryPolicy`]) share this code, so that comparisons differ in the rule alone.
//!
//! Sources in brackets are sections of the paper. It leaves much open; docs/gms.md lists our choices.

pub mod age;
pub mod cost;
pub mod directory;
pub mod epoch;
mod index;
pub mod members;
pub mod message;
pub mod node;
pub mod pages;
pub mod prefetch;
pub mod settings;
#[cfg(test)]
mod tests;
mod uid;
pub mod weights;

pub use uid::{NodeId, Uid, node_of_host};
