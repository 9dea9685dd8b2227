//! Servers that are added, lost and abandoned.

use super::complete::Kind as Completion;
use super::{Action, Device, Distrust, Op, Purpose};
use crate::device::servers::LeaseState;
use crate::device::table::Place;
use crate::nbd::wire::Fault;

/// Number of corrupt pages after which a server is emptied and abandoned.
const MOST_CORRUPT: u64 = 8;

impl Device {
    /// Adds a lease of `slots` pages, not connected yet. Returns `None` if no server number is left.
    pub fn add_server(&mut self, host: &str, slots: u32) -> Option<u8> {
        let now_ms = self.now_ms();
        self.servers.add(host.to_owned(), slots, now_ms)
    }

    /// Handles the connection of a server that still has its contents.
    pub fn server_up(&mut self, number: u8) {
        let now_us = self.now_us;
        let Some(server) = self.servers.get_mut(number) else {
            return;
        };
        if server.state != LeaseState::Down {
            return;
        }
        server.state = match server.is_leaving {
            true => LeaseState::Draining,
            false => LeaseState::Up,
        };
        server.up_since_us = now_us;
        let stranded = std::mem::take(&mut server.stranded);
        self.turn(stranded);
        self.unpark();
        self.sweep.begin();
    }

    /// Handles the end of a server's connection; the server may be connected again.
    pub fn server_down(&mut self, number: u8) {
        self.leave_server(number, LeaseState::Down);
    }

    /// Handles the loss of a server's contents: the lease has ended.
    pub fn server_gone(&mut self, number: u8) {
        self.leave_server(number, LeaseState::Gone);
    }

    /// Begins to empty a lease that ends soon: its pages are moved as the settings say, and then
    /// [`Action::Release`] follows.
    pub fn drain(&mut self, number: u8) {
        if let Some(server) = self.servers.get_mut(number)
            && !server.is_leaving
        {
            server.is_leaving = true;
            if server.state == LeaseState::Up {
                server.state = LeaseState::Draining;
            }
            self.sweep.begin();
        }
    }

    fn leave_server(&mut self, number: u8, state: LeaseState) {
        let now_ms = self.now_ms();
        let Some(server) = self.servers.get_mut(number) else {
            return;
        };
        if server.state == LeaseState::Gone || server.state == state {
            return;
        }
        if server.state != LeaseState::Down {
            server.down_since_ms = now_ms;
            server.counters.disconnects_count += 1;
            self.counters.disconnects_count += 1;
        }
        server.state = state;
        server.in_flight = 0;
        server.backlog.clear();
        let stranded = std::mem::take(&mut server.stranded);
        self.servers.disconnected(number);
        let is_its = |timed: &super::TimedRequest| timed.server == Some(number);
        let under_way: Vec<usize> = self
            .ops
            .iter()
            .filter(|(_, timed)| is_its(timed))
            .map(|(key, _)| key)
            .collect();
        for key in under_way {
            if let Some(timed) = self.ops.try_remove(key) {
                self.finish_unanswered(timed.op, timed.sent_us.is_some());
            }
        }
        self.turn(stranded);
        if state == LeaseState::Gone {
            self.sweep.begin();
            self.unpark();
        }
    }

    /// Handles a request that its server will not answer.
    fn finish_unanswered(&mut self, op: Op, was_sent: bool) {
        match op {
            Op::Read { .. } => self.missed(op),
            Op::Write { .. } => self.copy_failed(op, was_sent),
        }
    }

    /// Retries reads that waited for a server.
    fn turn(&mut self, stranded: Vec<Purpose>) {
        for purpose in stranded {
            match purpose {
                Purpose::Answer(part) => self.read_part(part),
                Purpose::Fill(frame) => {
                    let page = self.frames.get(frame).page;
                    self.fetch(purpose, page, 0);
                }
            }
        }
    }

    fn unpark(&mut self) {
        for frame in std::mem::take(&mut self.parked) {
            self.place(frame);
        }
    }

