//! Manifest: the data files of one snapshot, and those that the snapshot removed.

use super::FormatError;
use super::avro::{self, field, integer, record, some, text};
use super::metadata::{self, SORT_ORDER};
use super::schema::{HOST_ID, Schema, TIME};
use apache_avro::types::Value;
use std::collections::BTreeMap;

const SCHEMA: &str = include_str!("manifest.avsc");
const DATA: i32 = 0;

/// A Parquet file of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataFile {
    /// Path in the table's folder.
    pub(crate) path: String,
    /// UTC day of the rows, counted from 1970-01-01.
    pub(crate) day: i32,
    pub(crate) rows: i64,
    /// Length of the file.
    pub(crate) bytes: i64,
    pub(crate) first_host_id: String,
    pub(crate) last_host_id: String,
    /// Earliest and latest time, microseconds since 1970-01-01 UTC.
    pub(crate) first_time_us: i64,
    pub(crate) last_time_us: i64,
}

/// Change that a snapshot made to a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    Existing = 0,
    Added = 1,
    Deleted = 2,
}

/// A data file, with the snapshot that added it; of a deleted file, the snapshot that deleted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) status: Status,
    pub(crate) snapshot_id: i64,
    /// Sequence number of the snapshot that added the file.
    pub(crate) sequence_number: i64,
    pub(crate) file: DataFile,
}

/// Encodes a manifest of `entries`. Paths are relative to `location`.
pub(crate) fn encode(
    entries: &[Entry],
    schema: &Schema,
    location: &str,
) -> Result<Vec<u8>, FormatError> {
    let columns = serde_json::to_string(&schema.without_docs())?;
    let header = [
        ("schema", columns),
        ("schema-id", schema.schema_id.to_string()),
        ("partition-spec", metadata::partition_fields().to_string()),
        ("partition-spec-id", "0".to_owned()),
        ("format-version", "2".to_owned()),
        ("content", "data".to_owned()),
    ];
    let rows = entries.iter().map(|entry| entry.to_value(location));
    avro::encode(&avro::schema(SCHEMA)?, &header, rows.collect())
}

/// Decodes a manifest. Paths become relative to `location`.
pub(crate) fn decode(bytes: &[u8], location: &str) -> Result<Vec<Entry>, FormatError> {
    let rows = avro::decode(bytes)?;
    rows.iter()
        .map(|row| Entry::from_value(row, location))
        .collect()
}

impl Entry {
    fn to_value(&self, location: &str) -> Value {
        let file = &self.file;
        let host = |id: &str| (HOST_ID, id.as_bytes().to_vec());
        let time = |us: i64| (TIME, us.to_le_bytes().to_vec());
        let partition = record([("date", some(Value::Date(file.day)))]);
        let data_file = record([
            ("content", Value::Int(DATA)),
            (
                "file_path",
                Value::String(format!("{location}/{}", file.path)),
            ),
            ("file_format", Value::String("PARQUET".to_owned())),
            ("partition", partition),
            ("record_count", Value::Long(file.rows)),
            ("file_size_in_bytes", Value::Long(file.bytes)),
            (
                "lower_bounds",
                bounds([host(&file.first_host_id), time(file.first_time_us)]),
            ),
            (
                "upper_bounds",
                bounds([host(&file.last_host_id), time(file.last_time_us)]),
            ),
            ("sort_order_id", some(Value::Int(SORT_ORDER))),
        ]);
        record([
            ("status", Value::Int(self.status as i32)),
            ("snapshot_id", some(Value::Long(self.snapshot_id))),
            ("sequence_number", some(Value::Long(self.sequence_number))),
            (
                "file_sequence_number",
                some(Value::Long(self.sequence_number)),
            ),
            ("data_file", data_file),
        ])
    }

