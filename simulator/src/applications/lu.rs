//! LU decomposition of a matrix of 8192 × 8192 doubles in slabs of 64 columns.
//!
//! From the study: 536 MB in 8 files, slabs of 64 columns, a triangle scan (section 3.2). Assumed: the
//! left-looking order. It reads each slab, updates it with all slabs to its left, which are read one after
//! the other, and writes it once. A slab is read or written by one request, slabs are distributed over the
//! files in turn, and every update takes the same time.

use super::{Layout, Run};
use crate::Request;
use rand_chacha::ChaCha8Rng;

/// Compute time before each request, **calibrated** to Table 5's ideal speedup of lu.
const THINK_NS: u64 = 623_000_000;

const FILES: u32 = 8;
const SLABS: u32 = 8192 / 64;

const LAYOUT: Layout = Layout {
    files: FILES,
    file_blocks: SLABS / FILES,
    block_bytes: 64 * 8192 * 8,
    largest_request_bytes: 64 * 8192 * 8,
};

/// Generator of the requests of one run.
#[derive(Clone, Debug)]
pub struct Triangle {
    think_ns: u64,
    /// The slab being updated.
    slab: u32,
    step: u32,
}

impl Run for Triangle {
    const LAYOUT: Layout = LAYOUT;
    const THINK_NS: u64 = THINK_NS;
    const IS_CALIBRATED: bool = true;
    const KEEPS_REGIONS: bool = false; // section 3.3
    // lu is a parallel program, traced on eight processors and run on a client with four (sections 3.2 and
    // 3.3).
    const PROCESSES: u32 = 4;

    fn new(think_ns: u64, _dice: ChaCha8Rng) -> Self {
        Self {
            think_ns,
            slab: 0,
            step: 0,
        }
    }
}

impl Iterator for Triangle {
    type Item = Request;

    /// Requests for each slab: a read of it, reads of all slabs to its left, a write of it.
    #[inline]
    fn next(&mut self) -> Option<Request> {
        if self.slab == SLABS {
            return None;
        }
        let is_write = self.step == self.slab + 1;
        let slab = match self.step {
            0 => self.slab,
            _ if is_write => self.slab,
            step => step - 1,
        };
        if is_write {
            (self.slab, self.step) = (self.slab + 1, 0);
        } else {
            self.step += 1;
        }
        Some(Request {
            object: u64::from(slab % FILES * LAYOUT.file_blocks + slab / FILES),
            bytes: LAYOUT.block_bytes,
            is_write,
            think_ns: self.think_ns,
        })
    }
}
