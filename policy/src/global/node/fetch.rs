//! Reads: the search for a page in the cluster, and its arrival (cases 0 to 4 of section 3.1).

use super::{Fetch, Node, Turn};
use crate::global::directory::Holder;
use crate::global::message::{Action, Message, Origin};
use crate::global::pages::{Kind, Page};
use crate::global::settings::{MemoryPolicy, Swap};
use crate::global::uid::{NodeId, Uid};

impl Node {
    /// A program reads a page.
    pub(super) fn read(&mut self, uid: Uid, turn: &mut Turn<'_>) {
        let origin = match self.pages.touch(uid, turn.now_ms) {
            Some(Kind::Global) => {
                self.report_moved(uid, false, turn);
                Origin::OwnGlobal
            }
            Some(Kind::Local | Kind::Duplicate) => Origin::Local,
            None => return self.fetch(uid, turn),
        };
        turn.actions.push(Action::Ready { uid, origin });
    }

    fn fetch(&mut self, uid: Uid, turn: &mut Turn<'_>) {
        if self.fetches.contains_key(&uid) {
            return;
        }
        let request = self.holder(false);
        let fetch = Fetch {
            deadline_ms: turn.now_ms.saturating_add(self.settings.fetch_timeout_ms),
            homes_asked: 0,
            is_loading: false,
            must_report: false,
            request,
            waiting: Vec::new(),
        };
        self.fetches.insert(uid, fetch);
        match self.settings.policy {
            MemoryPolicy::Gms | MemoryPolicy::Exact | MemoryPolicy::NChance => {
                match self.members.owner(uid) {
                    Some(owner) => {
                        let reader = request;
                        self.tell(owner, Message::GetPage { uid, reader }, turn);
                    }
                    None => self.load(uid, turn),
                }
            }
            MemoryPolicy::Hash => self.ask_home(uid, turn),
            MemoryPolicy::None => self.load(uid, turn),
        }
    }

    /// Asks the page's next home; after the last one, reads the page from its source.
    fn ask_home(&mut self, uid: Uid, turn: &mut Turn<'_>) {
        let reader = self.holder(false);
        let Some(fetch) = self.fetches.get_mut(&uid) else {
            return;
        };
        fetch.request = reader;
        let mut homes = self
            .members
            .homes(uid)
            .iter()
            .filter(|home| **home != self.id);
        let home = homes.nth(fetch.homes_asked).copied();
        fetch.homes_asked += 1;
        match home {
            Some(home) => self.tell(home, Message::GetPage { uid, reader }, turn),
            None => self.load(uid, turn),
        }
    }

    /// Reads a page from its source, unless that has begun.
    fn load(&mut self, uid: Uid, turn: &mut Turn<'_>) {
        if let Some(fetch) = self.fetches.get_mut(&uid)
            && !fetch.is_loading
        {
            fetch.is_loading = true;
            turn.actions.push(Action::Load { uid });
        }
    }

    /// Reads pages from their source for which the cluster has not answered in time.
    pub(super) fn load_late(&mut self, turn: &mut Turn<'_>) {
        let now_ms = turn.now_ms;
        let is_late = |fetch: &Fetch| !fetch.is_loading && fetch.deadline_ms <= now_ms;
        let late = self.fetches.iter().filter(|(_, fetch)| is_late(fetch));
        let late: Vec<Uid> = late.map(|(uid, _)| *uid).collect();
        for uid in late {
            if let Some(fetch) = self.fetches.get_mut(&uid) {
                fetch.must_report = true;
            }
            self.load(uid, turn);
        }
    }

    /// A reader asks the directory, or under `hash` the home. The directory enters the reader as a holder.
    pub(super) fn look_up(&mut self, uid: Uid, reader: Holder, turn: &mut Turn<'_>) {
        if !self.has_directory() {
            return self.serve(uid, reader, turn);
        }
        let found = self.directory.holder_for(uid, reader.node, turn.random);
        self.enter(uid, reader, turn);
        match found {
            Some(holder) => self.tell(holder, Message::Forward { uid, reader }, turn),
            None => self.tell(reader.node, Message::Miss { uid, reader }, turn),
        }
    }