    fn from_value(row: &Value, location: &str) -> Result<Self, FormatError> {
        let status = match integer(row, "status")? {
            0 => Status::Existing,
            1 => Status::Added,
            2 => Status::Deleted,
            other => return Err(FormatError(format!("its status is {other}"))),
        };
        let file = field(row, "data_file")?;
        let path = text(file, "file_path")?;
        let relative = path
            .strip_prefix(location)
            .and_then(|p| p.strip_prefix('/'));
        let relative = relative.filter(|p| !p.split('/').any(|part| part == ".."));
        let relative =
            relative.ok_or_else(|| FormatError(format!("{path} is outside of {location}")))?;
        let (first, last) = (
            read_bounds(file, "lower_bounds")?,
            read_bounds(file, "upper_bounds")?,
        );
        let day = integer(field(file, "partition")?, "date")?;
        Ok(Self {
            status,
            snapshot_id: integer(row, "snapshot_id")?,
            sequence_number: integer(row, "sequence_number")?,
            file: DataFile {
                path: relative.to_owned(),
                day: i32::try_from(day).map_err(|_| FormatError(format!("its day is {day}")))?,
                rows: integer(file, "record_count")?,
                bytes: integer(file, "file_size_in_bytes")?,
                first_host_id: first.0,
                last_host_id: last.0,
                first_time_us: first.1,
                last_time_us: last.1,
            },
        })
    }
}

/// Bounds of columns, by the columns' ids.
fn bounds<const N: usize>(of_columns: [(i32, Vec<u8>); N]) -> Value {
    let entries = of_columns
        .map(|(id, bytes)| record([("key", Value::Int(id)), ("value", Value::Bytes(bytes))]));
    some(Value::Array(entries.into()))
}

/// Bounds of `host_id` and `time`, in microseconds.
fn read_bounds(file: &Value, name: &str) -> Result<(String, i64), FormatError> {
    let malformed = || FormatError(format!("its {name} are malformed"));
    let Value::Array(entries) = field(file, name)? else {
        return Err(malformed());
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let Value::Bytes(bytes) = field(entry, "value")? else {
            return Err(malformed());
        };
        found.insert(integer(entry, "key")?, bytes);
    }
    let mut of = |id: i32| found.remove(&i64::from(id)).ok_or_else(malformed);
    let (host, time) = (of(HOST_ID)?.clone(), of(TIME)?);
    let time = <[u8; 8]>::try_from(time.as_slice()).map_err(|_| malformed())?;
    let host = String::from_utf8(host).map_err(|_| malformed())?;
    Ok((host, i64::from_le_bytes(time)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::column::Row;
    use gleaner_schemas::rows::SampleRow;
    use proptest::prelude::*;

    fn entries() -> Vec<Entry> {
        let file = |day: i32| DataFile {
            path: format!("data/date=2026-11-2{day}/a.parquet"),
            day: 20_000 + day,
            rows: 7,
            bytes: 1234,
            first_host_id: "0db1".to_owned(),
            last_host_id: "11aa".to_owned(),
            first_time_us: -5,
            last_time_us: 1_795_219_200_000_000,
        };
        [Status::Existing, Status::Added, Status::Deleted]
            .into_iter()
            .zip(1..)
            .map(|(status, day)| Entry {
                status,
                snapshot_id: 3,
                sequence_number: i64::from(day),
                file: file(day),
            })
            .collect()
    }

    fn encoded() -> Vec<u8> {
        let (schema, _) = Schema::next(&SampleRow::TABLE, None);
        encode(&entries(), &schema, "file:///srv/tables/samples").unwrap()
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let found = decode(&encoded(), "file:///srv/tables/samples").unwrap();
        assert_eq!(found, entries());
        assert!(decode(&encoded(), "file:///srv/tables/gaps").is_err());
    }

    #[test]
    fn field_ids_and_maps_are_in_the_header() {
        let bytes = encoded();
        let reader = apache_avro::Reader::new(&bytes[..]).unwrap();
        for (key, expected) in [
            ("format-version", "2"),
            ("content", "data"),
            ("schema-id", "0"),
        ] {
            assert_eq!(reader.user_metadata()[key], expected.as_bytes(), "{key}");
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for expected in [
            r#""field-id":134"#,
            r#""field-id":1000"#,
            r#""logicalType":"map""#,
            r#""logicalType":"date""#,
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
        assert_eq!(text.matches(r#""logicalType":"map""#).count(), 2);
    }

    proptest! {
        #[test]
        fn altered_bytes_never_panic(at in 0.0..1.0_f64, byte in any::<u8>(), end in 0.0..1.0_f64) {
            let mut bytes = encoded();
            let place = |share: f64| (share * bytes.len() as f64) as usize;
            let (at, end) = (place(at), place(end));
            bytes[at] = byte;
            let _ = decode(&bytes, "file:///srv/tables/samples");
            let _ = decode(&bytes[..end], "file:///srv/tables/samples");
        }
    }
}
