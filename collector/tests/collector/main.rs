//! Tests of the built collector.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod damage;
mod disk;
mod hostile;
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
