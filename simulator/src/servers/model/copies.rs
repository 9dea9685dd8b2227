//! Second copies of pages, which servers send at the configured pace.

use super::{Model, Scheduled};
use crate::servers::pages::Home;
use gleaner_policy::shutdown::CopyPath;
use std::collections::VecDeque;

/// A second copy that a server has to send.
#[derive(Clone, Copy, Debug)]
struct SecondCopy {
    page: usize,
    /// Server whose shutdown makes the copy necessary.
    leaving: Option<usize>,
}

/// Second copies that a server has to send, and the requests that come before them.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    waiting: VecDeque<SecondCopy>,
    /// True if a [`Scheduled::CopyTurn`] is scheduled.
    is_scheduled: bool,
    /// Page-ins that wait for the server's CPU.
    pub(super) waiting_page_ins: u32,
}

impl Model<'_> {
    /// Requests a second copy of a page's present contents. Until the copy is sent, an older one does not count.
    pub(super) fn copy(&mut self, page: usize, server: usize, now_ns: u64, leaving: Option<usize>) {
        let of_page = self.pages.get_mut(page);
        if !of_page.is_copy_due {
            of_page.is_copy_due = true;
            let copies = &mut self.copies[server];
            copies.waiting.push_back(SecondCopy { page, leaving });
        }
        self.send_copies(server, now_ns);
    }

    /// The server looks again for an idle moment.
    pub(super) fn copy_turn(&mut self, server: usize, now_ns: u64) {
        self.copies[server].is_scheduled = false;
        self.send_copies(server, now_ns);
    }

    /// Sends second copies until one has to wait.
    fn send_copies(&mut self, server: usize, now_ns: u64) {
        while let Some(copy) = self.copies[server].waiting.front().copied() {
            let page = self.pages.get(copy.page);
            let target = match (page.home, page.second) {
                (Home::Server(home), Some(second)) if page.is_copy_due => Some((home, second)),
                _ => None,
            };
            let Some((home, second)) = target else {
                // Page or room has gone meanwhile, or an earlier entry has sent the copy.
                self.pages.get_mut(copy.page).is_copy_due = false;
                self.copies[server].waiting.pop_front();
                continue;
            };
            if home != server {
                self.copies[server].waiting.pop_front();
                self.copies[home].waiting.push_back(copy);
                self.schedule_copy(home, now_ns);
                continue;
            }
            let hosts = [server, second].map(|server| self.host(server));
            let [sender, receiver] = hosts.map(|host| self.machines[host]);
            let path = CopyPath {
                waiting_page_ins: self.copies[server].waiting_page_ins,
                is_sending: sender.sends_until_ns() > now_ns,
                is_receiving: receiver.receives_until_ns() > now_ns,
            };
            if !self.scenario.copy_pace.may_send(path) {
                let links_ns = sender.sends_until_ns().max(receiver.receives_until_ns());
                let at_ns = match path.waiting_page_ins {
                    0 => links_ns,
                    _ => links_ns.max(sender.computes_until_ns()),
                };
                return self.schedule_copy(server, at_ns);
            }
            self.copies[server].waiting.pop_front();
            self.pages.get_mut(copy.page).is_copy_due = false;
            self.send_copy(hosts, copy.leaving, now_ns);
        }
    }

    fn schedule_copy(&mut self, server: usize, at_ns: u64) {
        if !self.copies[server].is_scheduled {
            self.copies[server].is_scheduled = true;
            self.queue.put(at_ns, Scheduled::CopyTurn(server));
        }
    }

    /// Sends a second copy, which the receiver acknowledges.
    fn send_copy(&mut self, [sender, receiver]: [usize; 2], leaving: Option<usize>, now_ns: u64) {
        let at_ns = self.transfer(sender, receiver, now_ns);
        for message in [Scheduled::Copied, Scheduled::Noticed] {
            self.send(at_ns, message);
            self.count_message(&message, now_ns, leaving);
        }
        let owner = leaving.and_then(|server| self.leaving[server].owner);
        if let Some((at, _)) = owner
            && let Some(owner) = self.outcome.returns.get_mut(at)
        {
            owner.copied_ns = Some(at_ns - owner.at_ns);
        }
    }
}
