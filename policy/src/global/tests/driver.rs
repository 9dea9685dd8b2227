//! Driver of one node: carries out its actions on a memory of its own, and checks the laws that hold in every
//! step.

use crate::global::message::{Action, Event, Message, Origin};
use crate::global::node::Node;
use crate::global::settings::MemoryPolicy;
use crate::global::{NodeId, Uid};
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub(super) struct Driver {
    pub(super) node: Node,
    /// Pages whose data are on the node.
    memory: BTreeSet<Uid>,
}

/// Results of one step, other than changes of the node.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    pub(super) sent: Vec<(NodeId, Message)>,
    pub(super) loads: Vec<Uid>,
    pub(super) ready: Vec<(Uid, Origin)>,
}

impl Driver {
    pub(super) fn new(node: Node) -> Self {
        Self {
            node,
            memory: BTreeSet::new(),
        }
    }

    pub(super) fn step(
        &mut self,
        event: &Event,
        now_ms: i64,
        random: &mut dyn FnMut() -> u64,
        policy: MemoryPolicy,
    ) -> Results {
        let mut actions = Vec::new();
        self.node.step(event, now_ms, random, &mut actions);
        let mut results = Results::default();
        for action in actions {
            match action {
                Action::Send { to, message } => {
                    assert_ne!(to, self.node.id(), "a message to itself");
                    if let Message::Page { uid, .. } = message {
                        assert!(self.memory.contains(&uid), "sent without data: {uid:?}");
                    }
                    results.sent.push((to, message));
                }
                Action::Load { uid } => results.loads.push(uid),
                Action::Ready { uid, origin } => {
                    let had = !self.memory.insert(uid);
                    let is_own = matches!(origin, Origin::Local | Origin::OwnGlobal);
                    assert!(had || !is_own, "read without data: {uid:?}");
                    results.ready.push((uid, origin));
                }
                Action::Store { uid } => {
                    assert!(self.memory.insert(uid), "stored twice: {uid:?}");
                }
                Action::Drop { uid } => {
                    assert!(self.memory.remove(&uid), "dropped twice: {uid:?}");
                }
            }
        }
        self.check(event, &results, policy);
        results
    }

    fn check(&self, event: &Event, results: &Results, policy: MemoryPolicy) {
        let pages = self.node.pages();
        assert!(pages.len() <= pages.limit(), "more pages than frames");
        let resident: BTreeSet<Uid> = pages.iter().map(|page| page.uid).collect();
        assert_eq!(resident.len(), pages.len() as usize, "a page twice");
        assert_eq!(
            resident, self.memory,
            "pages without data, or data without pages"
        );
        let is_put = |message: &Message| matches!(message, Message::PutPage { .. });
        let puts = results
            .sent
            .iter()
            .filter(|(_, message)| is_put(message))
            .count();
        let received_put = matches!(event, Event::Message { message, .. } if is_put(message));
        // A put page that the node waits for ends the wait, and may thus cause an eviction.
        let may_put = !received_put || policy == MemoryPolicy::NChance || !results.ready.is_empty();
        let most = usize::from(may_put);
        assert!(puts <= most, "{puts} puts after {event:?}");
    }
}
