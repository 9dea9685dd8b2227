//! `gleaner-collector`.

fn main() {}
