//! Checks the lists in CONTRIBUTING.md of the files to edit for a new finding, policy, importer, program or
//! transport: each list is compared with the files that its example is in.

use gleaner_tests::repository;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A list of files in CONTRIBUTING.md, and the existing feature that is its example.
struct Recipe {
    /// Start of the list's first line.
    title: &'static str,
    /// Words in sources by which the example is found.
    names: &'static [&'static str],
    /// Crates that are searched; all if empty.
    crates: &'static [&'static str],
    /// True if the names may also stand in test modules; false if test modules are not searched.
    with_tests: bool,
    /// Maximum number of files that the list may have.
    most: usize,
}

/// The example is the finding `reclaims_by_hour`. It is found by its key, by its record, and by the function
/// that draws it.
const FINDING: Recipe = Recipe {
    title: "- A new finding",
    names: &["reclaims_by_hour", "ReclaimsByHour", "reclaims::by_hour"],
    crates: &[],
    with_tests: true,
    most: 8,
};

const EVICTION: Recipe = Recipe {
    title: "- A new eviction policy",
    names: &["sieve"],
    crates: &[],
    with_tests: false,
    most: 3,
};

const IMPORTER: Recipe = Recipe {
    title: "- A new importer",
    names: &["materna", "Materna"],
    crates: &[],
    with_tests: true,
    most: 6,
};

const PROGRAM: Recipe = Recipe {
    title: "- A new simulated program",
    names: &["hotcold"],
    crates: &[],
    with_tests: false,
    most: 3,
};

/// The example is TCP. It is found by the variants of connections, by the configuration, and in the pages
/// that explain it.
const TRANSPORT: Recipe = Recipe {
    title: "- A new transport",
    names: &[
        "Tcp(",
        "stream: &TcpStream",
        "listen: Option<SocketAddr>",
        "# listen = \"auto\"",
        "--listen /run/pages.sock",
    ],
    crates: &["paging", "regions"],
    with_tests: false,
    most: 8,
};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Files that are named in the numbered list below `title`.
fn listed(title: &str) -> BTreeSet<String> {
    let page = fs::read_to_string(repository().join("CONTRIBUTING.md")).unwrap();
    let (_, section) = page.split_once(title).unwrap();
    let lines = section.lines().take_while(|line| !line.starts_with("- "));
    let numbered = lines.filter_map(|line| {
        let (number, rest) = line.trim_start().split_once(". `")?;
        number.parse::<usize>().ok()?;
        rest.split_once('`').map(|(file, _)| file.to_owned())
    });
    numbered.collect()
}

/// The text of a file up to its test module, which is the last item.
fn without_tests(text: &str) -> &str {
    let mut tests = text.match_indices("#[cfg(test)]\n").filter(|(at, _)| {
        let mut after = text[*at..].lines();
        let item = after.find(|line| !line.starts_with("#["));
        item.is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    });
    tests.next().map_or(text, |(at, _)| &text[..at])
}

impl Recipe {
    /// Returns true if a word of the example is in the name or the text of the file. `path` is relative to
    /// the repository.
    fn is_named(&self, path: &str) -> bool {
        let text = fs::read_to_string(repository().join(path)).unwrap();
        let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
        let text = match self.with_tests {
            true => &text[..],
            false if is_test => "",
            false => without_tests(&text),
        };
        let mut names = self.names.iter();
        names.any(|name| text.contains(name) || path.ends_with(&format!("/{name}.rs")))
    }

    #[track_caller]
    fn check(&self) {
        let listed = listed(self.title);
        assert!((1..=self.most).contains(&listed.len()), "{listed:?}");
        for file in &listed {
            assert!(self.is_named(file), "{file} does not name it");
        }
        let root = repository();
        let mut files = Vec::new();
        for member in fs::read_dir(&root).unwrap() {
            let member = member.unwrap();
            let name = member.file_name();
            let is_searched = self.crates.is_empty() || self.crates.iter().any(|one| name == *one);
            let source = member.path().join("src");
            if is_searched && source.is_dir() {
                sources(&source, &mut files);
            }
        }
        for path in files {
            let file = path.strip_prefix(&root).unwrap().display().to_string();
            let is_listed = listed.contains(&file) || !self.is_named(&file);
            assert!(is_listed, "{file} names it as well");
        }
    }
}

#[test]
fn a_finding_takes_the_files_that_contributing_lists() {
    FINDING.check();
}

#[test]
fn an_eviction_policy_takes_the_files_that_contributing_lists() {
    EVICTION.check();
}

#[test]
fn an_importer_takes_the_files_that_contributing_lists() {
    IMPORTER.check();
}

#[test]
fn a_simulated_program_takes_the_files_that_contributing_lists() {
    PROGRAM.check();
}

#[test]
fn a_transport_takes_the_files_that_contributing_lists() {
    TRANSPORT.check();
}
