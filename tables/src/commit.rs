//! The plan of one commit: the next version of a table, from its present state and the wanted files. Without I/O.

use crate::iceberg::FormatError;
use crate::iceberg::list::{self, SnapshotList};
use crate::iceberg::manifest::{self, DataFile, Entry, Status};
use crate::iceberg::metadata::{EarlierVersion, Metadata, Snapshot};
use crate::iceberg::schema::Schema;
use gleaner_schemas::column::Table;
use std::collections::{BTreeMap, BTreeSet};

/// File with the newest version's number, for readers without a catalog.
pub(crate) const HINT: &str = "metadata/version-hint.text";

/// A published table: its newest version, and the files of the current snapshot.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) version: u64,
    pub(crate) metadata: Metadata,
    pub(crate) live: Vec<Entry>,
}

/// The table as it should be.
#[derive(Clone, Debug)]
pub(crate) struct TargetTable {
    pub(crate) table: Table,
    /// URL of the table's folder.
    pub(crate) location: String,
    /// Schema, and the highest id of a column that the table ever had.
    pub(crate) schema: (Schema, i32),
    pub(crate) files: Vec<DataFile>,
    pub(crate) properties: BTreeMap<String, String>,
}

/// The next version of a table, and the files to write for it.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) version: u64,
    pub(crate) metadata: Metadata,
    /// Names and contents in the order of writing. The last one is the version's metadata, which commits.
    pub(crate) objects: Vec<(String, Vec<u8>)>,
}

impl State {
    /// State with the newest `metadata` and the content of its current snapshot's manifest.
    pub(crate) fn new(
        version: u64,
        metadata: Metadata,
        manifest: &[u8],
    ) -> Result<Self, FormatError> {
        let live = live_files(manifest, &metadata.location)?;
        Ok(Self {
            version,
            metadata,
            live,
        })
    }

    /// Schema that `table` gets, and the highest id of a column.
    pub(crate) fn next_schema(state: Option<&Self>, table: &Table) -> (Schema, i32) {
        let metadata = state.map(|state| &state.metadata);
        let earlier = metadata.and_then(|m| Some((m.schema()?, m.last_column_id)));
        Schema::next(table, earlier)
    }
}

/// Data files of a snapshot, from its manifest.
pub(crate) fn live_files(manifest: &[u8], location: &str) -> Result<Vec<Entry>, FormatError> {
    let mut entries = manifest::decode(manifest, location)?;
    entries.retain(|entry| entry.status != Status::Deleted);
    Ok(entries)
}

/// Name of the metadata of a version.
pub(crate) fn metadata_name(version: u64) -> String {
    format!("metadata/v{version}.metadata.json")
}

/// Version whose metadata has this file name.
pub(crate) fn version_of(file_name: &str) -> Option<u64> {
    let number = file_name
        .strip_prefix('v')?
        .strip_suffix(".metadata.json")?;
    number.parse().ok()
}

/// Name of a snapshot's manifest.
pub(crate) fn manifest_name(snapshot_id: i64) -> String {
    format!("metadata/manifest-{snapshot_id}.avro")
}

fn list_name(snapshot_id: i64) -> String {
    format!("metadata/snap-{snapshot_id}.avro")
}

/// Names of the metadata that version `version` and its readable snapshots need; data files are not among them.
pub(crate) fn metadata_names(version: u64, metadata: &Metadata) -> BTreeSet<String> {
    let earlier = metadata.metadata_log.iter();
    let earlier = earlier.filter_map(|e| e.metadata_file.strip_prefix(&metadata.location));
    let earlier = earlier.map(|name| name.trim_start_matches('/').to_owned());
    let snapshots = metadata.snapshots.iter().map(|s| s.snapshot_id);
    let snapshots = snapshots.flat_map(|id| [manifest_name(id), list_name(id)]);
    let own = [metadata_name(version), HINT.to_owned()];
    own.into_iter().chain(earlier).chain(snapshots).collect()
}

