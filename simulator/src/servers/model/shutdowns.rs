//! Shutdowns: the pages of a server whose owner returns.

use super::{Model, Scheduled};
use crate::servers::PAGE_BYTES;
use crate::servers::outcome::OwnerReturn;
use crate::servers::pages::Home;
use gleaner_policy::shutdown::{Forwarding, OtherPlaces, PageMove, Shutdown};
use std::collections::VecDeque;

impl Model<'_> {
    /// An owner changes the room of a server.
    pub(super) fn change_room(&mut self, at: usize, now_ns: u64) {
        let Some(change) = self.scenario.owners.get(at).copied() else {
            return;
        };
        let server = change.server as usize;
        self.pages.set_room(server, change.pages);
        self.leaving[server].queue.clear();
        let excess = self.pages.excess(server);
        if excess == 0 {
            return;
        }
        let returns = &mut self.outcome.returns;
        self.leaving[server].owner = Some((returns.len(), 0));
        returns.push(OwnerReturn {
            server: change.server,
            at_ns: now_ns,
            pages: excess,
            owner_ns: None,
            copied_ns: None,
            network_bytes: 0,
            owner_disk_bytes: 0,
        });
        self.drop_seconds(server, now_ns);
        let is_here = |at: &usize| self.pages.get(*at).home == Home::Server(server);
        let is_moving = |at: &usize| self.pages.get(*at).is_moving;
        let here = || (0..self.pages.len()).filter(is_here);
        let moving = here().filter(is_moving).count();
        let wanted = (self.pages.excess(server) as usize).saturating_sub(moving);
        let pages = here().filter(|at| !is_moving(at));
        let queue: VecDeque<usize> = pages.take(wanted).collect();
        self.leaving[server].queue = queue;
        self.move_pages(server, now_ns);
        if self.scenario.shutdown == Shutdown::AtOnce {
            for client in 0..self.choosers.len() {
                let closed = Scheduled::Closed(client, server);
                self.count_shutdown(server, closed.bytes(), now_ns);
                self.send(now_ns + self.latency_ns(), closed);
            }
        }
    }

    /// Drops second copies and reservations at a server, as far as it exceeds its room, and makes others
    /// elsewhere.
    fn drop_seconds(&mut self, server: usize, now_ns: u64) {
        for page in 0..self.pages.len() {
            if self.pages.excess(server) == 0 {
                return;
            }
            if self.pages.get(page).second == Some(server) {
                self.pages.drop_second(page);
                self.drop_memory(server, now_ns);
                self.prepare(page, now_ns, Some(server));
            }
        }
    }

    /// Begins moves until as many pages are on their way as a burst has.
    fn move_pages(&mut self, server: usize, now_ns: u64) {
        while self.leaving[server].in_flight < self.scenario.burst_pages {
            let Some(page) = self.leaving[server].queue.pop_front() else {
                return;
            };
            if self.pages.get(page).home != Home::Server(server) {
                self.freed(server, now_ns);
                continue;
            }
            let of_page = self.pages.get(page);
            let has_replica = self.is_replicated() && of_page.has_second_copy();
            let other = self.pages.other_places(page, server, has_replica);
            let other = OtherPlaces {
                has_room: other.has_room || of_page.second.is_some(),
                ..other
            };
            match self.scenario.shutdown.treatment(other) {
                PageMove::Drop => self.drop_page(page, server, now_ns),
                PageMove::ToServer => self.send_to_server(page, server, now_ns),
                PageMove::ToClientDisk => self.send_to_client(page, server, now_ns),
                PageMove::ToServerDisk => {
                    let (host, disk_ns) = (self.host(server), self.scenario.disk_ns());
                    let at_ns = self.machines[host].access_disk(now_ns, disk_ns);
                    self.begin_move(page, server, Home::ServerDisk(server), at_ns, now_ns);
                }
            }
        }
    }

    /// The server drops a page; another copy replaces it, or it is lost.
    fn drop_page(&mut self, page: usize, server: usize, now_ns: u64) {
        let of_page = self.pages.get(page);
        match of_page.second {
            Some(second) if self.is_replicated() && of_page.has_second_copy() => {
                self.count_shutdown(server, Scheduled::Noticed.bytes(), now_ns);
                self.send(now_ns + self.latency_ns(), Scheduled::Noticed);
                self.pages.get_mut(page).second = None;
                self.pages.enter(page, second);
                self.prepare(page, now_ns, Some(server));
            }
            _ if of_page.is_on_disk => {
                self.pages.leave(page, Home::ClientDisk);
                self.pages.drop_second(page);
            }
            _ => {
                self.pages.leave(page, Home::Lost);
                self.pages.drop_second(page);
            }
        }
        self.drop_memory(server, now_ns);
        self.inform(page, server, now_ns);
    }

    /// Returns the memory of a dropped page to the owner, one page after the other.
    fn drop_memory(&mut self, server: usize, now_ns: u64) {
        // Holders of second copies are informed first.
        let informed_ns = match self.scenario.shutdown {
            Shutdown::Replicate => now_ns + self.latency_ns(),
            Shutdown::MigrateReserved
            | Shutdown::Migrate
            | Shutdown::ClientDisk
            | Shutdown::ServerDisk
            | Shutdown::AtOnce => now_ns,
        };
        let begin_ns = informed_ns.max(self.leaving[server].dropping_ns);
        let end_ns = begin_ns + u64::from(self.scenario.drop_ns);
        self.leaving[server].dropping_ns = end_ns;
        self.queue.put(end_ns, Scheduled::Freed(server));
    }

    /// Sends a page to room that was reserved for it, or to the server with the most room, which is asked
    /// first.
    fn send_to_server(&mut self, page: usize, server: usize, now_ns: u64) {
        let of_page = self.pages.get_mut(page);
        let reserved = of_page.second.take();
        of_page.is_copy_due = false;
        let (target, ready_ns) = match reserved {
            Some(target) => (target, now_ns),
            None => {
                // The treatment has checked that there is room.
                let target = self.pages.roomiest_but(server).unwrap_or(server);
                self.pages.occupy(target);
                for _ in 0..2 {
                    self.count_shutdown(server, Scheduled::Noticed.bytes(), now_ns);
                    self.send(now_ns + self.latency_ns(), Scheduled::Noticed);
                }
                (target, now_ns + 2 * self.latency_ns())
            }
        };
        let hosts = [server, target].map(|server| self.host(server));
        let at_ns = self.transfer(hosts[0], hosts[1], ready_ns);
        self.begin_move(page, server, Home::Server(target), at_ns, now_ns);
    }

    fn send_to_client(&mut self, page: usize, server: usize, now_ns: u64) {
        let client = self.pages.get(page).client;
        let (host, disk_ns) = (self.host(server), self.scenario.disk_ns());
        let there_ns = self.transfer(host, client, now_ns);
        let at_ns = self.machines[client].access_disk(there_ns, disk_ns);
        self.begin_move(page, server, Home::ClientDisk, at_ns, now_ns);
    }

    fn begin_move(&mut self, page: usize, from: usize, to: Home, at_ns: u64, now_ns: u64) {
        let is_sent = !matches!(to, Home::ServerDisk(_));
        let moved = Scheduled::Moved {
            page,
            from,
            to,
            is_sent,
        };
        self.pages.get_mut(page).is_moving = true;
        self.leaving[from].in_flight += 1;
        if is_sent {
            self.count_shutdown(from, moved.bytes(), now_ns);
        } else {
            self.count_owner_disk(from, now_ns);
        }
        self.send(at_ns, moved);
    }

    /// A page has reached its new place, unless its client has given it another place meanwhile.
    pub(super) fn moved(&mut self, page: usize, from: usize, to: Home, now_ns: u64) {
        self.pages.get_mut(page).is_moving = false;
        self.leaving[from].in_flight -= 1;
        let is_still_there = self.pages.get(page).home == Home::Server(from);
        match to {
            // The other server's owner has returned, too.
            Home::Server(target) if self.pages.excess(target) > 0 => {
                self.pages.release(target);
                self.freed(target, now_ns);
                if is_still_there {
                    self.leaving[from].queue.push_back(page);
                }
                return self.move_pages(from, now_ns);
            }
            Home::Server(target) if is_still_there => {
                if self.pages.get(page).second == Some(target) {
                    self.pages.drop_second(page);
                }
                self.pages.enter(page, target);
                self.prepare(page, now_ns, Some(from));
            }
            Home::Server(target) => self.pages.release(target),
            Home::ClientDisk if is_still_there => {
                self.pages.leave(page, to);
                self.pages.drop_second(page);
                self.pages.get_mut(page).is_on_disk = true;
            }
            to if is_still_there => {
                self.pages.leave(page, to);
                self.pages.drop_second(page);
            }
            _ => {}
        }
        self.freed(from, now_ns);
        self.inform(page, from, now_ns);
        self.move_pages(from, now_ns);
    }

    /// Informs the client of a page's new place at once, if it is configured so.
    fn inform(&mut self, page: usize, server: usize, now_ns: u64) {
        match (self.scenario.shutdown, self.scenario.forwarding) {
            // The connection's end informs the clients.
            (Shutdown::AtOnce, _)
            // The old server has the page until the next reference.
            | (Shutdown::ServerDisk, _)
            | (_, Forwarding::NextReference) => {}
            (_, Forwarding::Callback) => {
                let called = Scheduled::Called(page);
                self.count_shutdown(server, called.bytes(), now_ns);
                self.send(now_ns + self.latency_ns(), called);
            }
        }
    }

    /// A client learns that a server has closed its connections.
    pub(super) fn closed(&mut self, client: usize, server: usize) {
        for page in self.pages.of_client(client) {
            if self.pages.get(page).known == Some(server) {
                self.pages.learn(page);
            }
        }
        let servers = self.pages.servers();
        let number = (server + servers - client % servers) % servers;
        self.choosers[client].forget(number);
    }

    /// Counts a page's memory that is the owner's.
    pub(super) fn freed(&mut self, server: usize, now_ns: u64) {
        let Some((at, freed)) = &mut self.leaving[server].owner else {
            return;
        };
        *freed += 1;
        if let Some(owner) = self.outcome.returns.get_mut(*at)
            && owner.owner_ns.is_none()
            && *freed * 100 >= u64::from(owner.pages) * 99
        {
            owner.owner_ns = Some(now_ns - owner.at_ns);
        }
    }

    /// Counts a page that the server's disk reads or writes.
    pub(super) fn count_owner_disk(&mut self, server: usize, now_ns: u64) {
        if let Some(owner) = self.recent_return(server, now_ns) {
            owner.owner_disk_bytes += PAGE_BYTES;
        }
    }
}
