//! Writes pages: into a frame, and from the frame to each of the page's places.

use super::complete::Kind as Completion;
use super::{Action, Device, Op};
use crate::device::frames::{Contents, Kind, PAGE};
use crate::device::servers::LeaseState;
use crate::device::table::{COPIES, Entry, Place};
use crate::nbd::wire::Fault;

/// Maximum number of other servers tried for one frame.
const MOST_DETOURS: u8 = 4;
/// Maximum number of pages examined to find one to evict.
const MOST_LOOKED_AT: usize = 64;

impl Device {
    /// Writes `bytes` to a page, from offset `from` on. The caller has checked [`Self::room`].
    ///
    /// With a disk, a write that is not `is_durable` is answered as soon as its bytes are in a frame. Any
    /// other write is answered once it is stored at its places.
    pub fn write(&mut self, job: usize, page: u32, from: usize, bytes: &[u8], is_durable: bool) {
        self.counters.writes_count += 1;
        let is_whole = bytes.len() == PAGE;
        let before = self.frames.last_of(page);
        let contents = match is_whole {
            true => Contents::Ready,
            false => Contents::Part {
                from,
                until: from + bytes.len(),
            },
        };
        let Some(number) = self.frames.queue(page, Kind::Write, contents) else {
            return self.fail(job, Fault::NoMemory);
        };
        self.frames.bytes_mut(number)[from..from + bytes.len()].copy_from_slice(bytes);
        let epoch = self.jobs.enter_epoch();
        let frame = self.frames.get_mut(number);
        frame.epoch = epoch;
        if is_durable || !self.settings.has_disk {
            frame.job = Some(job);
            self.part_begins(job);
        }
        if is_whole {
            self.close(number);
        } else {
            self.complement(number, before);
        }
        if before.is_none() {
            self.starting.push_back(number);
        }
    }

    /// Empties a page. The caller has checked [`Self::room`].
    pub fn zero(&mut self, page: u32) {
        if self.frames.last_of(page).is_none() {
            return self.clear(page);
        }
        if let Some(number) = self.frames.queue(page, Kind::Zero, Contents::Ready) {
            let epoch = self.jobs.enter_epoch();
            self.frames.get_mut(number).epoch = epoch;
        }
    }

    fn clear(&mut self, page: u32) {
        let entry = self.table.get(page);
        if entry.is_zero() {
            return;
        }
        for place in entry.places {
            self.servers.free(place);
        }
        self.table.set(page, Entry::ZERO);
        self.order.leave(page);
        self.stored_pages -= 1;
    }

    /// Gives a frame its version, and encrypts it for servers.
    fn close(&mut self, number: u32) {
        self.version += 1;
        let (page, version) = (self.frames.get(number).page, self.version);
        let tag = self
            .seal
            .close(page, version, self.frames.bytes_mut(number));
        let frame = self.frames.get_mut(number);
        frame.version = version;
        frame.tag = tag.unwrap_or_default(); // a page is never too long
        frame.contents = Contents::Ready;
    }

    /// Fills the remainder of a frame from the preceding frame of the same page, if that frame is complete.
    /// Otherwise the remainder is fetched later.
    fn complement(&mut self, number: u32, before: Option<u32>) {
        let Some(before) = before else {
            return;
        };
        let mut rest = [0; PAGE];
        let frame = self.frames.get(before);
        let is_there = match (frame.kind, frame.contents) {
            (Kind::Zero, _) => true,
            (_, Contents::Ready) => self.opened(before, &mut rest),
            _ => false,
        };
        if is_there {
            self.merge(number, &rest);
        }
    }

    fn merge(&mut self, number: u32, rest: &[u8; PAGE]) {
        if let Contents::Part { from, until } = self.frames.get(number).contents {
            let bytes = self.frames.bytes_mut(number);
            bytes[..from].copy_from_slice(&rest[..from]);
            bytes[until..].copy_from_slice(&rest[until..]);
        }
        self.close(number);
    }

