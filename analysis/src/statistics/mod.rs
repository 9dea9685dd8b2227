//! Statistics without a word about memory: pure, mergeable, exact where they can be.

pub(crate) mod distribution;
pub(crate) mod survival;
