//! The layers of ARCHITECTURE.md, held: which crate may depend on which, and who may name a heavy
//! dependency.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Crate → the crates of ours that it may depend on. A new crate is added here first.
const MAY_DEPEND_ON: [(&str, &[&str]); 18] = [
    ("harness", &[]),
    ("schemas", &[]),
    ("policy", &["schemas"]),
    ("hosts", &["schemas", "policy"]),
    ("dataset", &["schemas"]),
    ("traces", &["schemas", "policy", "dataset"]),
    ("trust", &[]),
    ("daemon", &["schemas"]),
    ("listen", &["trust", "daemon"]),
    (
        "recruiter",
        &["schemas", "policy", "trust", "listen", "daemon"],
    ),
    ("paging", &["schemas", "policy", "hosts", "trust", "daemon"]),
    ("regions", &["schemas", "policy", "trust", "paging"]),
    ("simulator", &["schemas", "policy", "hosts", "dataset"]),
    (
        "agent",
        &["schemas", "policy", "dataset", "trust", "daemon"],
    ),
    (
        "collector",
        &[
            "schemas", "policy", "hosts", "dataset", "trust", "listen", "daemon",
        ],
    ),
    ("analysis", &["schemas", "policy", "hosts", "dataset"]),
    ("reports", &["schemas"]),
    (
        "cli",
        &[
            "schemas",
            "policy",
            "hosts",
            "dataset",
            "traces",
            "trust",
            "daemon",
            "agent",
            "collector",
            "recruiter",
            "paging",
            "simulator",
            "analysis",
            "reports",
        ],
    ),
];

/// Heavy dependency → the only crates that may name it.
const ISOLATED: [(&str, &[&str]); 11] = [
    ("polars", &["analysis"]),
    ("polars-arrow", &["analysis"]),
    ("plotly", &["reports"]),
    ("parquet", &["traces"]),
    ("rusqlite", &["agent", "tests"]),
    ("axum", &["listen", "collector", "recruiter"]),
    ("tokio", &["listen", "collector", "recruiter", "paging"]),
    ("rcgen", &["trust"]),
    ("object_store", &["collector"]),
    ("ratatui", &["cli"]),
    ("schemars", &["schemas"]), // and there by a feature
];

/// Dependencies that reach the world, which the pure crates must not have.
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

fn dependencies(folder: &str, sections: &[&str]) -> BTreeSet<String> {
    let path = gleaner_tests::repository().join(folder).join("Cargo.toml");
    let manifest: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
    sections
        .iter()
        .filter_map(|s| manifest.get(*s)?.as_table())
        .flat_map(|t| t.keys().cloned())
        .collect()
}

fn members() -> Vec<String> {
    let path = gleaner_tests::repository().join("Cargo.toml");
    let manifest: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
    manifest["workspace"]["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn crates_depend_downwards_only() {
    let allowed: BTreeMap<_, _> = MAY_DEPEND_ON.into_iter().collect();
    for member in members().iter().filter(|m| *m != "tests") {
        let allowed = allowed
            .get(member.as_str())
            .unwrap_or_else(|| panic!("{member} has no layer"));
        for dependency in dependencies(member, &["dependencies", "build-dependencies"]) {
            let Some(ours) = dependency.strip_prefix("gleaner-") else {
                continue;
            };
            assert!(allowed.contains(&ours), "{member} may not depend on {ours}");
        }
    }
}

#[test]
fn heavy_dependencies_stay_in_their_crate() {
    for member in members() {
        let named = dependencies(
            &member,
            &["dependencies", "build-dependencies", "dev-dependencies"],
        );
        for (heavy, crates) in ISOLATED {
            assert!(
                !named.contains(heavy) || crates.contains(&member.as_str()),
                "{member} names {heavy}, which only {crates:?} may"
            );
        }
    }
}

#[test]
fn the_command_alone_carries_json_schemas() {
    for member in members() {
        let path = gleaner_tests::repository().join(&member).join("Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
        let dependency = manifest["dependencies"].get("gleaner-schemas");
        let turned_on = dependency.is_some_and(|d| d.to_string().contains("json-schema"));
        assert_eq!(turned_on, member == "cli", "{member}");
    }
}

#[test]
fn pure_crates_cannot_reach_the_world() {
    for pure in ["schemas", "policy", "hosts"] {
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
        let path = gleaner_tests::repository().join(&member).join("Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
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
