//! One node of the cluster: a state machine.

mod evict;
mod fetch;
mod initiate;
mod prefetch;
mod store;

use super::directory::{Directory, Holder, Notice, Stamp};
use super::epoch::{Epoch, Gathering};
use super::members::Members;
use super::message::{Action, Event, Message};
use super::pages::{Kind, Pages};
use super::settings::{MemoryPolicy, Settings};
use super::uid::{NodeId, Uid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// State of one node.
#[derive(Clone, Debug)]
pub struct Node {
    id: NodeId,
    generation: u32,
    settings: Settings,
    pages: Pages,
    directory: Directory,
    members: Arc<Members>,
    epoch: Epoch,
    gathering: Option<Gathering>,
    fetches: BTreeMap<Uid, Fetch>,
    last_stamp: Stamp,
    oldest_node: Option<NodeId>,
    now_ms: i64,
}

/// A page that a program of this node waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fetch {
    deadline_ms: i64,
    /// Homes that were asked, under `hash`.
    homes_asked: usize,
    is_loading: bool,
    /// True if this node may be missing from the directory: the request may be lost, or the directory's node
    /// may have changed or restarted since.
    must_report: bool,
    /// This node, with the stamp of its last request.
    request: Holder,
    /// Nodes that receive a copy when the page arrives, with the stamps of their requests.
    waiting: Vec<Holder>,
}

/// Time, randomness and results of one step.
struct Turn<'a> {
    now_ms: i64,
    random: &'a mut dyn FnMut() -> u64,
    actions: &'a mut Vec<Action>,
}

impl Node {
    /// A node without pages, which has `frames` frames from `now_ms` on. It acts alone until
    /// [`Event::Members`]. A restarted node has a higher generation.
    #[must_use]
    pub fn new(id: NodeId, generation: u32, frames: u32, settings: Settings, now_ms: i64) -> Self {
        Self {
            id,
            generation,
            settings,
            pages: Pages::with_age_period(frames, settings.age_period_ms),
            directory: Directory::default(),
            members: Arc::default(),
            epoch: Epoch::new(now_ms),
            gathering: None,
            fetches: BTreeMap::new(),
            last_stamp: Stamp::default(),
            oldest_node: None,
            now_ms,
        }
    }

    /// Number of the node.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Generation of the node's memory.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Pages on this node.
    #[must_use]
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// This node's part of the directory.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Epoch in force on this node.
    #[must_use]
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Members of the cluster, as this node knows them.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Returns true if the node waits for the page.
    #[must_use]
    pub fn is_fetching(&self, uid: Uid) -> bool {
        self.fetches.contains_key(&uid)
    }

    /// Returns true if the node is gathering summaries for an epoch.
    #[must_use]
    pub fn is_initiator(&self) -> bool {
        self.gathering.is_some()
    }

    /// Handles an event at `now_ms`, on a clock of this node; a clock that went back stands still. Adds the
    /// resulting actions to `actions`, which the driver carries out in order. `random` returns uniform
    /// numbers over all of `u64`.
    pub fn step(
        &mut self,
        event: &Event,
        now_ms: i64,
        random: &mut dyn FnMut() -> u64,
        actions: &mut Vec<Action>,
    ) {
        self.now_ms = self.now_ms.max(now_ms);
        let mut turn = Turn {
            now_ms: self.now_ms,
            random,
            actions,
        };
        match event {
            Event::Read { uid } => self.read(*uid, &mut turn),
            Event::Loaded { uid } => self.loaded(*uid, &mut turn),
            Event::Message { from, message } => self.receive(*from, message, &mut turn),
            Event::Tick => {
                self.load_late(&mut turn);
                self.initiate(&mut turn);
            }
            Event::Members(members) => self.change_members(members, &mut turn),
            Event::Frames(count) => self.change_frames(*count, &mut turn),
            Event::Freed { uid } => self.free(*uid, &mut turn),
            Event::Failed { uid } => self.give_up(*uid, &mut turn),
            Event::Lost { uid } => self.discard(*uid, &mut turn),
            Event::Oldest(node) => self.oldest_node = *node,
        }
    }

    fn receive(&mut self, from: NodeId, message: &Message, turn: &mut Turn<'_>) {
        match message {
            Message::GetPage { uid, reader } => self.look_up(*uid, *reader, turn),
            Message::Forward { uid, reader } => self.serve(*uid, *reader, turn),
            Message::Page {
                uid,
                is_moved,
                reader,
            } => self.receive_page(from, *uid, *is_moved, *reader, turn),
            Message::Miss { uid, reader } => self.missed(*uid, *reader, turn),
            Message::PutPage {
                uid,
                age_ms,
                chances,
            } => self.receive_put(from, *uid, *age_ms, *chances, turn),
            Message::Moved { uid, holder } => self.enter(*uid, *holder, turn),
            Message::Gone { uid, holder } => {
                let notice = self.directory.leave(*uid, *holder);
                self.notify(*uid, notice, turn);
            }
            Message::Alone { uid } => self.pages.mark_duplicate(*uid, false),
            Message::Discard { uid } => {
                if self
                    .pages
                    .get(*uid)
                    .is_some_and(|page| page.kind == Kind::Global)
                {
                    self.discard(*uid, turn);
                }
            }
            Message::ReportPlease { epoch } => self.report(from, *epoch, turn),
            Message::Summary { epoch, summary } => self.gather(from, *epoch, summary, turn),
            Message::Weights(weights) => self.accept(weights),
            Message::Ended { epoch } => self.end_epoch(*epoch, turn),
        }
    }

