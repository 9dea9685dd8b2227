//! What a program asks for.

/// One request of a stream: so much of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// What is asked for: a block's number, or a recorded stream's id of an object.
    pub object: u64,
    /// How much of it is read or written.
    pub bytes: u32,
    /// Whether it is changed by it.
    pub is_write: bool,
    /// How long the program computes between the answer before and this request; of a recorded stream, how long after the request
    /// before it this one was made.
    pub think_ns: u64,
}
