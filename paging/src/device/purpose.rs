//! Reasons for reading a page.

/// Bytes of one page that a client requested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) job: usize,
    pub(super) page: u32,
    /// Offset within the page.
    pub(super) from: usize,
    pub(super) len: usize,
    /// Offset within the answer.
    pub(super) at: usize,
}

/// Reason for reading a page.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// Answer to a client's request.
    Answer(Part),
    /// Former contents, needed to complete the frame of this number.
    Fill(u32),
}
