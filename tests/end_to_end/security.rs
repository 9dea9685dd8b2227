//! SECURITY.md, held: each line of what somebody cannot do names tests, and those are there.

use std::fs;
use std::path::{Path, PathBuf};

/// Suites that are no crate of their own, and where they lie.
const SUITES: [(&str, &str); 3] = [
    ("end_to_end", "tests/end_to_end"),
    ("readers", "tests/readers"),
    ("guest", "tests/guest"),
];

/// The rows of tables whose last column is headed "shown by": what cannot be done, and the tests that are named for it.
fn promises(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut is_held = false;
    let mut promises = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["", _, "shown by", ""] => is_held = true,
            ["", rule, _, ""] if rule.starts_with("---") => {}
            ["", what, shown_by, ""] if is_held => {
                promises.push((*what, shown_by.split('`').skip(1).step_by(2).collect()));
            }
            _ => is_held = false,
        }
    }
    promises
}

/// Every source below a folder, but for what was built.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().unwrap() != "target" {
            found.extend(sources(&path));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found
}

/// Whether a source has a test of this name: an attribute says so in Rust, the name in Python, a call in the guest's script.
fn has_test(path: &Path, text: &str, name: &str) -> bool {
    match path.extension().and_then(|e| e.to_str()) {
        Some("rs") => {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let is_it = |line: &str| {
                let line = line.strip_prefix("async ").unwrap_or(line);
                line.strip_prefix("fn ")
                    .is_some_and(|rest| rest.strip_prefix(name).is_some_and(|r| r.starts_with('(')))
            };
            (0..lines.len()).filter(|i| is_it(lines[*i])).any(|i| {
                let before = lines[..i].iter().rev();
                let attributes: Vec<_> = before
                    .take_while(|l| l.starts_with("#[") || l.starts_with("//"))
                    .collect();
                let is = |start: &str| attributes.iter().any(|a| a.starts_with(start));
                (is("#[test]") || is("#[tokio::test")) && !is("#[ignore")
            })
        }
        Some("py") => name.starts_with("test_") && text.contains(&format!("\ndef {name}(")),
        None => text
            .lines()
            .any(|line| line.starts_with("passes ") && line.split(' ').next_back() == Some(name)),
        _ => false,
    }
}

/// Whether `crate::module::test` is there: each word between is a folder or a file on the way to it.
fn exists(reference: &str) -> bool {
    let words: Vec<&str> = reference.split("::").collect();
    let [place, modules @ .., name] = words.as_slice() else {
        return false;
    };
    let suite = SUITES.iter().find(|(suite, _)| suite == place);
    let folder = gleaner_tests::repository().join(suite.map_or(*place, |(_, folder)| *folder));
    if !folder.is_dir() {
        return false;
    }
    sources(&folder).iter().any(|path| {
        let below = path.strip_prefix(&folder).unwrap().with_extension("");
        let has = |module: &&str| below.iter().any(|part| part == *module);
        modules.iter().all(has)
            && fs::read_to_string(path).is_ok_and(|text| has_test(path, &text, name))
    })
}

#[test]
fn what_nobody_can_do_is_shown_by_tests_that_exist() {
    let text = fs::read_to_string(gleaner_tests::repository().join("SECURITY.md")).unwrap();
    let promises = promises(&text);
    assert!(promises.len() > 40, "{} lines are held", promises.len());
    for (what, tests) in promises {
        assert!(!tests.is_empty(), "no test stands behind {what:?}");
        for test in tests {
            assert!(exists(test), "{what:?} names {test}, which is no test");
        }
    }
}

#[test]
fn a_line_without_a_test_and_a_test_that_is_none_are_told() {
    let text = "| a | shown by |\n| --- | --- |\n| x | `trust::tokens::a_token_expires`, `b` |\n| y | |\n\n| a | b |\n| z | `c` |\n";
    assert_eq!(
        promises(text),
        [
            ("x", vec!["trust::tokens::a_token_expires", "b"]),
            ("y", vec![])
        ]
    );
    assert!(exists("trust::tokens::a_token_expires"));
    assert!(exists("trust::a_token_expires"));
    assert!(exists(
        "readers::test_recruiter_api::test_schemathesis_finds_no_fault"
    ));
    assert!(exists("guest::the_socket_is_for_owner_and_group"));
    for none in [
        "a_token_expires",
        "trust::handshake::a_token_expires", // elsewhere
        "trust::tokens::a_token_expire",
        "trust::deployment::host", // no test
        "collector::tokens::a_token_expires",
        "nowhere::a_token_expires",
        "guest::until_true",
    ] {
        assert!(!exists(none), "{none}");
    }
}
