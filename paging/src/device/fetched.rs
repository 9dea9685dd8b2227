//! Purposes of reading a page.

/// Bytes of a page for a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) job: usize,
    pub(super) page: u32,
    /// Within the page.
    pub(super) from: usize,
    pub(super) len: usize,
    /// Within the answer.
    pub(super) at: usize,
}

/// Purpose of reading a page.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// A request to be answered.
    Answer(Part),
    /// To become a frame's contents, or the rest of them.
    Fill(u32),
}
