//! Results of a simulation as JSON and CSV. They do not depend on the time, the machine or the number of
//! CPUs.

use super::Results;
use gleaner_simulator::sweep::{MEASURES, Row, Unit, Workload};
use serde_json::{Map, Value, json};

/// All rows as one JSON document.
pub(super) fn json(results: &Results<'_>) -> String {
    let plan = &results.summary.plan;
    let unit = |unit| match unit {
        Unit::Number => "number",
        Unit::Share => "share",
        Unit::Bytes => "bytes",
    };
    let measures = MEASURES
        .iter()
        .map(|m| json!({ "key": m.key, "unit": unit(m.unit), "meaning": m.meaning }));
    let document = json!({
        "scenario": results.summary.scenario,
        "about": results.summary.about,
        "length_ns": plan.length_ns,
        "seeds": plan.seeds,
        "datasets": results.summary.datasets().map(|(name, time)| json!({
            "name": name,
            "from_ms": time.from_ms,
            "until_ms": time.until_ms,
        })).collect::<Vec<Value>>(),
        "keys": plan.keys,
        "measures": measures.collect::<Vec<Value>>(),
        "rows": results.rows.iter().map(|r| row(results, r)).collect::<Vec<Value>>(),
    });
    format!("{document:#}\n")
}

fn row(results: &Results<'_>, row: &Row) -> Value {
    let plan = &results.summary.plan;
    let settings = plan
        .keys
        .iter()
        .cloned()
        .zip(row.settings.iter().map(|v| json!(v)));
    let mut object = Map::new();
    object.insert("program".to_owned(), json!(row.program.to_string()));
    object.insert("dataset".to_owned(), json!(plan.datasets.get(row.dataset)));
    object.insert("settings".to_owned(), Value::Object(settings.collect()));
    for (measure, value) in MEASURES.iter().zip(&row.values) {
        object.insert(measure.key.to_owned(), json!(value));
    }
    let by_seed = row.by_seed.iter().zip(&row.clients);
    let seeds = plan.seeds.iter().zip(by_seed);
    let seeds = seeds.map(|(seed, (values, clients))| {
        let values = MEASURES.iter().zip(values);
        let values = values.map(|(measure, value)| (measure.key.to_owned(), json!(value)));
        let seed = [("seed".to_owned(), json!(seed))];
        let mut of_seed: Map<String, Value> = seed.into_iter().chain(values).collect();
        if row.program == Workload::Streams {
            of_seed.insert("clients".to_owned(), json!(clients));
        }
        Value::Object(of_seed)
    });
    object.insert("by_seed".to_owned(), Value::Array(seeds.collect()));
    Value::Object(object)
}

/// CSV with one line per row: median, minimum and maximum of each measure over the seeds.
pub(super) fn csv(results: &Results<'_>) -> String {
    let plan = &results.summary.plan;
    let mut header = vec!["program".to_owned(), "dataset".to_owned()];
    header.extend(plan.keys.iter().cloned());
    header.push("seeds".to_owned());
    for measure in &MEASURES {
        header.push(measure.key.to_owned());
        header.push(format!("{}_low", measure.key));
        header.push(format!("{}_high", measure.key));
    }
    let mut text = line(&header);
    for row in results.rows {
        let dataset = plan.datasets.get(row.dataset).cloned().unwrap_or_default();
        let mut fields = vec![row.program.to_string(), dataset];
        fields.extend(row.settings.iter().cloned());
        fields.push(plan.seeds.len().to_string());
        for value in &row.values {
            // An unknown value is an empty field.
            let known = value.map(|v| [v.median, v.low, v.high].map(|v| v.to_string()));
            fields.extend(known.unwrap_or_default());
        }
        text += &line(&fields);
    }
    text
}

/// Line of a CSV file.
pub(super) fn line(fields: &[String]) -> String {
    let quoted = fields.iter().map(|field| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.clone()
        }
    });
    quoted.collect::<Vec<String>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let fields = ["a", "b,c", "say \"x\""].map(str::to_owned);
        assert_eq!(line(&fields), "a,\"b,c\",\"say \"\"x\"\"\"\n");
    }
}
