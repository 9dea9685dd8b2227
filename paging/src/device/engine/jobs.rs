//! Requests of clients. A request is done when all its pages are done.

use super::{Action, Device};
use crate::nbd::wire::{Fault, SimpleReply};
use slab::Slab;
use std::collections::VecDeque;

/// Answer to a client.
#[derive(Debug)]
pub struct Answer {
    /// Number of the client.
    pub client: u64,
    /// Bytes to send: a simple reply, and the data read.
    pub bytes: Vec<u8>,
    /// Number of bytes that were reserved for the answer when its request began; an error needs fewer.
    pub room_bytes: usize,
}

/// A request of a client.
struct Job {
    client: u64,
    cookie: u64,
    /// Number of unfinished pages, plus one until all pages of the request are known.
    left: u32,
    fault: Option<Fault>,
    /// The answer, in assembly; its length is that of an answer without an error.
    reply: Vec<u8>,
}

/// Requests in progress.
#[derive(Default)]
pub(super) struct Jobs {
    jobs: Slab<Job>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    /// Bytes reserved for answers that are being assembled or wait to be sent.
    gathered_bytes: usize,
    /// Waiting flushes: for each, the epoch that it waits for, and its request.
    flushes: VecDeque<(u64, usize)>,
    /// Number of unfinished frames of each epoch from [`Self::first_epoch`] on; the last epoch is
    /// the current one.
    frames: VecDeque<u64>,
    first_epoch: u64,
    /// Fault of a write that was answered and then failed; the next flush reports it.
    owed: Option<Fault>,
}

impl Jobs {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Counts one more frame in the current epoch; returns the epoch.
    pub(super) fn enter_epoch(&mut self) -> u64 {
        if self.frames.is_empty() {
            self.frames.push_back(0);
        }
        if let Some(count) = self.frames.back_mut() {
            *count += 1;
        }
        self.first_epoch + self.frames.len() as u64 - 1
    }

    pub(super) fn record_fault(&mut self, fault: Fault) {
        self.owed = Some(fault);
    }
}

/// Maximum bytes of answers that are assembled at one time.
const MOST_GATHERED_BYTES: usize = 64 << 20;
/// Maximum number of requests in progress.
const MOST_JOBS: usize = 8192;
/// Maximum number of buffers kept for reuse, each of at most [`SPARE_BYTES`].
const MOST_SPARE: usize = 256;
const SPARE_BYTES: usize = 16 + (128 << 10);

impl Device {
    /// Returns true if another request may begin.
    #[must_use]
    pub fn takes_requests(&self) -> bool {
        self.jobs.jobs.len() < MOST_JOBS && self.jobs.gathered_bytes < MOST_GATHERED_BYTES
    }

    /// Begins a request; its parts follow. The answer will have `read_bytes` of data.
    pub fn begin(&mut self, client: u64, cookie: u64, read_bytes: usize) -> usize {
        let mut reply = self.jobs.spare.pop().unwrap_or_default();
        reply.clear();
        reply.extend(SimpleReply { error: 0, cookie }.encode());
        reply.resize(SimpleReply::BYTES + read_bytes, 0);
        self.jobs.gathered_bytes += reply.len();
        self.jobs.jobs.insert(Job {
            client,
            cookie,
            left: 1,
            fault: None,
            reply,
        })
    }

    /// Ends the splitting of a request: the device has received all its parts.
    pub fn end(&mut self, job: usize) {
        self.part_done(job);
    }

    /// Marks a request as failed.
    pub fn fail(&mut self, job: usize, fault: Fault) {
        if let Some(job) = self.jobs.jobs.get_mut(job) {
            job.fault.get_or_insert(fault);
        }
    }

    /// Completes the request `job`, a flush, once all earlier writes have reached their places.
    pub fn flush(&mut self, job: usize) {
        if let Some(fault) = self.jobs.owed.take() {
            self.fail(job, fault);
        }
        if self.jobs.frames.is_empty() {
            return;
        }
        self.part_begins(job);
        let epoch = self.jobs.first_epoch + self.jobs.frames.len() as u64 - 1;
        self.jobs.flushes.push_back((epoch, job));
        self.jobs.frames.push_back(0);
    }

    /// Removes a finished frame from the count of its epoch, and completes the flushes that waited only for
    /// it.
    pub(super) fn leave_epoch(&mut self, epoch: u64) {
        let at = epoch
            .checked_sub(self.jobs.first_epoch)
            .map(|at| at as usize);
        if let Some(count) = at.and_then(|at| self.jobs.frames.get_mut(at)) {
            *count = count.saturating_sub(1);
        }
        while self.jobs.frames.front() == Some(&0) {
            self.jobs.frames.pop_front();
            self.jobs.first_epoch += 1;
        }
        while let Some((epoch, job)) = self.jobs.flushes.front().copied()
            && (epoch < self.jobs.first_epoch || self.jobs.frames.is_empty())
        {
            self.jobs.flushes.pop_front();
            if let Some(fault) = self.jobs.owed.take() {
                self.fail(job, fault);
            }
            self.part_done(job);
        }
    }

    pub(super) fn part_begins(&mut self, job: usize) {
        if let Some(job) = self.jobs.jobs.get_mut(job) {
            job.left += 1;
        }
    }

    /// Returns the part of the answer into which read bytes go.
    pub(super) fn reply(&mut self, job: usize, at: usize, len: usize) -> Option<&mut [u8]> {
        let job = self.jobs.jobs.get_mut(job)?;
        job.reply.get_mut(SimpleReply::BYTES + at..)?.get_mut(..len)
    }

    pub(super) fn part_failed(&mut self, job: usize, fault: Fault) {
        self.fail(job, fault);
        self.part_done(job);
    }

    pub(super) fn part_done(&mut self, job: usize) {
        let Some(there) = self.jobs.jobs.get_mut(job) else {
            return;
        };
        there.left -= 1;
        if there.left > 0 {
            return;
        }
        let mut done = self.jobs.jobs.remove(job);
        let room_bytes = done.reply.len();
        if let Some(fault) = done.fault {
            self.counters.failed_requests_count += 1;
            let error = fault.number();
            let cookie = done.cookie;
            done.reply.clear();
            done.reply.extend(SimpleReply { error, cookie }.encode());
        }
        self.actions.push_back(Action::Answer(Answer {
            client: done.client,
            bytes: done.reply,
            room_bytes,
        }));
    }

    /// Takes back the buffer of an answer that was sent.
    pub fn recycle(&mut self, answer: Answer) {
        self.jobs.gathered_bytes -= answer.room_bytes;
        let buffer = answer.bytes;
        if self.jobs.spare.len() < MOST_SPARE && buffer.capacity() <= SPARE_BYTES {
            self.jobs.spare.push(buffer);
        }
    }
}
