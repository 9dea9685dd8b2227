//! The files that a new finding takes, by the example of CONTRIBUTING.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The example: its key, its record, and the function that draws it.
const NAMES: [&str; 3] = ["reclaims_by_hour", "ReclaimsByHour", "reclaims::by_hour"];

/// Most files by hand.
const MOST: usize = 8;

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

#[test]
fn a_finding_takes_the_files_that_contributing_lists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let (_, section) = page.split_once("- A new finding").unwrap();
    let lines = section.lines().take_while(|line| !line.starts_with("- "));
    let numbered = lines.filter_map(|line| {
        let (number, rest) = line.trim_start().split_once(". `")?;
        number.parse::<usize>().ok()?;
        rest.split_once('`').map(|(file, _)| file.to_owned())
    });
    let listed: BTreeSet<String> = numbered.collect();
    assert!((1..=MOST).contains(&listed.len()), "{listed:?}");

    let names_it = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        NAMES.iter().any(|name| text.contains(name))
    };
    for file in &listed {
        assert!(names_it(&root.join(file)), "{file} does not name it");
    }
    let mut files = Vec::new();
    for member in fs::read_dir(root).unwrap() {
        let source = member.unwrap().path().join("src");
        if source.is_dir() {
            sources(&source, &mut files);
        }
    }
    for path in files.into_iter().filter(|path| names_it(path)) {
        let file = path.strip_prefix(root).unwrap().display().to_string();
        assert!(listed.contains(&file), "{file} names it as well");
    }
}
