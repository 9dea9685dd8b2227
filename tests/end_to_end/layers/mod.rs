//! Compares the structure that ARCHITECTURE.md and the crates declare with manifests and sources.

mod crates;
mod graph;
mod rooms;
mod sources;
mod tokens;

use std::fs;

/// Names of the workspace's members; their folders have the same names.
fn members() -> Vec<String> {
    let path = gleaner_tests::repository().join("Cargo.toml");
    let manifest: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
    manifest["workspace"]["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m.as_str().unwrap().to_owned())
        .collect()
}
