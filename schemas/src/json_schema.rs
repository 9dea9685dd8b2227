//! The published JSON Schemas (draft 2020-12) of what programs read: the findings and the explanation.
//!
//! Made from the types in [`crate::findings`] and their doc comments. Records allow no further fields, so that
//! whoever validates with the schema of the version in use learns of anything that it does not describe.

use crate::findings::{Explanation, FINDINGS_VERSION, Findings};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// Of what `gleaner analyze --json` prints.
#[must_use]
pub fn findings() -> String {
    published::<Findings>("findings", "Findings of gleaner analyze --json")
}

/// Of what `gleaner explain --json` prints.
#[must_use]
pub fn explanation() -> String {
    published::<Explanation>("explanation", "Explanation of gleaner explain --json")
}

fn published<T: JsonSchema>(name: &str, title: &str) -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(as_printed).transform(&mut schema);
    schema.insert(
        "$id".into(),
        format!("urn:gleaner:{name}:{FINDINGS_VERSION}").into(),
    );
    schema.insert("title".into(), title.into());
    let comment = "What descriptions call absent is null. Times (_ms) are since 1970-01-01 UTC, in milliseconds. \
                   Definitions: docs/analysis.md.";
    schema.insert("$comment".into(), comment.into());
    format!("{:#}\n", schema.as_value())
}

/// Every field is printed and no other; a default says nothing about what is printed; line ends in doc comments
/// are none in the text.
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
