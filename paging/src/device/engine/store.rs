//! Writing: into a frame, and from there to every place that is to have it.

use super::complete::Kind as Completion;
use super::{Action, Device, Op};
use crate::device::frames::{Contents, Kind, PAGE};
use crate::device::servers::LeaseState;
use crate::device::table::{COPIES, Entry, Place};
use crate::nbd::wire::Fault;

/// Number of other servers tried for one frame.
const MOST_DETOURS: u8 = 4;
/// Number of pages examined to find one that can leave.
const MOST_LOOKED_AT: usize = 64;

impl Device {
    /// Writes to a page from `from` on. The caller has seen to it that there is [`Self::room`].
    ///
    /// Answered as soon as it is in a frame where a disk takes it for sure, and where it has its copies otherwise, or when
    /// `is_durable` is asked for.
    pub fn write(&mut self, job: usize, page: u32, from: usize, bytes: &[u8], is_durable: bool) {
        self.totals.written += 1;
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

    /// A frame gets its version, and becomes what servers may see.
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

    /// Takes the remainder of a frame from the one before if that is complete; otherwise it is fetched later.
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

    /// A frame is the first of its page.
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

    /// Continues with the former contents of the page, as they were written; `None`: it was empty.
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

    /// A frame cannot get its contents.
    pub(super) fn spoil(&mut self, number: u32) {
        self.told(number, Some(Fault::Io));
        self.leave(number);
    }

    /// Reads that waited for some frame.
    fn wake(&mut self) {
        for purpose in std::mem::take(&mut self.waiting) {
            match purpose {
                super::Purpose::Answer(part) => self.read_part(part),
                super::Purpose::Fill(_) => {}
            }
        }
    }

    /// Sends a frame to where it belongs.
    pub(super) fn place(&mut self, number: u32) {
        let frame = self.frames.get(number);
        let (page, kind) = (frame.page, frame.kind);
        let entry = self.table.get(page);
        let mut places = entry.places;
        let mut is_new = [false; COPIES];
        for copy in 0..self.settings.copies {
            let standing = self.servers.standing(places[copy]);
            let is_kept = match kind {
                Kind::Copy => matches!(standing, LeaseState::Up | LeaseState::Down),
                _ => standing == LeaseState::Up,
            };
            if is_kept {
                is_new[copy] = kind != Kind::Copy;
                continue;
            }
            let mut others = places;
            others[copy] = Place::NONE;
            let may_evict = kind == Kind::Write || !self.sweep.is_moving(number);
            let is_for_servers = kind == Kind::Write || self.goes_to_servers(entry);
            let taken = is_for_servers.then(|| self.take(&others, page, may_evict));
            match taken.flatten() {
                Some(place) => (places[copy], is_new[copy]) = (place, true),
                // A copied page stays at its place as long as it has no other.
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
            // Nobody reads it before the frame is done, and the vacated slot no longer belongs to this page.
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

    /// A write that has no place at all waits for a server that may come back.
    fn may_find_room(&self) -> bool {
        let too_old_ms = self.now_ms() - self.settings.give_up_after_ms;
        !self.settings.has_disk
            && self.servers.iter().any(|(_, server)| {
                server.standing == LeaseState::Down && server.down_since_ms > too_old_ms
            })
    }

    fn send_copy(&mut self, frame: u32, copy: usize, place: Place) {
        if let Some((server, _)) = place.at() {
            let copy = Some(copy);
            self.send(server, Op::Write { frame, copy, place });
        }
    }

    /// Room for a page at a server, on none of those hosts.
    fn take(&mut self, not_at: &[Place], page: u32, may_evict: bool) -> Option<Place> {
        if let Some(place) = self.servers.take(not_at) {
            return Some(place);
        }
        if !self.settings.has_disk || !may_evict {
            return None;
        }
        for _ in 0..2 {
            let may_leave = |cold| {
                let entry = self.table.get(cold);
                let is_up = |place: &Place| self.servers.standing(*place) == LeaseState::Up;
                cold != page
                    && entry.is_on_disk()
                    && entry.places.iter().any(is_up)
                    && self.frames.first_of(cold).is_none()
            };
            let cold = self.order.evict(MOST_LOOKED_AT, may_leave)?;
            self.evicted(cold);
            if let Some(place) = self.servers.take(not_at) {
                return Some(place);
            }
        }
        None
    }

    /// Leaves a page on disk alone, which is out of the order already.
    fn evicted(&mut self, page: u32) {
        let mut entry = self.table.get(page);
        for place in std::mem::replace(&mut entry.places, [Place::NONE; COPIES]) {
            self.servers.free(place);
        }
        self.table.set(page, entry);
        self.totals.evicted += 1;
    }

    /// A server's answer to [`Action::Write`]: the page is stored there.
    pub fn server_wrote(&mut self, server: u8, op: u64) {
        let Some(Op::Write { frame, place, .. }) =
            self.answered(Some(server), op, Completion::Write)
        else {
            return;
        };
        if let Some((server, _)) = place.at()
            && let Some(server) = self.servers.get_mut(server)
        {
            server.counters.writes += 1;
        }
        self.copied(frame);
    }

    /// The disk's answer to [`Action::DiskWrite`].
    pub fn disk_wrote(&mut self, op: u64, is_written: bool) {
        let Some(Op::Write { frame, .. }) = self.answered(None, op, Completion::Write) else {
            return;
        };
        self.frames.get_mut(frame).is_on_disk = is_written;
        if !is_written {
            self.totals.disk_failed += 1;
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

    /// A copy did not reach its place: tries another place.
    ///
    /// If it was never sent, its slot can be used for other pages.
    pub(super) fn copy_failed(&mut self, op: Op, was_sent: bool) {
        let Op::Write {
            frame: number,
            copy: Some(copy),
            place,
        } = op
        else {
            return;
        };
        self.totals.retried += 1;
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

    /// All places have answered.
    fn complete(&mut self, number: u32) {
        let frame = self.frames.get(number);
        let (page, kind) = (frame.page, frame.kind);
        let places = frame
            .places
            .map(|place| match self.servers.standing(place) {
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
                self.totals.moved += 1;
                self.leaves_place(page);
            }
            _ if is_kept => {
                self.stored_pages += u32::from(before.is_zero());
                self.table.set(page, stored);
                if self.is_short(&stored) {
                    self.sweep.found_short();
                }
                self.told(number, None);
            }
            _ if self.may_find_room() => {
                // No place that it was to have is this page's any more.
                let nowhere = Entry::new(before.version(), before.tag, places, false);
                self.table.set(page, nowhere);
                self.parked.push(number);
                return;
            }
            _ => {
                if !before.is_zero() {
                    // The former contents may be overwritten in part, and must not be read as valid.
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
            // A page that only moves does not count as used.
            true if kind == Kind::Copy => {}
            true => self.order.used(page),
            false => self.order.leave(page),
        }
        self.leave(number);
    }

    /// Answers the client that waits for a frame; without one, the next flush reports the fault.
    fn told(&mut self, number: u32, fault: Option<Fault>) {
        let kind = self.frames.get(number).kind;
        match (self.frames.get_mut(number).job.take(), fault) {
            (Some(job), None) => self.part_done(job),
            (Some(job), Some(fault)) => self.part_failed(job, fault),
            (None, Some(fault)) if kind == Kind::Write => self.jobs.owe(fault),
            (None, _) => {}
        }
    }

    /// A frame is done with.
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

    /// Keeps the order true to where a page is.
    pub(super) fn settle_order(&mut self, page: u32) {
        if !self.table.get(page).has_place() {
            self.order.leave(page);
        }
    }
}
