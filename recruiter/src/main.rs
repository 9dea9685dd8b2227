//! The `gleaner-recruiter` command.

fn main() {}
