//! Tests: costs and scenarios worked by hand, laws in random clusters, recorded hosts, determinism, and files.

mod costs;
mod files;
mod recorded;
mod runs;

use super::*;
use gleaner_policy::global::settings::Swap;

/// A small cluster whose simulation takes a fraction of a second.
fn small() -> Scenario {
    Scenario {
        counted_faults: 400,
        idle_nodes: 3,
        idle_frames: 12_000,
        ..Scenario::default()
    }
}
