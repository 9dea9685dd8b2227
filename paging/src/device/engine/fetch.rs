//! Reads pages: from a frame that is being written, or else from a server, from another server, or from disk.

use super::complete::Kind as Completion;
use super::{Action, Device, Op};
use crate::device::frames::{Contents, Kind, PAGE, PageBytes};
use crate::device::purpose::{Part, Purpose};
use crate::device::servers::LeaseState;
use crate::device::table::{COPIES, Entry, Place};
use crate::nbd::wire::Fault;
use std::sync::Arc;

/// Bit that stands for the disk in a set of tried places.
const DISK: u8 = 1 << COPIES;

impl Device {
    /// Reads `len` bytes of a page, from offset `from` on, and puts them into the answer, from offset `at`
    /// on.
    pub fn read(&mut self, job: usize, page: u32, from: usize, len: usize, at: usize) {
        self.counters.reads_count += 1;
        self.part_begins(job);
        self.read_part(Part {
            job,
            page,
            from,
            len,
            at,
        });
    }

    pub(super) fn read_part(&mut self, part: Part) {
        let Some(last) = self.frames.last_of(part.page) else {
            return self.fetch(Purpose::Answer(part), part.page, 0);
        };
        let frame = self.frames.get(last);
        match (frame.kind, frame.contents) {
            (Kind::Zero, _) => self.part_done(part.job),
            (_, Contents::Ready) => {
                let mut bytes = [0; PAGE];
                match self.opened(last, &mut bytes) {
                    true => {
                        self.counters.buffer_reads_count += 1;
                        self.answer_part(part, &bytes);
                    }
                    false => self.part_failed(part.job, Fault::Io),
                }
            }
            _ => self.waiting.push_back(Purpose::Answer(part)),
        }
    }

    /// Decrypts a frame's contents into `into`; returns false if that fails.
    pub(super) fn opened(&self, number: u32, into: &mut [u8; PAGE]) -> bool {
        let frame = self.frames.get(number);
        let Some(bytes) = self.frames.bytes(number) else {
            return false;
        };
        into.copy_from_slice(bytes);
        self.seal.open(frame.page, frame.version, &frame.tag, into)
    }

    fn answer_part(&mut self, part: Part, bytes: &[u8; PAGE]) {
        if let Some(reply) = self.reply(part.job, part.at, part.len) {
            reply.copy_from_slice(&bytes[part.from..part.from + part.len]);
        }
        self.part_done(part.job);
    }

    /// Reads a page that no frame holds, from a place not in `tried` yet.
    pub(super) fn fetch(&mut self, purpose: Purpose, page: u32, tried: u8) {
        let entry = self.table.get(page);
        if entry.is_zero() {
            self.counters.zero_reads_count += 1;
            return match purpose {
                Purpose::Answer(part) => self.part_done(part.job),
                Purpose::Fill(frame) => self.fill(frame, None),
            };
        }
        let read = |from| Op::Read {
            purpose,
            page,
            version: entry.version(),
            tag: entry.tag,
            tried,
            from,
        };
        for (copy, place) in entry.places.into_iter().enumerate() {
            let is_there = matches!(
                self.servers.state(place),
                LeaseState::Up | LeaseState::Draining
            );
            if is_there
                && tried & 1 << copy == 0
                && let Some((server, _)) = place.at()
            {
                // A page that is moved does not count as used. A page that is partly written counts when the
                // whole page is written.
                if matches!(purpose, Purpose::Answer(_)) {
                    self.order.used(page);
                }
                return self.send(server, read(Some(place)));
            }
        }
        if entry.is_on_disk() && tried & DISK == 0 {
            let op = self.insert_for_disk(read(None));
            return self.actions.push_back(Action::DiskRead {
                page,
                op,
                bytes: self.spare.pop().unwrap_or_default(),
            });
        }
        self.wait_for_only_copy(purpose, page, &entry);
    }

    /// Lets a read wait, up to a time limit, for a disconnected server that has the only copy. A page without
    /// any copy is lost.
    fn wait_for_only_copy(&mut self, purpose: Purpose, page: u32, entry: &Entry) {
        let (now_ms, timeout_ms) = (self.now_ms(), self.settings.request_timeout_ms);
        for place in entry.places {
            if self.servers.state(place) == LeaseState::Down
                && let Some((server, _)) = place.at()
                && let Some(server) = self.servers.get_mut(server)
                && now_ms - server.down_since_ms < timeout_ms
            {
                server.stranded.push(purpose);
                return;
            }
        }
        self.lost(purpose, page);
    }

    pub(super) fn lost(&mut self, purpose: Purpose, page: u32) {
        self.counters.lost_pages_count += 1;
        self.note(format!(
            "page {page} cannot be read: no server and no disk has its contents any more"
        ));
        match purpose {
            Purpose::Answer(part) => self.part_failed(part.job, Fault::Io),
            Purpose::Fill(frame) => self.spoil(frame),
        }
    }

