//! Background work: moves pages away from servers whose leases end, and restores lost copies.

use super::{Action, Device};
use crate::device::frames::{Contents, Kind};
use crate::device::servers::LeaseState;
use crate::device::table::{COPIES, Entry, Place};
use gleaner_policy::shutdown::OtherPlaces;
use std::collections::HashSet;

/// Maximum number of pages examined per tick.
const LOOKED_AT: u32 = 16 << 10;
/// Maximum number of pages being moved at one time.
const MOST_MOVING: usize = 64;
/// Time between two passes.
const PAUSE_MS: i64 = 1000;

/// State of the passes over all pages, which are repeated as long as there is a reason.
#[derive(Default)]
pub(super) struct Sweep {
    is_wanted: bool,
    at: u32,
    /// True if a page was skipped in this pass. It may still refer to a server that has ended, so that
    /// server's number cannot be reused yet.
    is_partial: bool,
    /// True if the last pass, or an event since then, showed that a page may have too few copies.
    is_short: bool,
    /// True if this pass found a page with too few copies.
    has_found: bool,
    not_before_ms: i64,
    moving: HashSet<u32>,
}

impl Sweep {
    /// Begins a pass from the first page.
    pub(super) fn begin(&mut self) {
        (self.is_wanted, self.at, self.is_partial) = (true, 0, false);
        (self.is_short, self.not_before_ms) = (true, 0);
    }

    /// Notes that a page has fewer copies than it should.
    pub(super) fn count_short_page(&mut self) {
        (self.is_wanted, self.is_short, self.has_found) = (true, true, true);
    }

    pub(super) fn moved(&mut self, frame: u32) {
        self.moving.remove(&frame);
    }

    pub(super) fn is_moving(&self, frame: u32) -> bool {
        self.moving.contains(&frame)
    }
}

impl Device {
    /// Returns true if each page at servers has its full number of copies, all at connected servers.
    #[must_use]
    pub fn has_all_copies(&self) -> bool {
        !self.sweep.is_short && self.unreachable_pages() == 0
    }

    /// Number of copies at servers that are not connected.
    #[must_use]
    pub fn unreachable_pages(&self) -> u32 {
        let down = self.servers.iter().map(|(_, server)| server);
        down.filter(|server| server.state == LeaseState::Down)
            .map(|server| server.used)
            .sum()
    }

    /// Returns true for a page at servers that has too few copies there.
    pub(super) fn is_short(&self, entry: &Entry) -> bool {
        let is_there = |place: &&Place| {
            matches!(
                self.servers.state(**place),
                LeaseState::Up | LeaseState::Down
            )
        };
        entry.has_place() && entry.places.iter().filter(is_there).count() < self.settings.copies
    }

    pub(super) fn sweep_step(&mut self) {
        if !self.sweep.is_wanted || self.now_ms() < self.sweep.not_before_ms {
            return;
        }
        for _ in 0..LOOKED_AT {
            if self.sweep.moving.len() >= MOST_MOVING || self.room() == 0 {
                return;
            }
            if self.sweep.at >= self.table.pages() {
                return self.end_pass();
            }
            let page = self.sweep.at;
            self.sweep.at += 1;
            self.look_at(page);
        }
    }

    fn look_at(&mut self, page: u32) {
        if self.frames.first_of(page).is_some() {
            self.sweep.is_partial = true;
            return;
        }
        let mut entry = self.table.get(page);
        if entry.is_zero() || !entry.has_place() && !entry.is_on_disk() {
            return;
        }
        for copy in 0..COPIES {
            if entry.places[copy] != Place::NONE
                && self.servers.state(entry.places[copy]) == LeaseState::Gone
            {
                entry.places[copy] = Place::NONE;
                self.table.set(page, entry);
                self.settle_order(page);
            }
        }
        self.remove_leaving_copies(page);
        let entry = self.table.get(page);
        if self.is_short(&entry) {
            self.sweep.count_short_page();
        }
        let is_leaving = |place: &Place| self.servers.state(*place) == LeaseState::Draining;
        let is_to_move =
            entry.places.iter().any(is_leaving) || self.has_too_few_copies(page, &entry);
        if !is_to_move {
            return;
        }
        let Some(frame) = self.frames.queue(page, Kind::Copy, Contents::Before) else {
            self.sweep.is_partial = true;
            return;
        };
        self.sweep.moving.insert(frame);
        self.starting.push_back(frame);
    }

    /// Returns true if the page lacks a copy. A page that is only on disk does not count: it returns to
    /// servers when it is read.
    fn has_too_few_copies(&self, page: u32, entry: &Entry) -> bool {
        (entry.has_place() || !entry.is_on_disk())
            && self.is_wanted_at_servers(page)
            && self.has_free_slot(&entry.places)
    }

    /// Returns true if a page is to be moved to other servers, and false if only to disk.
    pub(super) fn moves_to_servers(&self, entry: Entry) -> bool {
        let is_leaving = |place: &Place| self.servers.state(*place) == LeaseState::Draining;
        !(entry.places.iter().any(is_leaving)
            && self.settings.has_disk
            && self.settings.on_revocation.is_to_disk())
    }

    /// Removes copies at servers whose leases end, if another copy exists and the settings allow it.
    pub(super) fn remove_leaving_copies(&mut self, page: u32) {
        let mut entry = self.table.get(page);
        for copy in 0..COPIES {
            let place = entry.places[copy];
            if self.servers.state(place) != LeaseState::Draining {
                continue;
            }
            let other = entry.places[1 - copy];
            let other_places = OtherPlaces {
                has_replica: self.servers.state(other) == LeaseState::Up,
                is_on_disk: entry.is_on_disk(),
                has_room: self.has_free_slot(&entry.places),
            };
            if self.settings.on_revocation.may_drop(other_places) {
                self.servers.free(place);
                entry.places[copy] = Place::NONE;
            }
        }
        self.table.set(page, entry);
        self.settle_order(page);
    }

    /// Ends a pass.
    fn end_pass(&mut self) {
        let is_partial =
            std::mem::take(&mut self.sweep.is_partial) || !self.sweep.moving.is_empty();
        let numbers: Vec<(u8, LeaseState, u32)> = self
            .servers
            .iter()
            .map(|(number, server)| (number, server.state, server.used))
            .collect();
        self.sweep.at = 0;
        self.sweep.not_before_ms = self.now_ms() + PAUSE_MS;
        self.sweep.is_short =
            std::mem::take(&mut self.sweep.has_found) || !self.sweep.moving.is_empty();
        self.sweep.is_wanted = is_partial || self.sweep.is_short;
        for (number, state, used) in numbers {
            match state {
                LeaseState::Gone if !is_partial => self.servers.remove(number),
                LeaseState::Draining if used == 0 && !is_partial => {
                    self.server_gone(number);
                    self.actions.push_back(Action::Release(number));
                }
                LeaseState::Gone | LeaseState::Draining => self.sweep.is_wanted = true,
                LeaseState::Up | LeaseState::Down => {}
            }
        }
    }
}
