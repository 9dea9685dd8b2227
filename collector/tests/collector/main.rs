//! Tests of the collector as a built program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod damage;
mod disk;
mod group;
mod hostile;
mod iceberg;
mod intake;
mod killed;
mod made;
mod memory;
mod published;
mod running;
mod scraped;
mod status;
mod strangers;
mod tables;
mod trusted;
