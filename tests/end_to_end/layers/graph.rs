//! Finds circles in a graph of uses, in which each node uses others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An edge of the graph: a node, and another that it uses.
pub(super) type Arrow = (String, String);

/// Nodes that are on a circle.
pub(super) fn in_circles(arrows: &BTreeSet<Arrow>) -> BTreeSet<String> {
    let users = arrows.iter().map(|(user, _)| user);
    let on_circle = users.filter(|user| !circle(arrows, user).is_empty());
    on_circle.cloned().collect()
}

/// A shortest circle through `start`: from `start` to the last node, which uses `start`. It is empty if there
/// is none.
pub(super) fn circle(arrows: &BTreeSet<Arrow>, start: &str) -> Vec<String> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(user) = waiting.pop_front() {
        for (_, used) in arrows.iter().filter(|(from, _)| from == user) {
            if used == start {
                let mut circle = vec![user.to_owned()];
                while let Some(before) = came_from.get(circle[circle.len() - 1].as_str()) {
                    circle.push((*before).to_owned());
                }
                circle.reverse();
                return circle;
            }
            if !came_from.contains_key(used.as_str()) {
                came_from.insert(used, user);
                waiting.push_back(used);
            }
        }
    }
    Vec::new()
}

#[test]
fn a_circle_is_found_whole_and_what_leads_to_it_is_not_on_it() {
    let arrow = |(a, b): (&str, &str)| (a.to_owned(), b.to_owned());
    let arrows = [
        ("top", "a"),
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
        ("c", "leaf"),
    ];
    let mut arrows: BTreeSet<Arrow> = arrows.map(arrow).into();
    assert_eq!(circle(&arrows, "b"), ["b", "c", "a"]);
    assert_eq!(circle(&arrows, "top"), [""; 0]);
    assert_eq!(Vec::from_iter(in_circles(&arrows)), ["a", "b", "c"]);
    arrows.remove(&arrow(("c", "a")));
    assert_eq!(in_circles(&arrows), BTreeSet::new());
}
