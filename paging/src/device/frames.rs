//! Pages in transit: a fixed number of frames, allocated in advance. All frames of one page form a queue.
//!
//! The frames of a page are handled one after the other, so that no older write overwrites a newer one. The
//! first frame of the queue is the one in progress. Reads get the contents of the last frame.

use super::seal::TagBytes;
use super::table::{COPIES, Place};
use std::collections::HashMap;
use std::sync::Arc;

/// Size of a page in bytes, the same on every host.
pub const PAGE: usize = 4096;

/// Bytes of a page, aligned for direct I/O.
#[repr(align(4096))]
#[derive(Clone, Debug)]
pub struct PageBytes(pub [u8; PAGE]);

impl Default for PageBytes {
    fn default() -> Self {
        Self([0; PAGE])
    }
}

/// Purpose of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stores new contents.
    Write,
    /// Empties the page.
    Zero,
    /// Copies the page's contents to more places.
    Copy,
}

/// State of a frame's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Complete and encrypted.
    Ready,
    /// Bytes `from..until` are new; the others must be taken from the page's former contents.
    Part { from: usize, until: usize },
    /// Former contents of the page, which must be fetched.
    Before,
}

/// A frame: a page in transit to its places.
#[derive(Debug)]
pub(super) struct Frame {
    /// Bytes of the page; `None` while the disk reads into them.
    pub(super) bytes: Option<Arc<PageBytes>>,
    pub(super) page: u32,
    pub(super) kind: Kind,
    pub(super) contents: Contents,
    pub(super) version: u64,
    pub(super) tag: TagBytes,
    /// Number of requests for this frame that are not answered yet.
    pub(super) pending: u8,
    pub(super) places: [Place; COPIES],
    pub(super) is_on_disk: bool,
    /// Number of servers tried in place of others.
    pub(super) detours: u8,
    /// Request that is answered when the frame is done.
    pub(super) job: Option<usize>,
    /// Epoch of the frame: a flush of this epoch or a later one waits for the frame.
    pub(super) epoch: u64,
    next: Option<u32>,
}

/// First and last frame of a page's queue.
#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
}

/// All frames of the device.
pub(super) struct Frames {
    frames: Vec<Frame>,
    free: Vec<u32>,
    queues: HashMap<u32, Queue>,
}

impl Frames {
    pub(super) fn new(count: u32) -> Self {
        let frame = |_| Frame {
            bytes: Some(Arc::default()),
            page: 0,
            kind: Kind::Write,
            contents: Contents::Ready,
            version: 0,
            tag: [0; 16],
            pending: 0,
            places: [Place::NONE; COPIES],
            is_on_disk: false,
            detours: 0,
            job: None,
            epoch: 0,
            next: None,
        };
        Self {
            frames: (0..count).map(frame).collect(),
            free: (0..count).rev().collect(),
            queues: HashMap::with_capacity(count as usize),
        }
    }

    pub(super) fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Adds a frame at the end of the page's queue; returns `None` if no frame is free.
    pub(super) fn queue(&mut self, page: u32, kind: Kind, contents: Contents) -> Option<u32> {
        let number = self.free.pop()?;
        let frame = &mut self.frames[number as usize];
        (frame.page, frame.kind, frame.contents) = (page, kind, contents);
        (frame.version, frame.tag) = (0, [0; 16]);
        (frame.pending, frame.detours, frame.is_on_disk) = (0, 0, false);
        (frame.places, frame.job, frame.next) = ([Place::NONE; COPIES], None, None);
        let queue = Queue {
            first: number,
            last: number,
        };
        let queue = self.queues.entry(page).or_insert(queue);
        let before = queue.last;
        queue.last = number;
        if before != number {
            self.frames[before as usize].next = Some(number);
        }
        Some(number)
    }

    /// Removes the first frame of a page; returns the next one.
    pub(super) fn leave(&mut self, number: u32) -> Option<u32> {
        let frame = &mut self.frames[number as usize];
        let (page, next) = (frame.page, frame.next.take());
        match (next, self.queues.get_mut(&page)) {
            (Some(next), Some(queue)) => queue.first = next,
            _ => {
                self.queues.remove(&page);
            }
        }
        self.free.push(number);
        next
    }

    pub(super) fn first_of(&self, page: u32) -> Option<u32> {
        self.queues.get(&page).map(|queue| queue.first)
    }

    pub(super) fn last_of(&self, page: u32) -> Option<u32> {
        self.queues.get(&page).map(|queue| queue.last)
    }

    pub(super) fn get(&self, number: u32) -> &Frame {
        &self.frames[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Frame {
        &mut self.frames[number as usize]
    }

    /// Returns the bytes of a frame for changing. Only one user may change them at a time.
    pub(super) fn bytes_mut(&mut self, number: u32) -> &mut [u8; PAGE] {
        let bytes = self.frames[number as usize].bytes.get_or_insert_default();
        // Copies the bytes if the disk still uses them.
        &mut Arc::make_mut(bytes).0
    }

    pub(super) fn bytes(&self, number: u32) -> Option<&[u8; PAGE]> {
        self.frames[number as usize]
            .bytes
            .as_ref()
            .map(|bytes| &bytes.0)
    }
}