    /// Starts a frame that is at the head of its page's queue.
    pub(super) fn start(&mut self, number: u32) {
        let frame = self.frames.get(number);
        let (page, kind, contents) = (frame.page, frame.kind, frame.contents);
        match (kind, contents) {
            (Kind::Zero, _) => {
                self.clear(page);
                self.leave(number);
            }
            (_, Contents::Ready) => self.place(number),
            _ => self.fetch(super::Purpose::Fill(number), page, 0),
        }
    }

    /// Continues a frame once the page's former contents are known. `before` has them decrypted; `None`: the
    /// page was empty.
    pub(super) fn fill(&mut self, number: u32, before: Option<&[u8; PAGE]>) {
        match (self.frames.get(number).kind, before) {
            (Kind::Copy, Some(_)) => {
                let page = self.frames.get(number).page;
                let entry = self.table.get(page);
                let frame = self.frames.get_mut(number);
                (frame.version, frame.tag) = (entry.version(), entry.tag);
                frame.contents = Contents::Ready;
            }
            (Kind::Copy, None) => return self.spoil(number),
            (_, before) => self.merge(number, before.unwrap_or(&[0; PAGE])),
        }
        self.wake();
        self.place(number);
    }

    /// Handles a frame whose former contents cannot be read.
    pub(super) fn spoil(&mut self, number: u32) {
        self.told(number, Some(Fault::Io));
        self.leave(number);
    }

    /// Retries reads that waited for a frame.
    fn wake(&mut self) {
        for purpose in std::mem::take(&mut self.waiting) {
            match purpose {
                super::Purpose::Answer(part) => self.read_part(part),
                super::Purpose::Fill(_) => {}
            }
        }
    }

    /// Sends a frame to its places.
    pub(super) fn place(&mut self, number: u32) {
        let frame = self.frames.get(number);
        let (page, kind) = (frame.page, frame.kind);
        let entry = self.table.get(page);
        let mut places = entry.places;
        let mut is_new = [false; COPIES];
        for copy in 0..self.settings.copies {
            let state = self.servers.state(places[copy]);
            let is_kept = match kind {
                Kind::Copy => matches!(state, LeaseState::Up | LeaseState::Down),
                _ => state == LeaseState::Up,
            };
            if is_kept {
                is_new[copy] = kind != Kind::Copy;
                continue;
            }
            let mut others = places;
            others[copy] = Place::NONE;
            let may_evict = kind == Kind::Write || !self.sweep.is_moving(number);
            let is_for_servers = kind == Kind::Write || self.moves_to_servers(entry);
            let taken = is_for_servers.then(|| self.take(&others, page, may_evict));
            match taken.flatten() {
                Some(place) => (places[copy], is_new[copy]) = (place, true),
                // A page that is only copied keeps its former place if there is no other.
                None if kind == Kind::Copy => {}
                None => places[copy] = Place::NONE,
            }
        }
        if kind != Kind::Copy {
            if places == [Place::NONE; COPIES] && self.may_find_room() {
                self.parked.push(number);
                return;
            }
            for (before, now) in entry.places.into_iter().zip(places) {
                if before != now {
                    self.servers.free(before);
                }
            }
            // The entry can change before the write is done: until then reads are answered from the frame,
            // and the former slot is free already.
            let on_its_way = Entry::new(entry.version(), entry.tag, places, entry.is_on_disk());
            self.table.set(page, on_its_way);
        }
        let to_disk = self.settings.has_disk && (kind == Kind::Write || !entry.is_on_disk());
        let frame = self.frames.get_mut(number);
        frame.places = places;
        frame.is_on_disk = entry.is_on_disk() && kind == Kind::Copy;
        frame.pending = is_new.iter().map(|new| u8::from(*new)).sum::<u8>() + u8::from(to_disk);
        if frame.pending == 0 {
            return self.complete(number);
        }
        for copy in 0..places.len() {
            if is_new[copy] {
                self.send_copy(number, copy, places[copy]);
            }
        }
        if to_disk && let Some(bytes) = self.frames.get(number).bytes.clone() {
            let op = Op::Write {
                frame: number,
                copy: None,
                place: Place::NONE,
            };
            let op = self.insert_for_disk(op);
            self.actions
                .push_back(Action::DiskWrite { page, op, bytes });
        }
    }

