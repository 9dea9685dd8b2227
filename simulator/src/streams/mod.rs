//! Streams of requests in other programs' formats: reads and writes them.
//!
//! A stream is an iterator of [`StreamRequest`] that holds only a buffer, however long the recording is. The
//! first unreadable record ends it with a [`StreamError`]; no record is skipped. Formats, and what is kept of
//! each: docs/streams.md.

mod divided;
mod error;
mod objects;
mod recorded;
mod replayed;

pub mod read;
pub mod write;

pub use divided::{ClientRequests, replayed};
pub use error::StreamError;
pub use objects::Objects;
pub use recorded::{Client, StreamRequest, of_program};
pub use replayed::{ReplayedClient, Requests, StoredObjects};
