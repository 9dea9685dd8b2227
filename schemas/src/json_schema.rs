//! The published JSON Schemas (draft 2020-12) of documents for programs: the findings, the explanation, the
//! diagnosis, the counts of caches, and the curves of programs.
//!
//! The schemas are made from the types in [`crate::findings`], [`crate::diagnosis`], [`crate::cache_replay`] and
//! [`crate::curve`], and from their doc comments. Records allow no further fields. Validation with the
//! schema of the version in use therefore finds every field that the schema does not describe.

use crate::cache_replay::{CACHE_REPLAY_VERSION, CacheReplay};
use crate::curve::{CURVE_VERSION, Curve, Measurements, Predictions};
use crate::diagnosis::{DIAGNOSIS_VERSION, Diagnosis};
use crate::findings::{Explanation, FINDINGS_VERSION, Findings, RecordFiles};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// Schema of the output of `gleaner analyze --json`. With `--records`, the document has the member `records`,
/// which is no list of the findings.
#[must_use]
pub fn findings() -> String {
    let mut generator = generator();
    let mut records = generator.subschema_for::<RecordFiles>();
    let about = "Files with the records of single hosts; absent if the lists have these records.";
    records.insert("description".into(), about.into());
    let mut schema = generator.into_root_schema_for::<Findings>();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert("records".into(), records.to_value());
    }
    printed(
        schema,
        "findings",
        FINDINGS_VERSION,
        "Findings of gleaner analyze --json",
        "docs/analysis.md",
    )
}

/// Schema of the output of `gleaner explain --json`.
#[must_use]
pub fn explanation() -> String {
    published::<Explanation>(
        "explanation",
        FINDINGS_VERSION,
        "Explanation of gleaner explain --json",
        "docs/analysis.md",
    )
}

/// Schema of the output of `gleaner doctor --json`.
#[must_use]
pub fn diagnosis() -> String {
    published::<Diagnosis>(
        "diagnosis",
        DIAGNOSIS_VERSION,
        "Diagnosis of gleaner doctor --json",
        "docs/doctor.md",
    )
}

/// Schema of the output of `gleaner cache --json`.
#[must_use]
pub fn cache_replay() -> String {
    published::<CacheReplay>(
        "cache",
        CACHE_REPLAY_VERSION,
        "Counts of gleaner cache --json",
        "docs/streams.md",
    )
}

/// Schema of the curves that `gleaner curve record` writes and `gleaner curve show --json` prints.
#[must_use]
pub fn curve() -> String {
    published::<Curve>(
        "curve",
        CURVE_VERSION,
        "Curve of gleaner curve record",
        "docs/curve.md",
    )
}

/// Schema of the output of `gleaner curve predict --json`.
#[must_use]
pub fn predictions() -> String {
    published::<Predictions>(
        "predictions",
        CURVE_VERSION,
        "Predictions of gleaner curve predict --json",
        "docs/curve.md",
    )
}

/// Schema of the output of `gleaner curve measure --json`.
#[must_use]
pub fn measurements() -> String {
    published::<Measurements>(
        "measurements",
        CURVE_VERSION,
        "Measurements of gleaner curve measure --json",
        "docs/curve.md",
    )
}

fn published<T: JsonSchema>(name: &str, version: u32, title: &str, page: &str) -> String {
    let schema = generator().into_root_schema_for::<T>();
    printed(schema, name, version, title, page)
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
}

fn printed(mut schema: Schema, name: &str, version: u32, title: &str, page: &str) -> String {
    RecursiveTransform(as_printed).transform(&mut schema);
    schema.insert("$id".into(), format!("urn:gleaner:{name}:{version}").into());
    schema.insert("title".into(), title.into());
    let comment = "What descriptions call absent is null. Times (_ms) are since 1970-01-01 UTC, in milliseconds.";
    let comment = format!("{comment} Definitions: {page}.");
    schema.insert("$comment".into(), comment.into());
    format!("{:#}\n", schema.as_value())
}

/// Adapts a schema to printed documents: forbids further fields, since every field is printed; removes
/// defaults, which do not affect printed documents; joins the lines of doc comments.
fn as_printed(schema: &mut Schema) {
    if schema.get("properties").is_some() {
        schema.insert("additionalProperties".into(), false.into());
    }
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text
            .replace("\n\n", "\0")
            .replace('\n', " ")
            .replace('\0', "\n\n");
    }
}
