//! Rebuilds a lost manifest from the files, whose footers describe their content.

use crate::file::arrow_file::{ArrowFile, map_file};
use crate::file::index::{HostRows, Index};
use crate::layout;
use crate::layout::names::WriterName;
use crate::manifest::{DatabaseEntry, FileEntry, HostEntry, Manifest};
use crate::rows::identity::Identities;
use crate::rows::projected;
use crate::{DatasetError, Result};
use gleaner_schemas::arrow::IDENTITY;
use gleaner_schemas::rows::table;
use std::path::Path;

/// Manifest of the files of the writer `name` in the folder `root`, made from the files.
pub(crate) fn rebuilt(root: &Path, name: &WriterName) -> Result<Manifest> {
    let mut manifest = Manifest::empty();
    let files = layout::arrow_files(root)?.into_iter();
    for path in files.filter(|path| WriterName::of_file(path) == *name) {
        manifest.files.push(entry_of(root, &path)?);
    }
    manifest.sort();
    Ok(manifest)
}

/// Manifest entry of the file at `path` in the folder `root`, computed from the file.
pub(crate) fn entry_of(root: &Path, path: &str) -> Result<FileEntry> {
    let (table, date) = layout::table_and_date(path).unwrap_or_default();
    let data = map_file(root, path);
    let hash = data.map_or_else(|_| String::new(), |data| blake3::hash(&data).to_string());
    let mut entry = FileEntry {
        table: table.to_owned(),
        date: date.to_owned(),
        path: path.to_owned(),
        rows: 0,
        bytes: 0,
        blake3: hash,
        footer_blake3: String::new(),
        first_time_ms: 0,
        last_time_ms: 0,
        hosts_count: 0,
        first_host_id: String::new(),
        last_host_id: String::new(),
        thinned_to_ms: None,
        hosts: Vec::new(),
    };
    // A file's name is its hash. If the content has another hash, the entry keeps its zeros and matches no
    // content; the repair then saves the rows that it can.
    let hash = WriterName::hash_of_file(path);
    if !hash.is_empty() && entry.blake3.starts_with(hash) {
        fill(root, &mut entry)?;
    }
    Ok(entry)
}

/// Fills in the entry from a file that is complete and sound.
fn fill(root: &Path, entry: &mut FileEntry) -> Result<()> {
    let table = table(&entry.table).ok_or_else(|| DatasetError::WrongSchema {
        table: entry.table.clone(),
        detail: "no table".to_owned(),
    })?;
    let file = ArrowFile::open_unsealed(root, &entry.path)?;
    entry.bytes = file.data.len() as u64;
    entry.footer_blake3 = file.footer_hash()?;
    entry.thinned_to_ms = file.thinned_to_ms()?;
    let columns = projected(&table, &IDENTITY)?;
    let mut bounds: Option<(i64, i64)> = None;
    let is_indexed = !file.parts().is_empty();
    for at in 0..file.blocks.len() {
        let (batch, blake3) = file.read_block(at, &columns)?;
        let identities = Identities::of(&batch).map_err(DatasetError::rows(table.name))?;
        for &ms in identities.times_ms {
            let (first, last) = bounds.get_or_insert((ms, ms));
            (*first, *last) = (ms.min(*first), ms.max(*last));
        }
        entry.rows += batch.num_rows() as u64;
        if !is_indexed && batch.num_rows() > 0 {
            add_batch(&mut entry.hosts, &identities, at, blake3);
        }
    }
    (entry.first_time_ms, entry.last_time_ms) = bounds.unwrap_or_default();
    if !is_indexed {
        for host in &mut entry.hosts {
            host.blake3 = file.blocks_hash(host.first_batch..host.first_batch + host.batches)?;
        }
    }
    let hosts: Vec<HostRows> = if is_indexed {
        file.hosts().collect::<Result<_>>()?
    } else {
        let index =
            Index::inline(&entry.hosts).map_err(DatasetError::malformed(root, &entry.path))?;
        let hosts = index.hosts().collect::<Result<_, _>>();
        hosts.map_err(DatasetError::malformed(root, &entry.path))?
    };
    entry.hosts_count = hosts.len() as u64;
    let id = |host: Option<&HostRows>| host.map(|h| h.host_id.clone()).unwrap_or_default();
    entry.first_host_id = id(hosts.first());
    entry.last_host_id = id(hosts.last());
    Ok(())
}

/// Adds a batch of a file of format version 1, in which a batch has rows of one host only.
fn add_batch(hosts: &mut Vec<HostEntry>, batch: &Identities<'_>, at: usize, blake3: String) {
    let host_id = batch.hosts.value(0);
    if hosts.last().is_none_or(|host| host.host_id != host_id) {
        hosts.push(HostEntry {
            host_id: host_id.to_owned(),
            first_batch: at,
            batches: 0,
            rows: 0,
            blake3,
            databases: Vec::new(),
        });
    }
    let Some(host) = hosts.last_mut() else { return };
    host.batches += 1;
    host.rows += batch.sequences.len() as u64;
    for ((_, database), (first, last)) in batch.sequence_ranges() {
        let known = host
            .databases
            .iter_mut()
            .find(|d| d.database_id == database);
        match known {
            Some(known) => {
                known.first_sequence = known.first_sequence.min(first);
                known.last_sequence = known.last_sequence.max(last);
            }
            None => host.databases.push(DatabaseEntry {
                database_id: database.to_owned(),
                first_sequence: first,
                last_sequence: last,
            }),
        }
    }
    host.databases
        .sort_by(|a, b| a.database_id.cmp(&b.database_id));
}
