//! Checks SECURITY.md and docs/promises.md: each claim there, about what an attacker cannot do or what is
//! promised, names tests. These tests must exist.

use std::fs;
use std::path::{Path, PathBuf};

/// Test suites that do not belong to a crate, and their folders.
const SUITES: [(&str, &str); 3] = [
    ("end_to_end", "tests/end_to_end"),
    ("readers", "tests/readers"),
    ("guest", "tests/guest"),
];

/// Rows of the tables whose last column has the heading "shown by". Each is a claim, with the tests named for
/// it.
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

/// Paths of all sources below a folder, without build output.
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

/// Names of the tests in a source. A test is recognised by its attribute in Rust, by its name in Python, and
/// by a call in the guest's script.
fn tests_in<'a>(path: &Path, text: &'a str) -> Vec<&'a str> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("rs") => {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let is_test = |at: usize| {
                let before = lines[..at].iter().rev();
                let attributes: Vec<_> = before
                    .take_while(|l| l.starts_with("#[") || l.starts_with("//"))
                    .collect();
                let is = |start: &str| attributes.iter().any(|a| a.starts_with(start));
                (is("#[test]") || is("#[tokio::test")) && !is("#[ignore")
            };
            let name = |at: usize| {
                let line = lines[at].strip_prefix("async ").unwrap_or(lines[at]);
                let (name, _) = line.strip_prefix("fn ")?.split_once('(')?;
                is_test(at).then_some(name)
            };
            (0..lines.len()).filter_map(name).collect()
        }
        Some("py") => text
            .lines()
            .filter_map(|line| line.strip_prefix("def ")?.split_once('('))
            .map(|(name, _)| name)
            .filter(|name| name.starts_with("test_"))
            .collect(),
        None => text
            .lines()
            .filter(|line| line.starts_with("passes "))
            .filter_map(|line| line.split(' ').next_back())
            .collect(),
        _ => Vec::new(),
    }
}

/// Counts the tests to which `crate::module::test` may refer: those with this name, and those in a module
/// with this name. Each word before the last is a folder or file on the path. If the last word ends with "…",
/// it is only the start of a test's name.
fn tests_of(reference: &str) -> (usize, usize) {
    let words: Vec<&str> = reference.split("::").collect();
    let [place, modules @ .., name] = words.as_slice() else {
        return (0, 0);
    };
    let suite = SUITES.iter().find(|(suite, _)| suite == place);
    let folder = gleaner_tests::repository().join(suite.map_or(*place, |(_, folder)| *folder));
    if !folder.is_dir() {
        return (0, 0);
    }
    let is_it = |test: &str| match name.strip_suffix('…') {
        Some(start) => test.starts_with(start),
        None => test == *name,
    };
    let (mut of_name, mut of_module) = (0, 0);
    for path in sources(&folder) {
        let below = path.strip_prefix(&folder).unwrap().with_extension("");
        let has = |module: &&str| below.iter().any(|part| part == *module);
        if !modules.iter().all(has) {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let tests = tests_in(&path, &text);
        of_name += tests.iter().filter(|test| is_it(test)).count();
        of_module += if has(name) { tests.len() } else { 0 };
    }
    (of_name, of_module)
}

/// Returns true if `crate::module::test` is a test.
fn exists(reference: &str) -> bool {
    tests_of(reference).0 > 0
}

/// Describes what is wrong with a name in docs/promises.md; `None` if it is a test, a file or folder of the
/// repository, or a command.
fn fault(name: &str) -> Option<String> {
    const COMMANDS: [&str; 3] = ["make", "gleaner", "time"];
    if name.contains("::") {
        return match tests_of(name) {
            (0, 0) => Some("is no test and no module with tests".to_owned()),
            (2.., _) if name.ends_with('…') => {
                Some("is the beginning of several tests".to_owned())
            }
            _ => None,
        };
    }
    let first = name.split([' ', '=']).next().unwrap_or_default();
    let is_variable = first.starts_with("GLEANER_");
    if is_variable || COMMANDS.contains(&first) {
        return None;
    }
    let is_file = gleaner_tests::repository().join(name).exists();
    (!is_file).then(|| "is no test, no file of the repository and no command".to_owned())
}

#[test]
fn what_is_promised_is_shown_by_tests_and_benches_that_exist() {
    let text = fs::read_to_string(gleaner_tests::repository().join("docs/promises.md")).unwrap();
    let promises = promises(&text);
    assert!(promises.len() > 100, "{} lines are held", promises.len());
    let mut faults = Vec::new();
    for (what, names) in promises {
        if names.is_empty() {
            faults.push(format!("nothing stands behind {what:?}"));
        }
        let wrong = names.iter().filter_map(|name| Some((name, fault(name)?)));
        faults.extend(wrong.map(|(name, why)| format!("{what:?} names {name}, which {why}")));
    }
    assert!(faults.is_empty(), "{faults:#?}");
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
    assert_eq!(tests_of("trust::tokens::a_token_expi…"), (1, 0));
    assert!(tests_of("trust::tokens::a_token_…").0 > 1);
    assert!(tests_of("trust::tokens").1 > 5 && !exists("trust::tokens"));
    for none in [
        "trust::tokens::b…",
        "trust::nowhere",
        "tests/nowhere",
        "tokens",
    ] {
        assert!(fault(none).is_some(), "{none}");
    }
    assert!(fault("trust::tokens::a_token_…").is_some());
    assert_eq!(fault("bench/reclaim.py"), None);
    for none in [
        "a_token_expires",
        "trust::handshake::a_token_expires", // the test is in another file
        "trust::tokens::a_token_expire",
        "trust::deployment::host", // there is no such test
        "collector::tokens::a_token_expires",
        "nowhere::a_token_expires",
        "guest::until_true",
    ] {
        assert!(!exists(none), "{none}");
    }
}
