//! Gains and costs of lending: traces of hosts and programs' streams of requests, replayed through
//! the rules of `policy` that run live.
//!
//! Time is integer nanoseconds since a simulation's begin; nothing here reads a clock, and the same seed gives the same bytes.
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
