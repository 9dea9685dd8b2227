//! Gains and costs of lending: traces of hosts and request streams of programs, replayed with the same
//! `policy` rules that run live.
//!
//! Time is in integer nanoseconds since a simulation's begin. No code here reads a clock, and the same seed
//! gives the same bytes.
//!
//! Rooms, from the top; each uses only those after it: `sweep`, `calibrate`, `cache`, `streams`, `dodo`,
//! `hosts`, `applications`, `event`, `request`.

pub mod applications;
pub mod cache;
mod calibrate;
pub mod dodo;
pub mod event;
pub mod hosts;
mod request;
pub mod streams;
pub mod sweep;

pub use calibrate::calibrate;
pub use request::Request;
