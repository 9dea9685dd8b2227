//! Results of global memory and of memory servers as JSON and CSV, which have one form. They do not depend on the
//! time, the machine or the number of CPUs.

use super::args::Simulate;
use super::result_files::line;
use crate::report;
use gleaner_simulator::swept::SweptRow;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;

/// Rows of a sweep, with the names of their settings and measures.
pub(super) struct SweptResults<'a> {
    /// Name of the scenario.
    pub(super) scenario: &'a str,
    pub(super) about: &'a str,
    /// System as in the scenario's file.
    pub(super) system: &'static str,
    pub(super) seeds: &'a [u64],
    /// Swept settings, as dotted paths.
    pub(super) keys: Vec<String>,
    /// Key and meaning of each measure.
    pub(super) measures: Vec<(&'static str, &'static str)>,
    pub(super) rows: &'a [SweptRow],
}

impl SweptResults<'_> {
    /// Writes JSON and CSV to the requested files. Returns true if one of them went to standard output, where no
    /// table may follow then.
    pub(super) fn write(&self, args: &Simulate, output: &mut dyn Write) -> anyhow::Result<bool> {
        let mut is_printed = false;
        for (to, text) in [
            (&args.results.json, self.json()),
            (&args.results.csv, self.csv()),
        ] {
            match to {
                Some(to) if to == Path::new("-") => {
                    output.write_all(text.as_bytes())?;
                    is_printed = true;
                }
                Some(to) => report::write(to, text)?,
                None => {}
            }
        }
        Ok(is_printed)
    }

    /// All rows as one JSON document.
    fn json(&self) -> String {
        let row = |row: &SweptRow| {
            let values = row.settings.iter().map(|value| json!(value));
            let settings = self.keys.iter().cloned().zip(values);
            let mut object = Map::new();
            object.insert("settings".to_owned(), Value::Object(settings.collect()));
            for ((key, _), value) in self.measures.iter().zip(&row.values) {
                object.insert((*key).to_owned(), json!(value));
            }
            Value::Object(object)
        };
        let measure = |(key, meaning): &(&str, &str)| json!({ "key": key, "meaning": meaning });
        let document = json!({
            "scenario": self.scenario,
            "about": self.about,
            "system": self.system,
            "seeds": self.seeds,
            "keys": self.keys,
            "measures": self.measures.iter().map(measure).collect::<Vec<Value>>(),
            "rows": self.rows.iter().map(row).collect::<Vec<Value>>(),
        });
        format!("{document:#}\n")
    }

    /// CSV with one line per row: median, minimum and maximum of each measure over the seeds.
    fn csv(&self) -> String {
        let mut header = self.keys.clone();
        header.push("seeds".to_owned());
        for (key, _) in &self.measures {
            header.extend(["", "_low", "_high"].map(|end| format!("{key}{end}")));
        }
        let mut text = line(&header);
        for row in self.rows {
            let mut fields = row.settings.clone();
            fields.push(self.seeds.len().to_string());
            for value in &row.values {
                // An unknown value is three empty fields.
                let known = value.map(|v| [v.median, v.low, v.high].map(|v| v.to_string()));
                fields.extend(known.unwrap_or_default());
            }
            text += &line(&fields);
        }
        text
    }
}