    /// Sends a message, or handles it at once if it is for this node.
    fn tell(&mut self, to: NodeId, message: Message, turn: &mut Turn<'_>) {
        if to == self.id {
            self.receive(to, &message, turn);
        } else {
            turn.actions.push(Action::Send { to, message });
        }
    }

    /// Returns true if pages are found by the directory.
    fn has_directory(&self) -> bool {
        match self.settings.policy {
            MemoryPolicy::Gms | MemoryPolicy::Exact | MemoryPolicy::NChance => true,
            MemoryPolicy::Hash | MemoryPolicy::None => false,
        }
    }

    /// This node as a holder, with the stamp of a new change.
    fn holder(&mut self, is_global: bool) -> Holder {
        self.last_stamp = self.last_stamp.next(is_global);
        Holder {
            node: self.id,
            generation: self.generation,
            stamp: self.last_stamp,
        }
    }

    /// Reports to the directory that this node holds the page.
    fn report_moved(&mut self, uid: Uid, is_global: bool, turn: &mut Turn<'_>) {
        if self.has_directory()
            && let Some(owner) = self.members.owner(uid)
        {
            let holder = self.holder(is_global);
            self.tell(owner, Message::Moved { uid, holder }, turn);
        }
    }

    /// Reports to the directory that this node does not hold the page.
    fn report_gone(&mut self, uid: Uid, turn: &mut Turn<'_>) {
        if self.has_directory()
            && let Some(owner) = self.members.owner(uid)
        {
            let holder = self.holder(false);
            self.tell(owner, Message::Gone { uid, holder }, turn);
        }
    }

    /// Enters a holder into this node's part of the directory.
    fn enter(&mut self, uid: Uid, holder: Holder, turn: &mut Turn<'_>) {
        if self.members.is_current(holder.node, holder.generation) {
            let notice = self.directory.enter(uid, holder);
            self.notify(uid, notice, turn);
        }
    }

    fn notify(&mut self, uid: Uid, notice: Option<Notice>, turn: &mut Turn<'_>) {
        match notice {
            Some(Notice::Discard(node)) => self.tell(node, Message::Discard { uid }, turn),
            Some(Notice::Alone(node)) => self.tell(node, Message::Alone { uid }, turn),
            None => {}
        }
    }

    /// Takes over a list of members. Entries of lost memory, and of pages whose entries now lie on another
    /// node, are removed. This node reports its own pages to their new places, also if the node there has
    /// restarted. Lists must come in order, and to a new member last.
    fn change_members(&mut self, members: &Arc<Members>, turn: &mut Turn<'_>) {
        let before = std::mem::replace(&mut self.members, Arc::clone(members));
        let id = self.id;
        self.directory.retain(|uid, holder| {
            members.owner(uid) == Some(id) && members.is_current(holder.node, holder.generation)
        });
        for fetch in self.fetches.values_mut() {
            fetch.must_report = true;
        }
        let moved = |uid: &Uid| before.place_of_entry(*uid) != members.place_of_entry(*uid);
        let pages = self.pages.iter().filter(|page| moved(&page.uid));
        let pages: Vec<_> = pages.map(|page| (page.uid, page.kind)).collect();
        for (uid, kind) in pages {
            self.report_moved(uid, kind == Kind::Global, turn);
        }
    }

    /// Changes the number of frames; pages that no longer fit are dropped, global ones first.
    fn change_frames(&mut self, count: u32, turn: &mut Turn<'_>) {
        self.pages.set_limit(count);
        while self.pages.is_over() {
            let global = self.pages.oldest_global();
            match global.or_else(|| self.pages.oldest_local()) {
                Some(page) => self.discard(page.uid, turn),
                None => return,
            }
        }
    }

    /// Frees the frame of a page that programs of this node used. Global pages stay: they are held for others.
    fn free(&mut self, uid: Uid, turn: &mut Turn<'_>) {
        let page = self.pages.get(uid);
        if page.is_some_and(|page| page.kind != Kind::Global) {
            self.discard(uid, turn);
        }
    }

    /// Drops a page.
    fn discard(&mut self, uid: Uid, turn: &mut Turn<'_>) {
        if self.pages.remove(uid).is_some() {
            turn.actions.push(Action::Drop { uid });
            self.report_gone(uid, turn);
        }
    }
}

#[cfg(test)]
impl Node {
    /// Hashes everything that can influence the next step.
    pub(super) fn hash_for_the_model<H: std::hash::Hasher>(&self, hasher: &mut H) {
        use std::hash::Hash;
        let page = |page: super::pages::Page| (page.uid, page.last_use_ms, page.kind, page.chances);
        let mut pages: Vec<_> = self.pages.iter().map(page).collect();
        // Local pages with equal times are evicted in the order of their uses.
        let is_local = |page: &(Uid, i64, Kind, u8)| page.2 != Kind::Global;
        let order: Vec<_> = pages
            .iter()
            .filter(|page| is_local(page))
            .map(|page| page.0)
            .collect();
        pages.sort_unstable();
        // The order of a page's holders stays: draws depend on it.
        let mut entries: Vec<_> = self.directory.iter().collect();
        entries.sort_by_key(|(uid, _)| *uid);
        (pages, order, self.pages.limit(), entries).hash(hasher);
        (self.generation, self.members.list(), self.last_stamp).hash(hasher);
        (&self.epoch, &self.gathering, &self.fetches, self.now_ms).hash(hasher);
    }
}
