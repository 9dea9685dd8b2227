//! Requests of a program.

/// A request of a stream: reads or writes bytes of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// Requested object: a block's number, or an object's id in a recorded stream.
    pub object: u64,
    /// Bytes of the object that are read or written.
    pub bytes: u32,
    /// True if the request writes.
    pub is_write: bool,
    /// Compute time between the previous answer and this request; in a recorded stream, the time since the
    /// previous request.
    pub think_ns: u64,
}
