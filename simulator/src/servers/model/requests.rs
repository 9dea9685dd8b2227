//! Requests of clients: page-ins, for which they wait, and page-outs.

use super::{Model, Request, Scheduled};
use crate::servers::pages::Home;
use crate::servers::scenario::FullServers;
use gleaner_policy::shutdown::Preparation;

impl Model<'_> {
    /// The client makes its next request.
    pub(super) fn next(&mut self, client: usize, now_ns: u64) {
        if now_ns >= self.outcome.length_ns {
            return;
        }
        let page = self.draw_page(client);
        let scenario = self.scenario;
        let rate = scenario.page_ins_per_s + scenario.page_outs_per_s;
        let is_write = self.draw() * rate >= scenario.page_ins_per_s;
        let request = Request {
            client,
            page,
            server: 0,
            is_write,
            begun_ns: now_ns,
            sent_ns: now_ns,
        };
        if is_write {
            let is_new = self.draw() < scenario.new_page_share;
            if is_new && !self.pages.get(page).is_moving {
                self.pages.leave(page, Home::Client);
                self.pages.drop_second(page);
                self.pages.learn(page);
            }
            if scenario.has_disk_copy {
                let disk_ns = scenario.disk_ns();
                self.machines[client].access_disk(now_ns, disk_ns);
                self.pages.get_mut(page).is_on_disk = true;
            }
            self.compute(client, now_ns);
        } else {
            self.begun += 1;
        }
        self.ask(request, now_ns);
    }

    /// The client computes until its next request.
    fn compute(&mut self, client: usize, now_ns: u64) {
        let pause_ns = self.pause_ns();
        self.queue.put(now_ns + pause_ns, Scheduled::Next(client));
    }

    fn draw_page(&mut self, client: usize) -> usize {
        let pages = self.pages.of_client(client);
        let scenario = self.scenario;
        let count = pages.len() as f64;
        let hot = (count * scenario.hot_page_share).clamp(1.0, count);
        let is_hot = self.draw() < scenario.hot_reference_share;
        let at = match is_hot || hot >= count {
            true => self.draw() * hot,
            false => hot + self.draw() * (count - hot),
        };
        pages.start + (at as usize).min(pages.len() - 1)
    }

    /// Sends a request to the server that the client believes to have the page, or to the client's own disk.
    pub(super) fn ask(&mut self, request: Request, now_ns: u64) {
        let page = self.pages.get(request.page);
        let known = match page.known {
            None if request.is_write => self.place_anew(request, now_ns),
            known => known,
        };
        let request = Request {
            server: known.unwrap_or(0),
            sent_ns: now_ns,
            ..request
        };
        match (known, request.is_write) {
            (Some(server), true) => {
                let host = self.host(server);
                let at_ns = self.transfer(request.client, host, now_ns);
                self.send(at_ns, Scheduled::Asked(request));
            }
            (Some(_), false) => {
                let at_ns = now_ns + self.latency_ns();
                self.send(at_ns, Scheduled::Asked(request));
            }
            (None, true) => {}
            (None, false) if page.home == Home::ClientDisk => {
                let read_ns = u64::from(self.scenario.disk_read_us) * 1_000;
                let at_ns = self.machines[request.client].access_disk(now_ns, read_ns);
                self.queue.put(at_ns, Scheduled::ReadFromDisk(request));
            }
            (None, false) => {
                // The client has the page, or makes a lost one anew.
                if page.home == Home::Lost {
                    self.pages.leave(request.page, Home::Client);
                }
                self.end_without_wait(request, now_ns);
            }
        }
    }

    /// Stores a page that no server has at a server, otherwise on the client's disk.
    fn place_anew(&mut self, request: Request, now_ns: u64) -> Option<usize> {
        let page = request.page;
        let server = self.place(page, now_ns);
        if server.is_none() {
            if !self.scenario.has_disk_copy {
                let disk_ns = self.scenario.disk_ns();
                self.machines[request.client].access_disk(now_ns, disk_ns);
            }
            self.pages.leave(page, Home::ClientDisk);
        } else {
            // Without copies of all pages, an older copy on disk is out of date.
            self.pages.get_mut(page).is_on_disk = self.scenario.has_disk_copy;
            self.prepare(page, now_ns, None);
        }
        self.pages.learn(page);
        server
    }

    /// Makes a second copy of a page, or a reservation. `leaving` is the server whose shutdown causes it.
    pub(super) fn prepare(&mut self, page: usize, now_ns: u64, leaving: Option<usize>) {
        let preparation = self.scenario.shutdown.preparation();
        if preparation == Preparation::Nothing {
            return;
        }
        if self.occupy_second(page).is_none() {
            return;
        }
        let Home::Server(server) = self.pages.get(page).home else {
            return;
        };
        match preparation {
            Preparation::Nothing => {}
            Preparation::Replica => self.copy(page, server, now_ns, leaving),
            Preparation::Reservation => {
                let at_ns = now_ns + self.latency_ns();
                for _ in 0..2 {
                    self.send(at_ns, Scheduled::Noticed);
                    self.count_message(&Scheduled::Noticed, now_ns, leaving);
                }
            }
        }
    }

    /// Counts a message that prepares for a shutdown, or restores this preparation after one.
    pub(super) fn count_message(
        &mut self,
        message: &Scheduled,
        now_ns: u64,
        leaving: Option<usize>,
    ) {
        match leaving {
            Some(server) => self.count_shutdown(server, message.bytes(), now_ns),
            None => self.outcome.preparation_messages += 1,
        }
    }

    /// A request, with its page if it is a page-out, reaches the server.
    pub(super) fn asked(&mut self, request: Request, now_ns: u64) {
        let host = self.host(request.server);
        let work_ns = self.scenario.server_ns(request.server);
        let at_ns = self.machines[host].compute(now_ns, work_ns);
        self.copies[request.server].waiting_page_ins += u32::from(!request.is_write);
        self.queue.put(at_ns, Scheduled::Served(request));
    }

    /// The server's CPU has handled a request.
    pub(super) fn served(&mut self, request: Request, now_ns: u64) {
        self.outcome.server_requests[request.server] += 1;
        self.copies[request.server].waiting_page_ins -= u32::from(!request.is_write);
        let page = self.pages.get(request.page);
        match (page.home, request.is_write) {
            (Home::Server(server), true) if server == request.server => {
                self.pages.touch(request.page);
                if self.is_replicated() {
                    match page.second {
                        Some(_) => self.copy(request.page, server, now_ns, None),
                        None => self.prepare(request.page, now_ns, None),
                    }
                }
                let at_ns = now_ns + self.latency_ns();
                self.send(at_ns, Scheduled::Answered(request));
            }
            (Home::Server(server), false) if server == request.server => {
                self.pages.touch(request.page);
                self.outcome.server_page_ins += 1;
                self.answer(request, now_ns);
            }
            (Home::ServerDisk(server), false) if server == request.server => {
                // The page is the client's from now on.
                self.pages.leave(request.page, Home::Client);
                let read_ns = u64::from(self.scenario.disk_read_us) * 1_000;
                let host = self.host(server);
                let at_ns = self.machines[host].access_disk(now_ns, read_ns);
                self.count_owner_disk(server, now_ns);
                self.queue.put(at_ns, Scheduled::ReadForClient(request));
            }
            (home, is_write) => {
                if is_write && home == Home::ServerDisk(request.server) {
                    self.pages.leave(request.page, Home::Client);
                }
                let at_ns = now_ns + self.latency_ns();
                self.send(at_ns, Scheduled::Refused(request));
            }
        }
    }

    /// The client learns that the server does not have the page any more. A page-out whose place was taken by another
    /// page meanwhile goes to the client's disk: otherwise two page-outs could take the last place from each other
    /// for ever.
    pub(super) fn refused(&mut self, request: Request, now_ns: u64) {
        self.pages.learn(request.page);
        if !request.is_write || self.pages.get(request.page).home != Home::ClientDisk {
            return self.ask(request, now_ns);
        }
        if !self.scenario.has_disk_copy {
            let disk_ns = self.scenario.disk_ns();
            self.machines[request.client].access_disk(now_ns, disk_ns);
        }
    }

    /// The server sends the page.
    pub(super) fn answer(&mut self, request: Request, now_ns: u64) {
        let host = self.host(request.server);
        let at_ns = self.transfer(host, request.client, now_ns);
        self.send(at_ns, Scheduled::Answered(request));
    }

    /// A server's answer reaches the client.
    pub(super) fn answered(&mut self, request: Request, now_ns: u64) {
        let servers = self.pages.servers();
        let number = (request.server + servers - request.client % servers) % servers;
        let took_us = (now_ns - request.sent_ns) / 1_000;
        self.choosers[request.client].answered(number, took_us, (now_ns / 1_000) as i64);
        if request.is_write {
            return;
        }
        if self.pages.get(request.page).home == Home::Client {
            self.pages.learn(request.page);
        }
        self.end(request, now_ns);
    }

    /// The client's own disk has read the page. If pages replace each other, the page returns to a server.
    pub(super) fn read_from_disk(&mut self, request: Request, now_ns: u64) {
        self.end(request, now_ns);
        let is_on_disk = self.pages.get(request.page).home == Home::ClientDisk;
        let returns = self.scenario.full != FullServers::ClientDisk;
        if returns && is_on_disk {
            let page_out = Request {
                is_write: true,
                begun_ns: now_ns,
                ..request
            };
            self.ask(page_out, now_ns);
        }
    }

    /// Ends a page-in for which the client waited.
    fn end(&mut self, request: Request, now_ns: u64) {
        self.page_ins
            .push((request.begun_ns, now_ns - request.begun_ns));
        self.compute(request.client, now_ns);
    }

    /// Ends a page-in that needs neither server nor disk, and does not count.
    fn end_without_wait(&mut self, request: Request, now_ns: u64) {
        match request.begun_ns == now_ns {
            true => {
                self.begun -= 1;
                self.compute(request.client, now_ns);
            }
            // A server was asked in vain.
            false => self.end(request, now_ns),
        }
    }
}