    /// Handles an error that a server has sent as its answer.
    pub fn server_failed(&mut self, server: u8, op: u64, fault: Fault) {
        let Some(op) = self.answered(Some(server), op, Completion::Error) else {
            return;
        };
        let (Op::Read {
            from: Some(place), ..
        }
        | Op::Write { place, .. }) = op
        else {
            return;
        };
        let Some((number, _)) = place.at() else {
            return;
        };
        if let Some(server) = self.servers.get_mut(number) {
            server.counters.failed_requests_count += 1;
            if matches!(fault, Fault::NoSpace | Fault::NoMemory) {
                server.is_full();
            }
        }
        // The host is reclaiming its memory, the oldest pages first.
        if fault == Fault::Shutdown {
            self.forget_read(op);
            self.drain(number);
        }
        self.finish_unanswered(op, true);
    }

    fn forget_read(&mut self, op: Op) {
        if let Op::Read {
            page,
            version,
            from,
            ..
        } = op
            && self.table.get(page).version() == version
        {
            self.forget_place(page, from);
        }
    }

    pub(super) fn distrust(&mut self, number: u8) {
        if let Some(server) = self.servers.get_mut(number) {
            server.counters.corrupt_pages_count += 1;
            if server.counters.corrupt_pages_count == MOST_CORRUPT {
                let host = server.host.clone();
                self.note(format!(
                    "host {host} changed {MOST_CORRUPT} pages: its memory or its network is broken, and it is left"
                ));
                self.drain(number);
            }
        }
    }

    /// Ends operations that timed out, and continues the background work. Call it a few times a second.
    pub fn tick(&mut self) {
        for number in self.silent() {
            self.actions
                .push_back(Action::Disconnect(number, Distrust::Silent));
            self.server_down(number);
        }
        let too_old_ms = self.now_ms() - self.settings.request_timeout_ms;
        let numbers: Vec<u8> = self.servers.iter().map(|(number, _)| number).collect();
        for number in numbers {
            if let Some(server) = self.servers.get_mut(number)
                && server.state == LeaseState::Down
                && server.down_since_ms <= too_old_ms
            {
                let stranded = std::mem::take(&mut server.stranded);
                self.turn(stranded);
            }
        }
        self.servers.reclaim(self.now_us);
        self.unpark();
        self.sweep_step();
    }

    /// Returns the servers to disconnect: those with a pending request that have answered nothing for too
    /// long. A server that answers other requests first is only slow, and its window shrinks. But a server is
    /// returned, too, if it has skipped a request for longer than a server may be unreachable.
    fn silent(&self) -> Vec<u8> {
        let too_old_us = self.now_us - self.settings.answer_timeout_ms * 1000;
        let left_out_us = self.now_us - self.settings.request_timeout_ms * 1000;
        let is_overdue = |sent_us: i64, number: u8| {
            self.servers.get(number).is_some_and(|server| {
                sent_us < too_old_us && server.heard_us < too_old_us
                    || sent_us < left_out_us && sent_us < server.answered_sent_us
            })
        };
        let mut silent: Vec<u8> = self
            .ops
            .iter()
            .filter_map(|(_, timed)| Some((timed.sent_us?, timed.server?)))
            .filter(|(sent_us, number)| is_overdue(*sent_us, *number))
            .map(|(_, number)| number)
            .collect();
        silent.sort_unstable();
        silent.dedup();
        silent
    }

    /// Returns true if the page has too few copies at servers, and another server could take one.
    pub(super) fn is_wanted_at_servers(&self, page: u32) -> bool {
        let entry = self.table.get(page);
        let has = entry
            .places
            .iter()
            .filter(|place| {
                matches!(
                    self.servers.state(**place),
                    LeaseState::Up | LeaseState::Down
                )
            })
            .count();
        has < self.settings.copies
            && self.room() > 0
            && self.frames.first_of(page).is_none()
            && (self.settings.has_disk || self.has_free_slot(&entry.places))
            && self
                .servers
                .iter()
                .any(|(_, server)| server.state == LeaseState::Up)
    }

    pub(super) fn has_free_slot(&self, not_at: &[Place]) -> bool {
        self.servers.has_free(not_at)
    }
}
