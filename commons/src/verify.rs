//! Verification: reads every block of a source and lists the files that differ from the catalog.

use crate::catalog::{BLOCK_BYTES, Catalog, CatalogEntry, EntryKind, blocks_of, shown};
use crate::source::BlockSource;
use crate::store::{BlockOrigin, BlockPlace, FetchError};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationReport {
    /// Hash of the catalog, in hexadecimal digits.
    pub catalog: String,
    /// Number of files in the catalog.
    pub files_count: u64,
    /// Bytes of all files in the catalog.
    pub bytes: u64,
    /// Files that differ or cannot be read, in the order of their paths.
    pub faults: Vec<FileFault>,
}

/// A file that differs from the catalog or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFault {
    /// Row of the file in the catalog.
    pub row: u64,
    /// Path of the file.
    pub path: String,
    /// Description of the first fault.
    pub fault: String,
    /// First block with a fault, counted from 0; `None` if the fault is not in one block.
    pub block: Option<u64>,
    /// Offset of that block in the file, in bytes.
    pub offset_bytes: Option<u64>,
    /// Number of blocks with a fault.
    pub blocks_count: u64,
}

/// Reads all files of `source` with `threads` threads. `progress` gets the number of bytes of the files that
/// have been read. A file that could not be read because the source does not work counts as a fault, too.
///
/// # Errors
/// The system has no more threads.
pub fn verify(
    catalog: &Catalog,
    source: &BlockSource,
    timeout: Duration,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> std::io::Result<VerificationReport> {
    let next = AtomicU64::new(0);
    let mut faults = Vec::new();
    thread::scope(|scope| {
        let (sender, done) = channel();
        for _ in 0..threads.max(1) {
            let sender = sender.clone();
            let next = &next;
            let work = move || {
                while let Some(entry) = catalog.entry(next.fetch_add(1, Ordering::Relaxed)) {
                    if entry.kind == EntryKind::File {
                        let fault = check(source, &entry, timeout);
                        if sender.send((entry.bytes, fault)).is_err() {
                            return;
                        }
                    }
                }
            };
            thread::Builder::new().spawn_scoped(scope, work)?;
        }
        drop(sender);
        let mut read_bytes = 0;
        for (bytes, fault) in done {
            read_bytes += bytes;
            progress(read_bytes);
            faults.extend(fault);
        }
        Ok::<(), std::io::Error>(())
    })?;
    faults.sort_unstable_by_key(|fault: &FileFault| fault.row);
    Ok(VerificationReport {
        catalog: catalog.name(),
        files_count: catalog.totals().files,
        bytes: catalog.totals().bytes,
        faults,
    })
}

/// Reads one file.
fn check(source: &BlockSource, entry: &CatalogEntry<'_>, timeout: Duration) -> Option<FileFault> {
    let mut fault = FileFault {
        row: entry.row,
        path: shown(entry.path),
        fault: String::new(),
        block: None,
        offset_bytes: None,
        blocks_count: 0,
    };
    let mut whole = blake3::Hasher::new();
    for index in 0..blocks_of(entry.bytes) {
        let Some(hash) = entry.block(index) else {
            break; // the catalog was changed in place
        };
        let place = BlockPlace {
            hash,
            mount: 0,
            row: entry.row,
            index,
        };
        let fetched = source.fetch(&place, Instant::now() + timeout);
        let fetched = fetched.and_then(|bytes| {
            if blake3::hash(&bytes) == hash {
                return Ok(bytes);
            }
            Err(FetchError::Differs {
                detail: "its bytes have another hash".to_owned(),
            })
        });
        match fetched {
            Ok(bytes) => {
                whole.update(&bytes);
            }
            Err(error) => {
                fault.blocks_count += 1;
                if fault.block.is_none() {
                    fault.block = Some(index);
                    fault.offset_bytes = Some(index * BLOCK_BYTES);
                    fault.fault = error.to_string();
                }
                // No further block of a file can be read that is missing, or whose server is down.
                if !matches!(error, FetchError::Differs { .. }) {
                    return Some(fault);
                }
            }
        }
    }
    if fault.block.is_some() {
        return Some(fault);
    }
    if let Err(error) = source.check_size(entry, Instant::now() + timeout) {
        fault.fault = error.to_string();
        return Some(fault);
    }
    if entry
        .blake3
        .is_some_and(|sealed| whole.finalize() != sealed)
    {
        "every block is right, but the catalog has another hash of the whole file"
            .clone_into(&mut fault.fault);
        return Some(fault);
    }
    None
}

impl VerificationReport {
    /// Report as text: a line per fault, and a line with the totals.
    #[must_use]
    pub fn text(&self) -> String {
        use gleaner_schemas::units::{Bytes, thousands};
        let mut text = String::new();
        for fault in &self.faults {
            let place = match (fault.block, fault.offset_bytes) {
                (Some(block), Some(offset)) => format!(": block {block} at byte {offset}"),
                _ => String::new(),
            };
            let more = match fault.blocks_count {
                0 | 1 => String::new(),
                count => format!(" ({} blocks have faults)", thousands(count)),
            };
            text.push_str(&format!("{}{place}: {}{more}\n", fault.path, fault.fault));
        }
        let (files, bytes) = (thousands(self.files_count), Bytes::from(self.bytes));
        let verdict = match self.faults.len() {
            0 => "all equal the catalog".to_owned(),
            1 => "1 differs or cannot be read".to_owned(),
            count => format!("{} differ or cannot be read", thousands(count)),
        };
        text.push_str(&format!("{files} files, {bytes}: {verdict}\n"));
        text
    }
}
