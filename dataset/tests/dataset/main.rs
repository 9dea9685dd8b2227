//! Tests of the dataset's guarantees, on real files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod batch;
mod compacted;
mod damage;
mod disk;
mod golden;
mod killed;
mod made_rows;
mod repaired;
mod retained;
mod round_trip;
mod selected;
mod several;
