//! Pages whose data are lost with their frames, and pages that cannot be read from their source.

use super::uid;
use crate::global::directory::{Holder, Stamp};
use crate::global::members::{Member, Members};
use crate::global::message::{Action, Event, Message};
use crate::global::node::Node;
use crate::global::settings::Settings;
use std::sync::Arc;

/// Node 1 alone, which keeps the directory of all pages.
fn lone_node() -> Node {
    let mut node = Node::new(1, 1, 4, Settings::default(), 0);
    let member = Member {
        node: 1,
        generation: 1,
        frames: 4,
    };
    let members = Arc::new(Members::new(vec![member], 0));
    act(&mut node, &Event::Members(members));
    node
}

fn act(node: &mut Node, event: &Event) -> Vec<Action> {
    let mut actions = Vec::new();
    node.step(event, 1, &mut || 0, &mut actions);
    actions
}

#[test]
fn a_page_without_a_source_ends_the_wait_of_others_and_may_be_read_again() {
    let mut node = lone_node();
    let uid = uid(7);
    assert_eq!(act(&mut node, &Event::Read { uid }), [Action::Load { uid }]);
    // Node 2 is no member, so it is not entered; the page is on its way here, so node 2 waits.
    let reader = Holder {
        node: 2,
        generation: 1,
        stamp: Stamp::default().next(false),
    };
    let message = Message::GetPage { uid, reader };
    assert!(act(&mut node, &Event::Message { from: 2, message }).is_empty());
    let miss = Action::Send {
        to: 2,
        message: Message::Miss { uid, reader },
    };
    assert_eq!(act(&mut node, &Event::Failed { uid }), [miss]);
    assert!(!node.is_fetching(uid) && node.directory().is_empty());
    assert_eq!(act(&mut node, &Event::Read { uid }), [Action::Load { uid }]);
}

#[test]
fn a_lost_page_of_any_kind_leaves_the_node_and_the_directory() {
    let mut node = lone_node();
    let (read, put) = (uid(7), uid(8));
    act(&mut node, &Event::Read { uid: read });
    act(&mut node, &Event::Loaded { uid: read });
    let message = Message::PutPage {
        uid: put,
        age_ms: 5,
        chances: 0,
    };
    act(&mut node, &Event::Message { from: 2, message });
    assert_eq!((node.pages().len(), node.directory().len()), (2, 2));
    for uid in [read, put] {
        let dropped = act(&mut node, &Event::Lost { uid });
        assert_eq!(dropped, [Action::Drop { uid }]);
        assert!(act(&mut node, &Event::Lost { uid }).is_empty());
    }
    assert!(node.pages().is_empty() && node.directory().is_empty());
}
