//! Checks the table in ARCHITECTURE.md's code map: which crates each crate may depend on, and which crates
//! alone may use a heavy dependency.

use super::members;
use std::collections::BTreeSet;
use std::fs;

/// Dependencies with I/O or a clock. The pure crates must not have them.
const IMPURE: [&str; 8] = [
    "rustix",
    "libc",
    "tokio",
    "memmap2",
    "tempfile",
    "rusqlite",
    "signal-hook",
    "jiff",
];

/// A row of the code map.
struct Row {
    layer: String,
    name: String,
    may_depend_on: BTreeSet<String>,
    isolates: BTreeSet<String>,
}

/// Rows of the table in the section "Code map", in their order.
fn code_map() -> Vec<Row> {
    let text = fs::read_to_string(gleaner_tests::repository().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once("\n## Code map\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let lines = section.lines().filter(|line| line.starts_with('|'));
    let mut rows: Vec<Row> = Vec::new();
    for line in lines.skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [layer, name, _, may_depend_on, isolates] = cells[..] else {
            panic!("the code map's row has {} cells: {line}", cells.len());
        };
        let above: BTreeSet<String> = rows.iter().map(|row| row.name.clone()).collect();
        rows.push(Row {
            layer: layer.to_owned(),
            name: name.to_owned(),
            may_depend_on: crates_of(may_depend_on, &above),
            isolates: list(isolates),
        });
    }
    rows
}

/// Names in a cell such as `a, b`; the cell "—" has none.
fn list(cell: &str) -> BTreeSet<String> {
    let names = cell.split(',').map(str::trim);
    let names = names.filter(|name| !["", "—"].contains(name));
    names.map(str::to_owned).collect()
}

/// Crates that a cell names: a list, or `all above`, or `all above but a, b`. `above` has the crates of the
/// rows above.
fn crates_of(cell: &str, above: &BTreeSet<String>) -> BTreeSet<String> {
    match cell.strip_prefix("all above") {
        Some(rest) => {
            let but = list(rest.trim().trim_start_matches("but "));
            assert!(but.is_subset(above), "{cell:?} names what is not above");
            above.difference(&but).cloned().collect()
        }
        None => list(cell),
    }
}

fn manifest(folder: &str) -> toml::Table {
    let path = gleaner_tests::repository().join(folder).join("Cargo.toml");
    fs::read_to_string(path).unwrap().parse().unwrap()
}

fn dependencies(folder: &str, sections: &[&str]) -> BTreeSet<String> {
    let manifest = manifest(folder);
    sections
        .iter()
        .filter_map(|s| manifest.get(*s)?.as_table())
        .flat_map(|t| t.keys().cloned())
        .collect()
}

#[test]
fn the_code_map_has_a_row_for_each_crate_below_those_that_it_may_depend_on() {
    let rows = code_map();
    let names: BTreeSet<String> = rows.iter().map(|row| row.name.clone()).collect();
    assert_eq!(names.len(), rows.len(), "a crate has two rows");
    assert_eq!(names, members().into_iter().collect());
    let mut above = BTreeSet::new();
    for row in rows {
        let (name, below) = (&row.name, row.may_depend_on.difference(&above));
        let below: Vec<_> = below.collect();
        assert!(
            below.is_empty(),
            "{name} may depend on {below:?}, which are not above it"
        );
        above.insert(row.name);
    }
}

#[test]
fn crates_depend_as_the_code_map_allows() {
    for row in code_map() {
        let name = &row.name;
        for dependency in dependencies(name, &["dependencies", "build-dependencies"]) {
            if let Some(ours) = dependency.strip_prefix("gleaner-") {
                assert!(
                    row.may_depend_on.contains(ours),
                    "{name} may not depend on {ours}"
                );
            }
        }
    }
}

#[test]
fn heavy_dependencies_stay_in_their_crates() {
    let rows = code_map();
    let heavy: BTreeSet<&String> = rows.iter().flat_map(|row| &row.isolates).collect();
    for needed in ["polars", "rusqlite", "axum", "tokio", "rcgen"] {
        assert!(
            heavy.contains(&needed.to_owned()),
            "nobody isolates {needed}"
        );
    }
    for row in &rows {
        let sections = ["dependencies", "build-dependencies", "dev-dependencies"];
        let named = dependencies(&row.name, &sections);
        let name = &row.name;
        for heavy in &heavy {
            let family = format!("{heavy}-"); // polars-arrow belongs to polars, too
            let names = named.iter().any(|n| n == *heavy || n.starts_with(&family));
            let may = row.isolates.contains(*heavy);
            assert!(
                !names || may,
                "{name} names {heavy}, which its row does not isolate"
            );
            assert!(
                names || !may,
                "{name} isolates {heavy}, which it does not name"
            );
        }
    }
}

/// Members of the workspace that enable a feature of the crate `of`, which is one of ours.
fn members_that_turn_on(feature: &str, of: &str) -> Vec<String> {
    let turns_on = |member: &String| {
        let dependency = manifest(member)["dependencies"].get(of).cloned();
        dependency.is_some_and(|d| d.to_string().contains(feature))
    };
    members().into_iter().filter(turns_on).collect()
}

#[test]
fn the_command_alone_carries_json_schemas() {
    assert_eq!(
        members_that_turn_on("json-schema", "gleaner-schemas"),
        ["cli"]
    );
}

#[test]
fn the_servers_alone_carry_the_http_server() {
    let servers = members_that_turn_on("listen", "gleaner-daemon");
    assert_eq!(servers, ["collector", "commons", "recruiter"]);
}

#[test]
fn pure_crates_cannot_reach_the_world() {
    let rows = code_map();
    let pure: Vec<&str> = rows
        .iter()
        .filter(|row| row.layer == "0 pure")
        .map(|row| row.name.as_str())
        .collect();
    for needed in ["schemas", "policy", "hosts"] {
        assert!(pure.contains(&needed), "{needed} is no longer pure");
    }
    for pure in pure {
        for dependency in dependencies(pure, &["dependencies"]) {
            assert!(
                !IMPURE.contains(&dependency.as_str()),
                "{pure} depends on {dependency}"
            );
        }
        let lints =
            fs::read_to_string(gleaner_tests::repository().join(pure).join("clippy.toml")).unwrap();
        for forbidden in [
            "std::time::SystemTime::now",
            "std::time::Instant::now",
            "std::fs::File::open",
        ] {
            assert!(
                lints.contains(forbidden),
                "{pure}/clippy.toml lets {forbidden} pass"
            );
        }
    }
}

#[test]
fn folders_are_crates_and_versions_stand_in_the_root_alone() {
    for member in members() {
        let manifest = manifest(&member);
        assert_eq!(
            manifest["package"]["name"].as_str(),
            Some(format!("gleaner-{member}").as_str())
        );
        for section in ["dependencies", "dev-dependencies"] {
            let Some(table) = manifest.get(section).and_then(toml::Value::as_table) else {
                continue;
            };
            for (name, value) in table {
                assert_eq!(
                    value.get("workspace").and_then(toml::Value::as_bool),
                    Some(true),
                    "{member}: {name} names a version of its own"
                );
            }
        }
    }
}
