//! Structure-aware mutation of JSON messages: each field at each level is deleted, retyped, enlarged or
//! repeated.

use serde_json::{Value, json};

/// Returns all messages that differ from `message` in one field, each with the name of the change.
#[must_use]
pub fn mutations(message: &Value) -> Vec<(String, Value)> {
    let mut mutated = Vec::new();
    for place in places(message) {
        let shown = if place.is_empty() { "/" } else { &place };
        if let Some(without) = without(message, &place) {
            mutated.push((format!("{shown} deleted"), without));
        }
        for (name, value) in replacements(message.pointer(&place)) {
            let mut copy = message.clone();
            if let Some(field) = copy.pointer_mut(&place) {
                *field = value;
                mutated.push((format!("{shown} {name}"), copy));
            }
        }
    }
    mutated
}

/// JSON pointers to the message and to every field in it.
fn places(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut add = |key: &str, value: &Value| {
        let key = key.replace('~', "~0").replace('/', "~1");
        found.extend(places(value).iter().map(|inner| format!("/{key}{inner}")));
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| add(key, value)),
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                add(&index.to_string(), value);
            }
        }
        _ => {}
    }
    found
}

fn without(message: &Value, place: &str) -> Option<Value> {
    let (parent, key) = place.rsplit_once('/')?;
    let mut copy = message.clone();
    match copy.pointer_mut(parent)? {
        Value::Object(fields) => drop(fields.remove(key)?),
        Value::Array(values) => drop(values.remove(key.parse().ok()?)),
        _ => return None,
    }
    Some(copy)
}

fn replacements(now: Option<&Value>) -> Vec<(&'static str, Value)> {
    let mut deep = json!(0);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let mut all = vec![
        ("null", Value::Null),
        ("true", json!(true)),
        ("0", json!(0)),
        ("-1", json!(-1)),
        ("most", json!(u64::MAX)),
        ("least", json!(i64::MIN)),
        ("1e308", json!(1e308)),
        ("empty text", json!("")),
        ("text", json!("x".repeat(50_000))),
        ("long text", json!("x".repeat(100_000))),
        ("control characters", json!("\u{1b}[2J\u{0}\n\u{202e}")),
        ("object", json!({})),
        ("deep", deep),
    ];
    if let Some(Value::Array(values)) = now {
        let first = values.first().cloned().unwrap_or_default();
        all.push(("10,000 times", Value::Array(vec![first; 10_000])));
    }
    all
}
