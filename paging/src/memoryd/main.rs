//! The `gleaner-memoryd` command.

#[allow(dead_code)]
mod link;

fn main() {}
