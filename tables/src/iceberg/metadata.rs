//! `vN.metadata.json`: a version of a table, with its schema and its snapshots.

use super::FormatError;
use super::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Id of the sort order by host and time.
pub(crate) const SORT_ORDER: i32 = 1;
/// Id of the partition field `date`; Iceberg numbers partition fields from 1000 on.
const DATE: i32 = 1000;
/// Branch that readers read.
const MAIN: &str = "main";

/// Content of `vN.metadata.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Metadata {
    pub(crate) format_version: u8,
    pub(crate) table_uuid: String,
    /// URL of the table's folder.
    pub(crate) location: String,
    pub(crate) last_sequence_number: i64,
    /// Time of this version, ms since 1970-01-01 UTC.
    pub(crate) last_updated_ms: i64,
    pub(crate) last_column_id: i32,
    pub(crate) current_schema_id: i32,
    pub(crate) schemas: Vec<Schema>,
    default_spec_id: i32,
    partition_specs: Value,
    last_partition_id: i32,
    default_sort_order_id: i32,
    sort_orders: Value,
    #[serde(default)]
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) current_snapshot_id: i64,
    /// Snapshots that can be read, oldest first.
    pub(crate) snapshots: Vec<Snapshot>,
    refs: BTreeMap<String, Value>,
    #[serde(default)]
    snapshot_log: Vec<SnapshotTime>,
    #[serde(default)]
    pub(crate) metadata_log: Vec<EarlierVersion>,
}

/// State of the table after one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Snapshot {
    /// Id of the snapshot: its sequence number.
    pub(crate) snapshot_id: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent_snapshot_id: Option<i64>,
    pub(crate) sequence_number: i64,
    /// Time of the commit, ms since 1970-01-01 UTC.
    pub(crate) timestamp_ms: i64,
    /// URL of the manifest list.
    pub(crate) manifest_list: String,
    pub(crate) summary: BTreeMap<String, String>,
    pub(crate) schema_id: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SnapshotTime {
    snapshot_id: i64,
    timestamp_ms: i64,
}

/// An earlier version of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct EarlierVersion {
    /// Time of the version, ms since 1970-01-01 UTC.
    pub(crate) timestamp_ms: i64,
    /// URL of its metadata.
    pub(crate) metadata_file: String,
}

/// Fields of the partition spec, as JSON.
pub(crate) fn partition_fields() -> Value {
    let time = super::schema::TIME;
    json!([{ "name": "date", "transform": "day", "source-id": time, "field-id": DATE }])
}

fn sort_orders() -> Value {
    let by = |id: i32| json!({ "transform": "identity", "source-id": id, "direction": "asc", "null-order": "nulls-first" });
    let fields = [super::schema::HOST_ID, super::schema::TIME].map(by);
    json!([{ "order-id": 0, "fields": [] }, { "order-id": SORT_ORDER, "fields": fields }])
}

impl Metadata {
    /// Metadata of a new table without snapshots.
    pub(crate) fn new(uuid: String, location: String, schema: Schema, last_column_id: i32) -> Self {
        Self {
            format_version: 2,
            table_uuid: uuid,
            location,
            last_sequence_number: 0,
            last_updated_ms: 0,
            last_column_id,
            current_schema_id: schema.schema_id,
            schemas: vec![schema],
            default_spec_id: 0,
            partition_specs: json!([{ "spec-id": 0, "fields": partition_fields() }]),
            last_partition_id: DATE,
            default_sort_order_id: SORT_ORDER,
            sort_orders: sort_orders(),
            properties: BTreeMap::new(),
            current_snapshot_id: -1, // none
            snapshots: Vec::new(),
            refs: BTreeMap::new(),
            snapshot_log: Vec::new(),
            metadata_log: Vec::new(),
        }
    }

    /// Parses `text`. It must be of a table as [`Metadata::new`] makes them.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, FormatError> {
        let parsed: Self = serde_json::from_slice(text)?;
        let faults = [
            (parsed.format_version != 2, "its format version is not 2"),
            (parsed.schema().is_none(), "it has no current schema"),
            (
                parsed.partition_specs != json!([{ "spec-id": 0, "fields": partition_fields() }]),
                "it has another partition spec",
            ),
            (
                parsed.sort_orders != sort_orders(),
                "it has another sort order",
            ),
            (
                parsed
                    .snapshots
                    .iter()
                    .any(|s| s.snapshot_id != s.sequence_number),
                "another program added a snapshot",
            ),
            (
                parsed.snapshots.last().map_or(-1, |s| s.snapshot_id) != parsed.current_snapshot_id,
                "its last snapshot is not the current one",
            ),
        ];
        match faults.into_iter().find(|(is_fault, _)| *is_fault) {
            Some((_, fault)) => Err(FormatError(fault.to_owned())),
            None => Ok(parsed),
        }
    }

    /// The current schema.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        let id = self.current_schema_id;
        self.schemas.iter().find(|schema| schema.schema_id == id)
    }

    /// Sets `schema` as the current one.
    pub(crate) fn set_schema(&mut self, schema: Schema, last_column_id: i32) {
        self.current_schema_id = schema.schema_id;
        self.last_column_id = last_column_id;
        if self.schema().is_none() {
            self.schemas.push(schema);
        }
    }

    /// Adds `snapshot` as the current one.
    pub(crate) fn add(&mut self, snapshot: Snapshot) {
        let id = snapshot.snapshot_id;
        self.current_snapshot_id = id;
        self.last_sequence_number = id;
        let main = json!({ "snapshot-id": id, "type": "branch" });
        self.refs = BTreeMap::from([(MAIN.to_owned(), main)]);
        self.snapshots.push(snapshot);
    }

    /// Encodes the metadata. The log of snapshots lists those that can be read.
    pub(crate) fn encode(&mut self) -> Result<Vec<u8>, FormatError> {
        let time = |s: &Snapshot| SnapshotTime {
            snapshot_id: s.snapshot_id,
            timestamp_ms: s.timestamp_ms,
        };
        self.snapshot_log = self.snapshots.iter().map(time).collect();
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }
}
