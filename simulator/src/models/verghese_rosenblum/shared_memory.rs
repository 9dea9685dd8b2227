//! Pages of several processes in one local memory, which keeps the pages used last.

use super::shared_cpu::{Burst, BurstEnd, PageFetch, SharedCpuLoad};
use super::{INSTRUCTIONS_PER_S, LOCAL_MISS_S};
use crate::references::{FirstTouches, OrderBlock, OrderStep, ReferencesError};

const NS_PER_S: f64 = 1e9;
/// Longest computing without a change of process while others are ready: 10 ms (assumed: the paper prints none).
const SLICE_NS: f64 = 1e7;
/// Frame of a page that has none, and end of a chain of frames.
const NONE: u32 = u32::MAX;

/// Blocks of a process's order of page references ([`crate::references::OrderReader`]).
pub trait ProcessSource: Iterator<Item = Result<OrderBlock, ReferencesError>> {}

impl<S: Iterator<Item = Result<OrderBlock, ReferencesError>>> ProcessSource for S {}

/// Processes with a common local memory, on the papers' machine.
///
/// Pages have numbers in the order in which the processes touch them first, as frames of physical memory: the pages of a
/// process that has ended pass to the next pages that are touched, local ones first. At the begin, the pages with the
/// first numbers are local. The 32 pages that each thread used last always stay local.
pub struct SharedMemory<S> {
    processes: Vec<Process<S>>,
    pages: LocalPages,
    /// Frames of ended processes, the next one last.
    free: Vec<u32>,
    misses: FirstTouches,
    misses_count: u64,
    fetch: PageFetch,
}

impl<S: ProcessSource> SharedMemory<S> {
    /// Makes the memory of these processes, which are numbered from 0. `local_pages` of their pages fit; the others come
    /// from remote memory, as `fetch` has it.
    #[must_use]
    pub fn new(processes: impl IntoIterator<Item = S>, local_pages: u32, fetch: PageFetch) -> Self {
        Self {
            processes: processes.into_iter().map(Process::new).collect(),
            pages: LocalPages::new(local_pages),
            free: Vec::new(),
            misses: FirstTouches::default(),
            misses_count: 0,
            fetch,
        }
    }

    /// Number of processes.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Number of pages that were used so far; those of ended processes count once with their successors.
    #[must_use]
    pub fn footprint_pages(&self) -> u32 {
        self.pages.frames.len() as u32
    }

    /// References so far by the numbers of their pages: of a recording of cache misses, the misses.
    #[must_use]
    pub fn references(&self) -> &FirstTouches {
        &self.misses
    }

    /// Number of references so far.
    #[must_use]
    pub fn references_count(&self) -> u64 {
        self.misses_count
    }
}

impl<S: ProcessSource> SharedCpuLoad for SharedMemory<S> {
    type Error = ReferencesError;

    fn run(&mut self, process: usize) -> Result<Burst, ReferencesError> {
        let Some(of) = self.processes.get_mut(process) else {
            let end = BurstEnd::Finished;
            return Ok(Burst { cpu_ns: 0, end });
        };
        let mut cpu_ns = of.owed_ns;
        let end = loop {
            if cpu_ns >= SLICE_NS {
                break BurstEnd::Slice;
            }
            let Some(step) = of.next_step() else {
                match of.source.next() {
                    Some(block) => cpu_ns += of.begin(block?),
                    None => {
                        free(&mut self.free, of, &self.pages);
                        break BurstEnd::Finished;
                    }
                }
                continue;
            };
            cpu_ns += of.step_ns;
            match step {
                OrderStep::Enter { page } => {
                    let frame = of.frame(page, &mut self.free, &mut self.pages);
                    if self.pages.enter(frame) {
                        break BurstEnd::Fault;
                    }
                }
                OrderStep::Leave { page, references } => {
                    cpu_ns += references as f64 * LOCAL_MISS_S * NS_PER_S;
                    let frame = of.frame(page, &mut self.free, &mut self.pages);
                    self.pages.leave(frame);
                    self.misses.add(frame, references);
                    self.misses_count = self.misses_count.saturating_add(references);
                }
            }
        };
        let whole_ns = cpu_ns.floor();
        of.owed_ns = cpu_ns - whole_ns;
        let cpu_ns = whole_ns as u64;
        Ok(Burst { cpu_ns, end })
    }

    fn fetch(&mut self) -> PageFetch {
        self.fetch
    }
}

/// Passes the frames of a process that ends to later pages: the local ones first.
fn free<S>(free: &mut Vec<u32>, of: &mut Process<S>, pages: &LocalPages) {
    let frames = std::mem::take(&mut of.frames);
    let used = frames.into_iter().filter(|frame| *frame != NONE);
    let (local, remote): (Vec<u32>, Vec<u32>) = used.partition(|frame| pages.is_local(*frame));
    free.extend(remote);
    free.extend(local);
}

