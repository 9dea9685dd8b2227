//! Requests of a program.

/// A request of a stream: a range of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// Object that is asked for: a block's number, or a recorded stream's id of an object.
    pub object: u64,
    /// Bytes of it that are read or written.
    pub bytes: u32,
    /// True if the request writes.
    pub is_write: bool,
    /// Time that the program computes between the answer before and this request; of a recorded stream, the time after
    /// the request before it this one was made.
    pub think_ns: u64,
}
