//! Published versions stay readable: what they have published is only ever added to.
#![allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)] // a test, not the pure crate

use gleaner_schemas::{arrow, json_schema, markdown, renames};

/// Compares a published file with the text that the code makes now. On a mismatch, the new text is written
/// under `target/`, to look at and, for a new version, to adopt.
#[track_caller]
fn equal(published: &str, now: &str, path: &str) {
    if published != now {
        let fresh = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(path.replace('/', "-"));
        std::fs::write(&fresh, now).unwrap();
        panic!(
            "{path} is not what the code makes; to renew it: cp {} {path}",
            fresh.display()
        );
    }
}

#[test]
fn arrow_schemas_of_version_7() {
    equal(
        include_str!("../golden/v7/arrow.json"),
        &arrow::golden_json(),
        "schemas/golden/v7/arrow.json",
    );
}

#[test]
fn every_earlier_column_is_as_it_was_or_renamed_and_later_ones_may_be_absent() {
    type Tables = serde_json::Map<String, serde_json::Value>;
    let now: Tables = serde_json::from_str(&arrow::golden_json()).unwrap();
    for earlier in [
        include_str!("../golden/v1/arrow.json"),
        include_str!("../golden/v2/arrow.json"),
        include_str!("../golden/v3/arrow.json"),
        include_str!("../golden/v4/arrow.json"),
        include_str!("../golden/v5/arrow.json"),
        include_str!("../golden/v6/arrow.json"),
    ] {
        let earlier: Tables = serde_json::from_str(earlier).unwrap();
        for (table, columns) in &earlier {
            let columns = columns.as_array().unwrap();
            let table = renames::table_name(table);
            let (as_before, added) = now[table].as_array().unwrap().split_at(columns.len());
            for (now, before) in as_before.iter().zip(columns) {
                let name = before["name"].as_str().unwrap();
                let present = renames::column_name(table, name);
                assert_eq!(now["name"], present, "{table}");
                assert_eq!(now["type"], before["type"], "{table}.{name}");
                // A column may have been renamed because its name had another unit than its values.
                assert!(
                    now["unit"] == before["unit"] || present != name,
                    "{table}.{name}"
                );
                // A column that could be absent still can. Version 4 allows further columns of foreign traces
                // to be absent.
                assert!(
                    now["nullable"] == true || before["nullable"] == false,
                    "{table}: {now}"
                );
            }
            assert!(added.iter().all(|c| c["nullable"] == true), "{table}");
        }
    }
}

#[test]
fn every_key_of_the_findings_is_explained() {
    let page = include_str!("../../docs/analysis.md");
    let keys = gleaner_schemas::findings::Findings::keys();
    let missing = |key: &&String| !page.contains(&format!("`{key}`"));
    let missing: Vec<_> = keys.iter().filter(missing).collect();
    assert!(missing.is_empty(), "docs/analysis.md lacks {missing:?}");
    assert!(keys.len() > 30, "{keys:?}");
}

#[test]
fn published_description() {
    equal(
        include_str!("../SCHEMA.md"),
        &markdown::schema(),
        "schemas/SCHEMA.md",
    );
}

/// A change that takes a field away or gives it another meaning raises `FINDINGS_VERSION`.
#[test]
fn published_json_schema_of_the_findings() {
    equal(
        include_str!("../findings.schema.json"),
        &json_schema::findings(),
        "schemas/findings.schema.json",
    );
}

#[test]
fn published_json_schema_of_the_explanation() {
    equal(
        include_str!("../explanation.schema.json"),
        &json_schema::explanation(),
        "schemas/explanation.schema.json",
    );
}

/// The same rule as for the findings applies to the diagnosis: such a change raises `DIAGNOSIS_VERSION`.
#[test]
fn published_json_schema_of_the_diagnosis() {
    equal(
        include_str!("../diagnosis.schema.json"),
        &json_schema::diagnosis(),
        "schemas/diagnosis.schema.json",
    );
}

/// The same rule as for the findings applies to the counts of caches: such a change raises
/// `CACHE_REPLAY_VERSION`.
#[test]
fn published_json_schema_of_the_counts_of_caches() {
    equal(
        include_str!("../cache.schema.json"),
        &json_schema::cache_replay(),
        "schemas/cache.schema.json",
    );
}

/// The same rule as for the findings applies to curves and predictions: such a change raises `CURVE_VERSION`.
#[test]
fn published_json_schemas_of_curves_and_predictions() {
    equal(
        include_str!("../curve.schema.json"),
        &json_schema::curve(),
        "schemas/curve.schema.json",
    );
    equal(
        include_str!("../predictions.schema.json"),
        &json_schema::predictions(),
        "schemas/predictions.schema.json",
    );
}
