//! Simulates lending: replays traces of hosts and request streams of programs with the same `policy` rules
//! that run live. The results are the gains and the costs of lending.
//!
//! Time is in integer nanoseconds since a simulation's begin. No code here reads a clock, so the same seed
//! gives the same results, byte for byte.
//!
//! Rooms, from the top; each uses only those after it: `sweep`, `calibrate`, `models`, `references`,
//! `cache`, `streams`, `dodo`, `gms`, `servers`, `hosts`, `applications`, `queueing`, `event`, `parallel`,
//! `swept`, `request`.

pub mod applications;
pub mod cache;
mod calibrate;
pub mod dodo;
pub mod event;
pub mod gms;
pub mod hosts;
pub mod models;
pub mod parallel;
pub mod queueing;
pub mod references;
mod request;
pub mod servers;
pub mod streams;
pub mod sweep;
pub mod swept;

pub use calibrate::calibrate;
pub use request::Request;
