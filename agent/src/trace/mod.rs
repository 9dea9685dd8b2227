//! The trace: what is stored, in which order, and what becomes of it on a bad disk and in time.

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
