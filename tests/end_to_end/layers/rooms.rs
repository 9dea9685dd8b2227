//! Checks the rooms, which are the top-level modules of a crate. The documentation of each crate's root
//! declares their order: a room may use only rooms after it. Files must not use each other in circles, except
//! for parents and children.

use super::graph::{circle, in_circles};
use super::members;
use super::sources::Sources;
use std::collections::BTreeSet;
use std::fs;

/// Start of the paragraph that declares the order of rooms, in the documentation of a crate's root. The
/// rooms' names follow in backticks.
const DECLARES: &str = "//! Rooms, from the top; each uses only those after it:";

/// Describes faults in the rooms of a crate: circles, uses of a room above, and differences between the
/// declared rooms and the crate's.
fn faults_of(sources: &Sources, order: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let declared: BTreeSet<&String> = order.iter().collect();
    let rooms: BTreeSet<&String> = sources.rooms().iter().collect();
    if declared != rooms || declared.len() != order.len() {
        found.push(format!(
            "its rooms are {rooms:?}, and the declared order is {order:?}"
        ));
    }
    let files = sources.between_files();
    for file in in_circles(&files) {
        found.push(format!(
            "a circle of files: {}",
            circle(&files, &file).join(" uses ")
        ));
    }
    let place = |room: &String| order.iter().position(|r| r == room);
    for ((user, used), files) in &sources.between_rooms() {
        if place(user) > place(used) {
            found.push(format!(
                "{user} uses {used}, which is above it, in {files:?}"
            ));
        }
    }
    found
}

/// Names of the rooms in the order in which the crate's root declares them.
fn declared(root: &str) -> Vec<String> {
    let documentation = root.lines().filter(|line| line.starts_with("//!"));
    let from = documentation.skip_while(|line| !line.starts_with(DECLARES));
    let paragraph: Vec<&str> = from.take_while(|line| line.len() > "//!".len()).collect();
    let text = paragraph.join(" ");
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

fn faults(name: &str) -> Vec<String> {
    let src = gleaner_tests::repository().join(name).join("src");
    let root = fs::read_to_string(src.join("lib.rs"));
    let root = root.or_else(|_| fs::read_to_string(src.join("main.rs")));
    faults_of(&Sources::of_crate(name), &declared(&root.unwrap()))
}

#[test]
fn rooms_point_down_and_files_use_each_other_in_no_circle() {
    let mut found = Vec::new();
    for member in members() {
        let faults = faults(&member).into_iter();
        found.extend(faults.map(|fault| format!("{member}: {fault}")));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

mod made_up {
    use super::*;

    /// Faults of an invented crate with these files.
    fn made(files: &[(&str, &str)]) -> Vec<String> {
        let text = |name: &str| {
            let file = files.iter().find(|(file, _)| *file == name);
            file.map(|(_, text)| (*text).to_owned())
        };
        let root = text("lib.rs").unwrap();
        faults_of(&Sources::read("lib.rs", &text), &declared(&root))
    }

    const ROOT: &str = "//! A crate.\n//!\n\
        //! Rooms, from the top; each uses only those after it: `top`,\n//! `low`.\n//!\n//! And `more`.\n\
        mod low;\nmod top;\npub use top::act::Act;\npub fn shared() {}\n";

    #[test]
    fn a_crate_in_order_has_no_fault() {
        let found = made(&[
            ("lib.rs", ROOT),
            (
                "top/mod.rs",
                "mod act; pub(crate) use act::Act; use crate::low::Low; use super::shared;",
            ),
            (
                "top/act.rs",
                "use super::helper; /* crate::top */ pub struct Act(crate::low::Low);",
            ),
            (
                "low.rs",
                "// use crate::top::act::Act;\n pub struct Low; const TEXT: &str = \"crate::Act\";\n\
                 fn low() -> char { crate::shared(); '\"' }\n\
                 #[cfg(test)] mod tests { use crate::Act; }\n#[cfg(test)] #[allow(x)] use crate::top::{Act};",
            ),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn an_arrow_up_is_found_however_it_is_written() {
        for low in [
            "use crate::top::act::Act;",
            "use crate::Act;",
            "use super::{top::act, shared}; type A = act::Act;",
            "fn low() { print!(\"{}\", crate::top::act::Act::NEW); }",
            "use crate::top; type A = Option<top::Act>;",
            "use crate::top::*;",
            "mod inner { use super::super::Act as _; }",
            "pub(in crate::low) const fn f(a: *const crate::Act) {}",
        ] {
            let found = made(&[
                ("lib.rs", ROOT),
                ("top/mod.rs", "mod act; pub use act::*;"),
                ("top/act.rs", "pub struct Act;"),
                ("low.rs", low),
            ]);
            let up = "low uses top, which is above it, in {\"low.rs\"}";
            assert_eq!(found, [up], "{low}");
        }
    }

    #[test]
    fn a_circle_within_a_room_is_found_and_parents_are_none() {
        let found = made(&[
            ("lib.rs", ROOT),
            (
                "top/mod.rs",
                "mod act; mod b; pub use b::B; use act::Act; fn of_parent() {}",
            ),
            (
                "top/act.rs",
                "use super::B; pub struct Act; fn f() { super::of_parent() }",
            ),
            ("top/b.rs", "pub struct B; type A = crate::Act;"),
            ("low.rs", ""),
        ]);
        let circle = "a circle of files: top/act.rs uses top/b.rs";
        assert_eq!(
            found,
            [circle, "a circle of files: top/b.rs uses top/act.rs"]
        );
    }

    #[test]
    fn a_room_without_a_place_is_a_fault() {
        let root = ROOT.replace("`low`", "`lower`");
        let found = made(&[("lib.rs", &root), ("top.rs", ""), ("low.rs", "")]);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
