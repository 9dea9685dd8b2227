//! Tests of the product as users meet it, with the built programs on this host, and of the rules of its
//! structure.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)] // tests

mod analyze;
mod by_hand;
mod cache;
mod chain;
mod collect;
mod commons;
mod configuration;
mod curve;
mod delivery;
mod doctor;
mod exports;
mod fidelity;
mod gleaner;
mod host_swap;
mod import;
mod lab;
mod layers;
mod lending;
mod owner;
mod parts;
mod pki;
mod privacy;
mod replayed;
mod report;
mod security;
mod service;
mod shipped;
mod simulate;
mod surfaces;
mod sweep_parts;
mod synth;
mod top;
