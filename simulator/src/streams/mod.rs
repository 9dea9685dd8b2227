//! Streams of requests as other programs record them: read here, and written for them.
//!
//! A stream is an iterator of [`StreamRequest`] requests that holds a buffer and no more, however long the recording is. The first thing that
//! cannot be read ends it with a [`StreamError`]: nothing is passed over. Formats, and what is kept of each: docs/streams.md.

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
