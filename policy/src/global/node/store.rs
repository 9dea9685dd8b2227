//! Pages that other nodes put to this one. One match over the policies.

use super::{Node, Turn};
use crate::global::age::age_ms;
use crate::global::message::{Action, Message, Origin};
use crate::global::pages::{Kind, Page};
use crate::global::settings::MemoryPolicy;
use crate::global::uid::{NodeId, Uid};

impl Node {
    pub(super) fn receive_put(
        &mut self,
        from: NodeId,
        uid: Uid,
        age_ms: u64,
        chances: u8,
        turn: &mut Turn<'_>,
    ) {
        if let Some(fetch) = self.fetches.get_mut(&uid) {
            fetch.must_report = true;
            return self.arrive(uid, Kind::Local, Origin::Cluster, None, turn);
        }
        let age_ms = i64::try_from(age_ms).unwrap_or(i64::MAX);
        let mut page = Page {
            uid,
            last_use_ms: turn.now_ms.saturating_sub(age_ms),
            kind: Kind::Global,
            chances,
        };
        match self.settings.policy {
            MemoryPolicy::Gms => self.store_by_age(page, turn),
            MemoryPolicy::Exact => {
                let oldest = self.pages.oldest(self.settings.boost_quarters, turn.now_ms);
                self.store_for(page, oldest, turn);
            }
            MemoryPolicy::NChance => {
                page.last_use_ms = turn.now_ms;
                self.store_by_chance(from, page, turn);
            }
            MemoryPolicy::Hash => {
                page.last_use_ms = turn.now_ms;
                let excess = self.excess_page(0);
                let displaced = excess.or_else(|| self.pages.oldest_global());
                self.store_for(page, displaced, turn);
            }
            MemoryPolicy::None => {}
        }
    }

    /// Stores a page in place of `oldest`, if no frame is free. Returns true if the node holds the page then.
    fn store_for(&mut self, page: Page, oldest: Option<Page>, turn: &mut Turn<'_>) -> bool {
        if self.pages.get(page.uid).is_some() {
            self.pages.refresh(page.uid, page.last_use_ms);
            return true;
        }
        if self.pages.is_full() {
            let Some(oldest) = oldest else {
                return false;
            };
            self.discard(oldest.uid, turn);
        }
        let is_stored = self.pages.insert(page);
        if is_stored {
            turn.actions.push(Action::Store { uid: page.uid });
            self.report_moved(page.uid, true, turn);
        }
        is_stored
    }

    /// Stores a page if a frame is free, or if the node's oldest page is older: the rule of `gms`.
    fn store_by_age(&mut self, page: Page, turn: &mut Turn<'_>) {
        let boost = self.settings.boost_quarters;
        let mut oldest = self.pages.oldest(boost, turn.now_ms);
        if self.pages.get(page.uid).is_none() && self.pages.is_full() {
            // The page will be global here: this protects local pages of about the same age.
            let newcomer_ms = age_ms(page.last_use_ms, true, boost, turn.now_ms);
            if let Some(old) = oldest {
                let begun_ms = self.epoch.begun_ms;
                self.epoch
                    .count_stale(old.age_ms(boost, begun_ms), turn.now_ms);
            }
            oldest = oldest.filter(|old| old.age_ms(boost, turn.now_ms) > newcomer_ms);
        }
        if self.store_for(page, oldest, turn) {
            self.epoch.count_received();
        } else {
            let replaced = &mut self.epoch.counts.replaced;
            *replaced = replaced.saturating_add(1);
        }
        if self.epoch.ends_early()
            && let Some(next) = self.epoch.weights.successors.first().copied()
        {
            let epoch = self.epoch.weights.epoch;
            self.tell(next, Message::Ended { epoch }, turn);
        }
    }

    /// Stores a page in a free frame, else in place of the oldest duplicate, the oldest recirculating page,
    /// or a very old page, in that order; else forwards the page: the rule of `n-chance`.
    fn store_by_chance(&mut self, from: NodeId, page: Page, turn: &mut Turn<'_>) {
        let is_very_old = |old: &Page| old.age_ms(4, turn.now_ms) >= self.settings.very_old_ms;
        let displaced = self
            .pages
            .oldest_duplicate()
            .or_else(|| self.pages.oldest_global())
            .or_else(|| self.pages.oldest_local().filter(is_very_old));
        if self.store_for(page, displaced, turn) {
            return;
        }
        let chances = page.chances.saturating_sub(1);
        if chances == 0 {
            return;
        }
        if let Some(to) = self.other_node(from, turn) {
            let message = Message::PutPage {
                uid: page.uid,
                age_ms: 0,
                chances,
            };
            turn.actions.push(Action::Send { to, message });
        }
    }
}