    /// Returns true if a write without any place should wait, since a server may be connected again.
    fn may_find_room(&self) -> bool {
        let too_old_ms = self.now_ms() - self.settings.request_timeout_ms;
        !self.settings.has_disk
            && self.servers.iter().any(|(_, server)| {
                server.state == LeaseState::Down && server.down_since_ms > too_old_ms
            })
    }

    fn send_copy(&mut self, frame: u32, copy: usize, place: Place) {
        if let Some((server, _)) = place.at() {
            let copy = Some(copy);
            self.send(server, Op::Write { frame, copy, place });
        }
    }

    /// Takes a slot for a page on a host other than those of `not_at`; evicts pages if necessary and allowed.
    fn take(&mut self, not_at: &[Place], page: u32, may_evict: bool) -> Option<Place> {
        if let Some(place) = self.servers.take(not_at, self.now_us) {
            return Some(place);
        }
        if !self.settings.has_disk || !may_evict {
            return None;
        }
        for _ in 0..2 {
            let may_leave = |cold| {
                let entry = self.table.get(cold);
                let is_up = |place: &Place| self.servers.state(*place) == LeaseState::Up;
                cold != page
                    && entry.is_on_disk()
                    && entry.places.iter().any(is_up)
                    && self.frames.first_of(cold).is_none()
            };
            let cold = self.order.evict(MOST_LOOKED_AT, may_leave)?;
            self.evicted(cold);
            if let Some(place) = self.servers.take(not_at, self.now_us) {
                return Some(place);
            }
        }
        None
    }

    /// Drops a page from servers, since it is on disk. The page is not in the eviction order any more.
    fn evicted(&mut self, page: u32) {
        let mut entry = self.table.get(page);
        for place in std::mem::replace(&mut entry.places, [Place::NONE; COPIES]) {
            self.servers.free(place);
        }
        self.table.set(page, entry);
        self.counters.evicted_pages_count += 1;
    }

    /// Handles a server's answer to [`Action::Write`]: the page is stored there.
    pub fn server_wrote(&mut self, server: u8, op: u64) {
        let Some(Op::Write { frame, place, .. }) =
            self.answered(Some(server), op, Completion::Write)
        else {
            return;
        };
        if let Some((server, _)) = place.at()
            && let Some(server) = self.servers.get_mut(server)
        {
            server.counters.writes_count += 1;
        }
        self.copied(frame);
    }

    /// Handles the disk's answer to [`Action::DiskWrite`].
    pub fn disk_wrote(&mut self, op: u64, is_written: bool) {
        let Some(Op::Write { frame, .. }) = self.answered(None, op, Completion::Write) else {
            return;
        };
        self.frames.get_mut(frame).is_on_disk = is_written;
        if !is_written {
            self.counters.failed_disk_writes_count += 1;
        }
        self.copied(frame);
    }

    fn copied(&mut self, number: u32) {
        let frame = self.frames.get_mut(number);
        frame.pending -= 1;
        if frame.pending == 0 {
            self.complete(number);
        }
    }

    /// Tries another place for a copy that was not stored at its place.
    ///
    /// If the copy was never sent, its slot can be used for other pages.
    pub(super) fn copy_failed(&mut self, op: Op, was_sent: bool) {
        let Op::Write {
            frame: number,
            copy: Some(copy),
            place,
        } = op
        else {
            return;
        };
        self.counters.retried_requests_count += 1;
        match was_sent {
            true => self.servers.abandon(place),
            false => self.servers.free(place),
        }
        let frame = self.frames.get_mut(number);
        frame.places[copy] = Place::NONE;
        frame.detours += 1;
        let (page, places, detours) = (frame.page, frame.places, frame.detours);
        let may_evict = frame.kind == Kind::Write;
        let other = match detours {
            ..=MOST_DETOURS => self.take(&places, page, may_evict),
            _ => None,
        };
        match other {
            Some(place) => {
                self.frames.get_mut(number).places[copy] = place;
                self.send_copy(number, copy, place);
            }
            None => self.copied(number),
        }
    }