/// Plans the version after `state` at the time `now_ms`; `None` if the table is as wanted. Snapshots that were
/// replaced more than `grace_ms` ago leave the table.
pub(crate) fn next(
    state: Option<&State>,
    wanted: &TargetTable,
    now_ms: i64,
    grace_ms: i64,
) -> Result<Option<Commit>, FormatError> {
    if state.is_none() && wanted.files.is_empty() {
        return Ok(None);
    }
    let (schema, last_column_id) = &wanted.schema;
    let before = state.map(|state| &state.metadata);
    // If the clock was set back, times stay equal until the clock has caught up.
    let now_ms = before.map_or(now_ms, |m| m.last_updated_ms.max(now_ms));
    let new = || {
        let uuid = uuid(&wanted.location, now_ms);
        Metadata::new(
            uuid,
            wanted.location.clone(),
            schema.clone(),
            *last_column_id,
        )
    };
    let mut metadata = before.cloned().unwrap_or_else(new);
    // Earlier snapshots have the paths of the earlier location, where their files no longer are.
    let is_moved = metadata.location != wanted.location;
    if is_moved {
        metadata.location.clone_from(&wanted.location);
        metadata.snapshots.clear();
        metadata.metadata_log.clear();
    }
    let kept = state.filter(|_| !is_moved);
    metadata.set_schema(schema.clone(), *last_column_id);
    metadata.properties.clone_from(&wanted.properties);

    let id = metadata.last_sequence_number.saturating_add(1);
    let entries = entries(kept.map_or(&[][..], |s| &s.live[..]), &wanted.files, id);
    let mut objects = Vec::new();
    if metadata.snapshots.is_empty() || entries.iter().any(|e| e.status != Status::Existing) {
        let manifest = manifest::encode(&entries, schema, &wanted.location)?;
        let parent_id = metadata.snapshots.last().map(|s| s.snapshot_id);
        let listed = SnapshotList {
            snapshot_id: id,
            parent_id,
            manifest_path: format!("{}/{}", wanted.location, manifest_name(id)),
            manifest_bytes: manifest.len(),
            entries: &entries,
        };
        objects.push((manifest_name(id), manifest));
        objects.push((list_name(id), list::encode(&listed)?));
        metadata.add(Snapshot {
            snapshot_id: id,
            parent_snapshot_id: parent_id,
            sequence_number: id,
            timestamp_ms: now_ms,
            manifest_list: format!("{}/{}", wanted.location, list_name(id)),
            summary: summary(&entries),
            schema_id: schema.schema_id,
        });
    }
    let since_ms = now_ms.saturating_sub(grace_ms);
    retain(
        &mut metadata.snapshots,
        |s| s.timestamp_ms,
        since_ms,
        i64::MAX,
    );
    if before == Some(&metadata) {
        return Ok(None);
    }
    if let Some(state) = kept {
        metadata.metadata_log.push(EarlierVersion {
            timestamp_ms: state.metadata.last_updated_ms,
            metadata_file: format!("{}/{}", wanted.location, metadata_name(state.version)),
        });
    }
    retain(
        &mut metadata.metadata_log,
        |e| e.timestamp_ms,
        since_ms,
        now_ms,
    );
    metadata.last_updated_ms = now_ms;
    let version = state.map_or(1, |state| state.version.saturating_add(1));
    objects.push((metadata_name(version), metadata.encode()?));
    Ok(Some(Commit {
        version,
        metadata,
        objects,
    }))
}

/// Entries of the next manifest, ordered by day and path: the wanted files, and the live files that leave the table.
fn entries(live: &[Entry], wanted: &[DataFile], snapshot_id: i64) -> Vec<Entry> {
    let before: BTreeMap<&str, &Entry> = live.iter().map(|e| (e.file.path.as_str(), e)).collect();
    let names: BTreeSet<&str> = wanted.iter().map(|file| file.path.as_str()).collect();
    let stay = wanted
        .iter()
        .map(|file| match before.get(file.path.as_str()) {
            Some(entry) if entry.file == *file => Entry {
                status: Status::Existing,
                ..Entry::clone(entry)
            },
            _ => Entry {
                status: Status::Added,
                snapshot_id,
                sequence_number: snapshot_id,
                file: file.clone(),
            },
        });
    let leave = live
        .iter()
        .filter(|e| !names.contains(e.file.path.as_str()));
    let leave = leave.map(|entry| Entry {
        status: Status::Deleted,
        snapshot_id,
        ..entry.clone()
    });
    let mut entries: Vec<Entry> = stay.chain(leave).collect();
    entries.sort_by(|a, b| (a.file.day, &a.file.path).cmp(&(b.file.day, &b.file.path)));
    entries
}

/// Removes the items that were replaced at or before `since_ms`: each by the next item, the last one at `end_ms`.
fn retain<T>(items: &mut Vec<T>, time_ms: fn(&T) -> i64, since_ms: i64, end_ms: i64) {
    let ends = items.iter().skip(1).map(time_ms).chain([end_ms]);
    let mut ends = ends.collect::<Vec<_>>().into_iter();
    items.retain(|_| ends.next().is_none_or(|end| end > since_ms));
}

/// Summary of a snapshot: kind of its change, and counts.
fn summary(entries: &[Entry]) -> BTreeMap<String, String> {
    let of = |status: Status| entries.iter().filter(move |e| e.status == status);
    let count = |status: Status| of(status).count();
    let rows = |status: Status| of(status).map(|e| e.file.rows).sum::<i64>();
    let live = || entries.iter().filter(|e| e.status != Status::Deleted);
    // A merge is an "overwrite", too: "replace" promises equal rows, but the same step may have brought others.
    let operation = match (count(Status::Added), count(Status::Deleted)) {
        (_, 0) => "append",
        (0, _) => "delete",
        _ => "overwrite",
    };
    [
        ("operation", operation.to_owned()),
        ("added-data-files", count(Status::Added).to_string()),
        ("deleted-data-files", count(Status::Deleted).to_string()),
        ("added-records", rows(Status::Added).to_string()),
        ("deleted-records", rows(Status::Deleted).to_string()),
        ("total-data-files", live().count().to_string()),
        (
            "total-records",
            live().map(|e| e.file.rows).sum::<i64>().to_string(),
        ),
        (
            "total-files-size",
            live().map(|e| e.file.bytes).sum::<i64>().to_string(),
        ),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// Id of a new table: UUID version 8 of a hash of its location and time.
fn uuid(location: &str, now_ms: i64) -> String {
    let hash = blake3::hash(format!("{now_ms} {location}").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_bytes()[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    parts.join("-")
}

#[cfg(test)]
mod tests;
