//! Any list of the findings as a table: columns in the record's order, formatted by the suffix of their
//! names.

use super::{or_dash, table, text};
use gleaner_schemas::findings::{Finding, FindingVisitor, Findings};
use gleaner_schemas::units::{Bytes, Seconds};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// Columns that are shares, though their names end neither in `_share` nor in `probability`.
const SHARES: [&str; 5] = [
    "survival",
    "low",
    "high",
    "cumulative_incidence",
    "quantile",
];

/// Part of the name of a column with a rate of bytes, such as `reclaimed_bytes_per_host_day`.
const BYTES_PER: &str = "_bytes_per_";

/// Maximum number of fields that fit into a line; longer records lose their medians and 99 % quantiles.
const WIDE: usize = 16;

/// An object that keeps the order of its fields.
struct Fields<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FieldsVisitor<T> {
            type Value = Fields<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor(std::marker::PhantomData))
    }
}

/// Records of each list, by the list's key.
type Parts = HashMap<&'static str, Vec<Fields<Value>>>;

/// Collects the records of the lists that `keys` names.
struct RecordLists<'a> {
    findings: &'a Findings,
    keys: &'a [String],
    parts: serde_json::Result<Parts>,
}

impl FindingVisitor for RecordLists<'_> {
    fn visit<F: Finding>(&mut self) {
        if !self.keys.iter().any(|key| key == F::KEY) {
            return;
        }
        let text = serde_json::to_string(F::list(self.findings));
        match (
            &mut self.parts,
            text.and_then(|text| serde_json::from_str(&text)),
        ) {
            (Ok(parts), Ok(records)) => drop(parts.insert(F::KEY, records)),
            (Ok(_), Err(error)) => self.parts = Err(error),
            (Err(_), _) => {}
        }
    }
}

/// Findings as lists of records.
pub(super) struct Document {
    parts: Parts,
    host_names: HashMap<String, String>,
    zone: TimeZone,
}

impl Document {
    /// Converts only the lists with these keys, since the lists of a fleet are long.
    pub(super) fn new(findings: &Findings, keys: &[String]) -> anyhow::Result<Self> {
        let mut lists = RecordLists {
            findings,
            keys,
            parts: Ok(HashMap::new()),
        };
        Findings::visit(&mut lists);
        let hosts = findings.hosts.iter();
        Ok(Self {
            parts: lists.parts?,
            host_names: hosts
                .map(|h| (h.host_id.clone(), h.host_name.clone()))
                .collect(),
            zone: TimeZone::get(&findings.parameters.time_zone).unwrap_or(TimeZone::UTC),
        })
    }

    /// Keeps only the representative records of each measure: if some records are of pools of hosts, those of
    /// single hosts are left out, and settings that are not on the frontier are left out.
    pub(super) fn keep_representative(&mut self) {
        for records in self.parts.values_mut() {
            let field = |record: &Fields<Value>, name: &str| {
                let mut fields = record.0.iter();
                fields
                    .find(|(known, _)| known == name)
                    .map(|(_, value)| value.clone())
            };
            if records
                .iter()
                .any(|r| field(r, "host_id") == Some(Value::Null))
            {
                records.retain(|r| field(r, "host_id") == Some(Value::Null));
            }
            if records.first().is_some_and(|r| r.0.len() > WIDE) {
                for record in records.iter_mut() {
                    record
                        .0
                        .retain(|(name, _)| !name.contains("median_") && !name.contains("p99_"));
                }
            }
            if records.iter().any(|r| field(r, "is_on_frontier").is_some()) {
                records.retain(|r| field(r, "is_on_frontier") == Some(Value::Bool(true)));
            }
        }
    }