/// A process that computes, or has not begun.
struct Process<S> {
    source: S,
    block: OrderBlock,
    /// Index of the next step in the block.
    at: usize,
    /// Computing before each step of the block, without misses.
    step_ns: f64,
    /// Part of a nanosecond that was not computed yet.
    owed_ns: f64,
    /// Frame of each page, or [`NONE`].
    frames: Vec<u32>,
}

impl<S> Process<S> {
    fn new(source: S) -> Self {
        Self {
            source,
            block: OrderBlock::default(),
            at: 0,
            step_ns: 0.0,
            owed_ns: 0.0,
            frames: Vec::new(),
        }
    }

    /// Begins with a block, and returns the computing of a block without steps.
    fn begin(&mut self, block: OrderBlock) -> f64 {
        let block_ns = block.instructions as f64 / INSTRUCTIONS_PER_S * NS_PER_S;
        let steps = block.steps.len();
        (self.block, self.at) = (block, 0);
        if steps == 0 {
            return block_ns;
        }
        self.step_ns = block_ns / steps as f64;
        0.0
    }

    fn next_step(&mut self) -> Option<OrderStep> {
        let step = self.block.steps.get(self.at).copied();
        self.at += usize::from(step.is_some());
        step
    }

    /// Frame of a page; a page without one gets the next.
    fn frame(&mut self, page: u32, free: &mut Vec<u32>, pages: &mut LocalPages) -> u32 {
        let at = page as usize;
        if self.frames.len() <= at {
            self.frames.resize(at + 1, NONE);
        }
        let frame = &mut self.frames[at];
        if *frame == NONE {
            *frame = free.pop().unwrap_or_else(|| pages.add());
        }
        *frame
    }
}

/// Place of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Frame that was never used.
    New,
    /// In remote memory.
    Remote,
    /// In a list of pages used last: local.
    Listed,
    /// Local, in the order of recency between these two frames.
    Local { older: u32, newer: u32 },
}

/// Frames by recency, of which the newest are local.
struct LocalPages {
    frames: Vec<Place>,
    /// Frames of the order of recency; [`NONE`] if there are none.
    oldest: u32,
    newest: u32,
    /// Number of local frames.
    local: u32,
    most_local: u32,
}

impl LocalPages {
    fn new(most_local: u32) -> Self {
        Self {
            frames: Vec::new(),
            oldest: NONE,
            newest: NONE,
            local: 0,
            most_local,
        }
    }

    /// Adds a frame, and returns its number.
    fn add(&mut self) -> u32 {
        self.frames.push(Place::New);
        (self.frames.len() - 1) as u32 // an order file has at most 2^26 pages
    }

    fn place(&self, frame: u32) -> Place {
        let place = self.frames.get(frame as usize);
        place.copied().unwrap_or(Place::New)
    }

    fn set(&mut self, frame: u32, place: Place) {
        if let Some(at) = self.frames.get_mut(frame as usize) {
            *at = place;
        }
    }

    fn is_local(&self, frame: u32) -> bool {
        matches!(self.place(frame), Place::Listed | Place::Local { .. })
    }

    /// A frame is referenced, and enters a list. Returns true if it is not local, and has to be fetched.
    fn enter(&mut self, frame: u32) -> bool {
        let place = self.place(frame);
        self.set(frame, Place::Listed);
        let is_fault = match place {
            Place::Listed => return false,
            Place::Local { older, newer } => {
                self.join(older, newer);
                return false;
            }
            Place::New => frame >= self.most_local,
            Place::Remote => true,
        };
        self.local += 1;
        while self.local > self.most_local && self.oldest != NONE {
            self.evict();
        }
        is_fault
    }

    /// A frame leaves its list, and is the newest of the order.
    fn leave(&mut self, frame: u32) {
        if self.place(frame) != Place::Listed {
            return;
        }
        let older = self.newest;
        let newer = NONE;
        self.set(frame, Place::Local { older, newer });
        self.newest = frame;
        match self.place(older) {
            Place::Local { older: before, .. } if older != NONE => {
                let place = Place::Local {
                    older: before,
                    newer: frame,
                };
                self.set(older, place);
            }
            _ => self.oldest = frame,
        }
        if self.local > self.most_local {
            self.evict();
        }
    }

    /// Moves the oldest frame of the order to remote memory.
    fn evict(&mut self) {
        let frame = self.oldest;
        if let Place::Local { older, newer } = self.place(frame) {
            self.join(older, newer);
            self.set(frame, Place::Remote);
            self.local -= 1;
        }
    }

    /// Makes two frames neighbours of the order, in the place of a frame between them.
    fn join(&mut self, older: u32, newer: u32) {
        match self.place(older) {
            Place::Local { older: before, .. } if older != NONE => {
                let place = Place::Local {
                    older: before,
                    newer,
                };
                self.set(older, place);
            }
            _ => self.oldest = newer,
        }
        match self.place(newer) {
            Place::Local { newer: after, .. } if newer != NONE => {
                let place = Place::Local {
                    older,
                    newer: after,
                };
                self.set(newer, place);
            }
            _ => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests;
