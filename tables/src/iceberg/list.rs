//! Manifest list of a snapshot. It names the snapshot's one manifest, or none if the snapshot has no files.

use super::FormatError;
use super::avro::{self, record, some};
use super::manifest::{Entry, Status};
use apache_avro::types::Value;

const SCHEMA: &str = include_str!("list.avsc");

/// Content of a snapshot's manifest list.
pub(crate) struct SnapshotList<'a> {
    pub(crate) snapshot_id: i64,
    pub(crate) parent_id: Option<i64>,
    /// Absolute path of the manifest.
    pub(crate) manifest_path: String,
    /// Length of the manifest, in bytes.
    pub(crate) manifest_bytes: usize,
    pub(crate) entries: &'a [Entry],
}

/// Encodes the manifest list. The sequence number equals the snapshot's id.
pub(crate) fn encode(listed: &SnapshotList<'_>) -> Result<Vec<u8>, FormatError> {
    let parent = listed
        .parent_id
        .map_or("null".to_owned(), |id| id.to_string());
    let header = [
        ("snapshot-id", listed.snapshot_id.to_string()),
        ("parent-snapshot-id", parent),
        ("sequence-number", listed.snapshot_id.to_string()),
        ("format-version", "2".to_owned()),
    ];
    let rows = listed.to_value()?.into_iter().collect();
    avro::encode(&avro::schema(SCHEMA)?, &header, rows)
}

impl SnapshotList<'_> {
    fn to_value(&self) -> Result<Option<Value>, FormatError> {
        let too_many = |_| FormatError("the snapshot has too many files".to_owned());
        let of = |status: Status| self.entries.iter().filter(move |e| e.status == status);
        let files = |status: Status| i32::try_from(of(status).count()).map(Value::Int);
        let rows = |status: Status| Value::Long(of(status).map(|e| e.file.rows).sum());
        let days = self.entries.iter().map(|e| e.file.day);
        let (Some(first_day), Some(last_day)) = (days.clone().min(), days.max()) else {
            return Ok(None);
        };
        let live = self.entries.iter().filter(|e| e.status != Status::Deleted);
        let oldest = live.map(|e| e.sequence_number).min();
        let day = |day: i32| some(Value::Bytes(day.to_le_bytes().to_vec()));
        let partition = record([
            ("contains_null", Value::Boolean(false)),
            ("contains_nan", some(Value::Boolean(false))),
            ("lower_bound", day(first_day)),
            ("upper_bound", day(last_day)),
        ]);
        let length = i64::try_from(self.manifest_bytes).map_err(too_many)?;
        Ok(Some(record([
            ("manifest_path", Value::String(self.manifest_path.clone())),
            ("manifest_length", Value::Long(length)),
            ("partition_spec_id", Value::Int(0)),
            ("content", Value::Int(0)),
            ("sequence_number", Value::Long(self.snapshot_id)),
            (
                "min_sequence_number",
                Value::Long(oldest.unwrap_or(self.snapshot_id)),
            ),
            ("added_snapshot_id", Value::Long(self.snapshot_id)),
            ("added_files_count", files(Status::Added).map_err(too_many)?),
            (
                "existing_files_count",
                files(Status::Existing).map_err(too_many)?,
            ),
            (
                "deleted_files_count",
                files(Status::Deleted).map_err(too_many)?,
            ),
            ("added_rows_count", rows(Status::Added)),
            ("existing_rows_count", rows(Status::Existing)),
            ("deleted_rows_count", rows(Status::Deleted)),
            ("partitions", some(Value::Array(vec![partition]))),
        ])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_no_files_names_no_manifest() {
        let listed = SnapshotList {
            snapshot_id: 2,
            parent_id: Some(1),
            manifest_path: "file:///srv/samples/metadata/manifest-2.avro".to_owned(),
            manifest_bytes: 100,
            entries: &[],
        };
        let bytes = encode(&listed).unwrap();
        assert!(avro::decode(&bytes).unwrap().is_empty());
        let reader = apache_avro::Reader::new(&bytes[..]).unwrap();
        assert_eq!(reader.user_metadata()["sequence-number"], b"2");
        assert!(String::from_utf8_lossy(&bytes).contains(r#""element-id":508"#));
    }
}
