//! Tests of the policies: scenarios worked by hand (A to J; K is in `cost`), random runs, and a model check.

mod divisions;
mod driver;
mod losses;
mod model;
mod network;
mod properties;
mod replacements;
mod scenarios;

use super::uid::Uid;

/// Shared page with that number.
fn uid(number: u32) -> Uid {
    Uid::shared(u128::from(number))
}