    /// Finishes a frame after requests to all its places were answered.
    fn complete(&mut self, number: u32) {
        let frame = self.frames.get(number);
        let (page, kind) = (frame.page, frame.kind);
        let places = frame.places.map(|place| match self.servers.state(place) {
            LeaseState::Gone => Place::NONE,
            _ => place,
        });
        let stored = Entry::new(frame.version, frame.tag, places, frame.is_on_disk);
        let before = self.table.get(page);
        let is_kept = stored.has_place() || stored.is_on_disk();
        match kind {
            Kind::Copy => {
                for (before, now) in before.places.into_iter().zip(places) {
                    if before != now && now != Place::NONE {
                        self.servers.free(before);
                    }
                }
                let keep = |at: usize| match places[at] {
                    Place::NONE => before.places[at],
                    place => place,
                };
                let mut entry = stored;
                entry.places = [keep(0), keep(1)];
                self.table.set(page, entry);
                self.counters.moved_pages_count += 1;
                self.remove_leaving_copies(page);
            }
            _ if is_kept => {
                self.stored_pages += u32::from(before.is_zero());
                self.table.set(page, stored);
                if self.is_short(&stored) {
                    self.sweep.count_short_page();
                }
                self.told(number, None);
            }
            _ if self.may_find_room() => {
                // All places that were chosen for the page are free again.
                let nowhere = Entry::new(before.version(), before.tag, places, false);
                self.table.set(page, nowhere);
                self.parked.push(number);
                return;
            }
            _ => {
                if !before.is_zero() {
                    // A failed write may have overwritten part of the former contents, which must not be read as valid.
                    let nowhere = [Place::NONE; COPIES];
                    let lost = Entry::new(before.version(), before.tag, nowhere, false);
                    self.table.set(page, lost);
                }
                self.note(format!(
                    "page {page} could not be stored: no server has room for it"
                ));
                self.told(number, Some(Fault::NoSpace));
            }
        }
        match self.table.get(page).has_place() {
            true if !self.order.contains(page) => self.order.enter(page),
            // A page that was only moved does not count as used.
            true if kind == Kind::Copy => {}
            true => self.order.used(page),
            false => self.order.leave(page),
        }
        self.leave(number);
    }

    /// Reports the result to the client that waits for a frame. If no client waits, the next flush reports
    /// the fault.
    fn told(&mut self, number: u32, fault: Option<Fault>) {
        let kind = self.frames.get(number).kind;
        match (self.frames.get_mut(number).job.take(), fault) {
            (Some(job), None) => self.part_done(job),
            (Some(job), Some(fault)) => self.part_failed(job, fault),
            (None, Some(fault)) if kind == Kind::Write => self.jobs.record_fault(fault),
            (None, _) => {}
        }
    }

    /// Removes a finished frame.
    fn leave(&mut self, number: u32) {
        let frame = self.frames.get(number);
        let (kind, epoch) = (frame.kind, frame.epoch);
        self.sweep.moved(number);
        if let Some(next) = self.frames.leave(number) {
            self.starting.push_back(next);
        }
        if kind != Kind::Copy {
            self.leave_epoch(epoch);
        }
        if !self.waiting.is_empty() {
            self.wake();
        }
    }

    /// Removes the page from the eviction order if no server has it.
    pub(super) fn settle_order(&mut self, page: u32) {
        if !self.table.get(page).has_place() {
            self.order.leave(page);
        }
    }
}