    /// Table of at most `most` records of one measure; `None` if there are none.
    pub(super) fn table(&self, key: &str, most: usize) -> Option<String> {
        let records = self.parts.get(key).filter(|records| !records.is_empty())?;
        let names: Vec<&str> = records[0].0.iter().map(|(name, _)| name.as_str()).collect();
        let bears_name = names.contains(&"host_name");
        // A column without any known value is left out.
        let shown: Vec<usize> = (0..names.len())
            .filter(|&at| {
                records
                    .iter()
                    .any(|r| r.0.get(at).is_some_and(|f| !f.1.is_null()))
            })
            .collect();
        let header: Vec<String> = shown.iter().map(|&at| heading(names[at])).collect();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let is_text = |at: usize| {
            let values = records.iter().filter_map(|r| r.0.get(at));
            values
                .into_iter()
                .all(|(_, v)| v.is_string() || v.is_boolean() || v.is_null())
        };
        let mut t = table(&header, header.len());
        for (column, &at) in t.column_iter_mut().zip(&shown) {
            if !is_text(at) {
                column.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        for record in records.iter().take(most) {
            let cell = |&at: &usize| {
                let field = record.0.get(at);
                or_dash(field.and_then(|(name, value)| match value {
                    Value::String(id) if bears_name && name == "host_id" => Some(id.clone()),
                    _ => self.cell(name, value),
                }))
            };
            t.add_row(shown.iter().map(cell).collect::<Vec<_>>());
        }
        let mut shown = text(&t);
        if records.len() > most {
            shown += &format!(
                "\n  … and {} more: --measure {key} --rows {}, or --json",
                records.len() - most,
                records.len()
            );
        }
        Some(shown)
    }

    fn cell(&self, name: &str, value: &Value) -> Option<String> {
        let number = value.as_f64();
        let unit = name.rsplit('_').next().unwrap_or_default();
        Some(match (value, number) {
            (Value::Null, _) => return None,
            (Value::String(text), _) if name == "host_id" => {
                self.host_names.get(text).unwrap_or(text).clone()
            }
            (Value::String(text), _) => text.replace('_', " "),
            (Value::Bool(holds), _) => if *holds { "yes" } else { "no" }.to_owned(),
            (_, Some(number)) if name.ends_with("time_ms") => self.time(number as i64),
            (_, Some(number)) => match unit {
                "bytes" => Bytes(number).to_string(),
                "s" => Seconds(number).to_string(),
                "ms" => format!("{number:.1} ms"),
                "us" => format!("{number:.0} us"),
                "probability" => percent(number),
                _ if name.contains(BYTES_PER) => Bytes(number).to_string(),
                _ if name.contains("share") => percent(number),
                _ if SHARES.contains(&name) => percent(number),
                _ if value.is_i64() || value.is_u64() => value.to_string(),
                _ => significant(number),
            },
            (other, None) => other.to_string(),
        })
    }

    fn time(&self, ms: i64) -> String {
        jiff::Timestamp::from_millisecond(ms).map_or_else(
            |_| format!("{ms} ms"),
            |t| {
                let local = t.to_zoned(self.zone.clone());
                local.strftime("%Y-%m-%d %H:%M:%S").to_string()
            },
        )
    }
}

/// Number with four significant digits.
fn significant(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let digits = 3 - (number.abs().max(1e-9).log10().floor() as i32).clamp(-6, 3);
    format!("{number:.*}", usize::try_from(digits).unwrap_or(0))
}

fn percent(share: f64) -> String {
    // Near 0 and 1, a share gets three decimals: with one, a small probability would be shown as 0.
    let from_end = share.min(1.0 - share).abs();
    let decimals = if from_end > 0.0 && from_end < 0.001 {
        3
    } else {
        1
    };
    format!("{:.decimals$} %", share * 100.0)
}

/// A column's name without its unit, since every cell has it.
fn heading(name: &str) -> String {
    match name {
        "time_ms" => return "time".to_owned(),
        "host_id" => return "host".to_owned(), // cells have the host's name if there is no name column
        _ => {}
    }
    let name = &name
        .replace("physical", "physical_memory")
        .replace(BYTES_PER, "_per_");
    let units = ["_time_ms", "_bytes", "_ms", "_us", "_s", "_share", "_count"];
    let bare = units
        .iter()
        .find_map(|unit| name.strip_suffix(unit))
        .unwrap_or(name);
    bare.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_near_certainty_keep_their_digits() {
        assert_eq!(percent(0.5), "50.0 %");
        assert_eq!(percent(0.9996), "99.960 %");
        assert_eq!(percent(1.0), "100.0 %");
        assert_eq!(heading("share_of_physical"), "share of physical memory");
        assert_eq!(
            heading("reclaimed_bytes_per_host_day"),
            "reclaimed per host day"
        );
        assert_eq!(significant(12.3456), "12.35");
        assert_eq!(significant(123_456.0), "123456");
        assert_eq!(significant(0.001_234_5), "0.001234");
    }
}
