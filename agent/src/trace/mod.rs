//! The trace: its records, their sequence, handling of damage, and retention.

pub mod changes;
pub mod damage;
pub mod database;
pub(crate) mod events;
pub mod export;
pub mod gap;
pub(crate) mod history;
pub(crate) mod recorder;
pub mod retention;
pub(crate) mod rows;
pub mod store;
pub mod vacuum;
