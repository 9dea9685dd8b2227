//! Streams of requests in other programs' formats: reads and writes them.
//!
//! A stream is an iterator of [`StreamRequest`] that holds only a buffer, however long the recording is. The
//! first unreadable record ends it with a [`StreamError`]; no record is skipped. Formats, and what is kept of
//! each: docs/streams.md.

mod client_requests;
mod error;
mod objects;
mod replayed;
mod stream_request;

pub mod read;
pub mod write;

pub use client_requests::{ClientRequests, replayed};
pub use error::StreamError;
pub use objects::Objects;
pub use replayed::{ReplayedClient, Requests, StoredObjects};
pub use stream_request::{Client, StreamRequest, of_program};