    /// Handles a server's answer to [`Action::Read`]: the page as it was sent, decrypted in place.
    pub fn server_read(&mut self, server: u8, op: u64, bytes: &mut [u8; PAGE]) {
        if let Some(op) = self.answered(Some(server), op, Completion::Read) {
            self.page_arrived(op, bytes);
        }
    }

    /// Handles the disk's answer to [`Action::DiskRead`].
    pub fn disk_read(&mut self, op: u64, mut bytes: Arc<PageBytes>, is_read: bool) {
        if let Some(op) = self.answered(None, op, Completion::Read) {
            if is_read {
                self.page_arrived(op, &mut Arc::make_mut(&mut bytes).0);
            } else {
                self.missed(op);
            }
        }
        if self.spare.len() < self.settings.frames as usize {
            self.spare.push(bytes);
        }
    }

    fn page_arrived(&mut self, op: Op, bytes: &mut [u8; PAGE]) {
        let Op::Read {
            purpose,
            page,
            version,
            tag,
            from,
            ..
        } = op
        else {
            return;
        };
        let counters = from
            .and_then(Place::at)
            .and_then(|(server, _)| self.servers.get_mut(server))
            .map(|server| &mut server.counters);
        match (purpose, counters) {
            (_, Some(counters)) => {
                counters.reads_count += 1;
                self.counters.server_reads_count += 1;
            }
            (_, None) => self.counters.disk_reads_count += 1,
        }
        if self.table.get(page).version() != version {
            // The place may hold another page by now, since slots are reused.
            return self.again(purpose, page, 0);
        }
        match purpose {
            Purpose::Answer(part) => {
                // If servers lack copies of the page, write them while its contents are in memory.
                let copy = self.is_wanted_at_servers(page).then(|| {
                    let frame = self.frames.queue(page, Kind::Copy, Contents::Ready)?;
                    *self.frames.bytes_mut(frame) = *bytes;
                    let there = self.frames.get_mut(frame);
                    (there.version, there.tag) = (version, tag);
                    Some(frame)
                });
                let is_right = self.seal.open(page, version, &tag, bytes);
                match (copy.flatten(), is_right) {
                    (Some(frame), true) => self.starting.push_back(frame),
                    (Some(frame), false) => {
                        self.frames.leave(frame);
                    }
                    _ => {}
                }
                match is_right {
                    true => self.answer_part(part, bytes),
                    false => self.corrupt(op),
                }
            }
            Purpose::Fill(frame) => {
                if self.frames.get(frame).kind == Kind::Copy {
                    *self.frames.bytes_mut(frame) = *bytes;
                }
                match self.seal.open(page, version, &tag, bytes) {
                    true => self.fill(frame, Some(bytes)),
                    false => self.corrupt(op),
                }
            }
        }
    }

    fn again(&mut self, purpose: Purpose, page: u32, tried: u8) {
        match purpose {
            Purpose::Answer(part) if tried == 0 || self.frames.last_of(page).is_some() => {
                self.read_part(part);
            }
            _ => self.fetch(purpose, page, tried),
        }
    }

    /// Handles bytes that differ from those sent: the bytes are dropped, and this place is not read again.
    fn corrupt(&mut self, op: Op) {
        let Op::Read { page, from, .. } = op else {
            return;
        };
        self.counters.corrupt_pages_count += 1;
        let from_where = match from.and_then(Place::at) {
            Some((server, _)) => {
                self.distrust(server);
                let host = self.servers.get(server).map(|server| &*server.host);
                format!("host {}", host.unwrap_or_default())
            }
            None => "the disk".to_owned(),
        };
        self.note(format!(
            "page {page} came back from {from_where} as other bytes than were stored"
        ));
        self.forget_place(page, from);
        self.missed(op);
    }

    /// Removes a place from the page's entry, since the page is not there.
    pub(super) fn forget_place(&mut self, page: u32, from: Option<Place>) {
        let mut entry = self.table.get(page);
        match from {
            None => entry.set_on_disk(false),
            Some(place) => {
                for there in &mut entry.places {
                    if *there == place {
                        *there = Place::NONE;
                        self.servers.abandon(place);
                    }
                }
            }
        }
        self.table.set(page, entry);
        self.settle_order(page);
    }

    /// Tries another place after a failed read.
    pub(super) fn missed(&mut self, op: Op) {
        let Op::Read {
            purpose,
            page,
            version,
            tried,
            from,
            ..
        } = op
        else {
            return;
        };
        self.counters.retried_requests_count += 1;
        let entry = self.table.get(page);
        if entry.version() != version {
            return self.again(purpose, page, 0);
        }
        let bit = match from {
            None => DISK,
            Some(place) => {
                let copy = entry.places.iter().position(|there| *there == place);
                copy.map_or(0, |copy| 1 << copy)
            }
        };
        self.again(purpose, page, tried | bit);
    }
}
