//! What is published stays: each version's fixtures are only ever added to.
#![allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)] // a test, not the pure crate

use gleaner_schemas::{arrow, markdown, sql};

/// On a mismatch the new text is left under `target/` to look at and, for a new version, to adopt.
#[track_caller]
fn equal(published: &str, now: &str, path: &str) {
    if published != now {
        let fresh = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(path.replace('/', "-"));
        std::fs::write(&fresh, now).unwrap();
        panic!(
            "{path} is not what the code makes; that is in {}",
            fresh.display()
        );
    }
}

#[test]
fn sqlite_ddl_of_version_1() {
    equal(
        include_str!("../golden/v1/tables.sql"),
        &sql::migrations()[0],
        "schemas/golden/v1/tables.sql",
    );
}

#[test]
fn arrow_schemas_of_version_1() {
    equal(
        include_str!("../golden/v1/arrow.json"),
        &arrow::golden_json(),
        "schemas/golden/v1/arrow.json",
    );
}

#[test]
fn published_description() {
    equal(
        include_str!("../SCHEMA.md"),
        &markdown::schema(),
        "schemas/SCHEMA.md",
    );
}