    /// Sends a page to a reader. A global page leaves this node; a local one becomes a duplicate.
    pub(super) fn serve(&mut self, uid: Uid, reader: Holder, turn: &mut Turn<'_>) {
        let Some(page) = self.pages.get(uid) else {
            match self.fetches.get_mut(&uid) {
                // The page is on its way: the reader receives a copy.
                Some(fetch) if reader.node != self.id => {
                    fetch.waiting.retain(|other| other.node != reader.node);
                    fetch.waiting.push(reader);
                    return;
                }
                Some(_) => {}
                // The directory has an old entry.
                None => self.report_gone(uid, turn),
            }
            return self.tell(reader.node, Message::Miss { uid, reader }, turn);
        };
        let keeps_copy = self.settings.policy == MemoryPolicy::Hash && !self.settings.is_exclusive;
        let is_moved = page.kind == Kind::Global && !keeps_copy;
        let message = Message::Page {
            uid,
            is_moved,
            reader,
        };
        self.tell(reader.node, message, turn);
        if is_moved {
            self.discard(uid, turn);
        } else {
            self.pages.refresh(uid, turn.now_ms);
            self.pages.mark_duplicate(uid, true);
        }
    }

    /// The directory, or the page's home, does not know the page. Answers to earlier requests are ignored.
    pub(super) fn missed(&mut self, uid: Uid, request: Holder, turn: &mut Turn<'_>) {
        let fetch = self.fetches.get(&uid);
        if fetch.is_none_or(|fetch| fetch.request != request) {
            return;
        }
        match self.settings.policy {
            MemoryPolicy::Hash => self.ask_home(uid, turn),
            MemoryPolicy::Gms
            | MemoryPolicy::Exact
            | MemoryPolicy::NChance
            | MemoryPolicy::None => self.load(uid, turn),
        }
    }

    /// Another node has sent a wanted page. If the page has moved, its sender has a free frame now.
    pub(super) fn receive_page(
        &mut self,
        from: NodeId,
        uid: Uid,
        is_moved: bool,
        request: Holder,
        turn: &mut Turn<'_>,
    ) {
        if let Some(fetch) = self.fetches.get_mut(&uid) {
            // An answer to an earlier request says nothing about the directory.
            fetch.must_report |= fetch.request != request;
        }
        let returns = match self.settings.policy {
            MemoryPolicy::Gms => self.settings.swap == Swap::Return,
            MemoryPolicy::Exact => true,
            MemoryPolicy::NChance | MemoryPolicy::Hash | MemoryPolicy::None => false,
        };
        let owed = (is_moved && returns).then_some(from);
        let kind = if is_moved {
            Kind::Local
        } else {
            Kind::Duplicate
        };
        self.arrive(uid, kind, Origin::Cluster, owed, turn);
    }

    /// The page cannot be read from its source. Nodes that wait for it read the source themselves.
    pub(super) fn give_up(&mut self, uid: Uid, turn: &mut Turn<'_>) {
        let Some(fetch) = self.fetches.remove(&uid) else {
            return;
        };
        for reader in fetch.waiting {
            self.tell(reader.node, Message::Miss { uid, reader }, turn);
        }
        self.report_gone(uid, turn);
    }

    /// A page has been read from its source. Under `hash`, its home receives a copy.
    pub(super) fn loaded(&mut self, uid: Uid, turn: &mut Turn<'_>) {
        let is_wanted = self.fetches.contains_key(&uid);
        if let Some(fetch) = self.fetches.get_mut(&uid) {
            // The source may have been read for an earlier request.
            fetch.must_report |= !fetch.is_loading;
        }
        self.arrive(uid, Kind::Local, Origin::Source, None, turn);
        if is_wanted && self.settings.policy == MemoryPolicy::Hash && !self.settings.is_exclusive {
            let chances = self.settings.chances;
            let message = Message::PutPage {
                uid,
                age_ms: 0,
                chances,
            };
            match self.members.homes(uid).first().copied() {
                Some(home) if home != self.id => self.tell(home, message, turn),
                _ => {}
            }
        }
    }

    /// Stores a page that the node waits for, and answers all who wait for it. Pages for which nobody waits
    /// are ignored.
    pub(super) fn arrive(
        &mut self,
        uid: Uid,
        kind: Kind,
        origin: Origin,
        owed: Option<NodeId>,
        turn: &mut Turn<'_>,
    ) {
        let Some(fetch) = self.fetches.remove(&uid) else {
            return;
        };
        let is_stored = self.make_room(owed, turn)
            && self.pages.insert(Page {
                uid,
                last_use_ms: turn.now_ms,
                kind,
                chances: 0,
            });
        turn.actions.push(Action::Ready { uid, origin });
        for reader in fetch.waiting {
            self.pages.mark_duplicate(uid, true);
            let message = Message::Page {
                uid,
                is_moved: false,
                reader,
            };
            self.tell(reader.node, message, turn);
        }
        if !is_stored {
            turn.actions.push(Action::Drop { uid });
            self.report_gone(uid, turn);
        } else if fetch.must_report {
            self.report_moved(uid, false, turn);
        }
    }
}
