//! The `gleaner-memoryd` command.

fn main() {}
