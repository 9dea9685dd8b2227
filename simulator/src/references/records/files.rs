//! The recorder's files of records: their heads, and the records of one thread.

use super::super::error::ReferencesError;
use super::MAGIC;
use super::record::{RECORD_BYTES, Record};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a file's head.
pub(super) const HEAD_BYTES: usize = 64;
/// Records that are read at a time.
const BUFFER_RECORDS: u64 = 4096;

/// A file of records.
#[derive(Clone, Debug)]
struct RecordFile {
    path: PathBuf,
    records: u64,
}

/// Records of one thread, in their order. At most a buffer of them is in memory, and no file is kept open.
#[derive(Debug)]
pub(super) struct ThreadRecords {
    pub(super) process: u32,
    /// Files that were not read yet, the next one last.
    files: Vec<RecordFile>,
    present: Option<RecordFile>,
    /// Records of the present file that were read into the buffer.
    read: u64,
    buffer: Vec<u8>,
    /// Position in the buffer.
    at: usize,
    next: Option<Record>,
    /// Sequence of the newest record that was decoded.
    last: Option<u64>,
}

/// Finds the files of a recording, and returns the records of each thread, with their number in all.
///
/// # Errors
/// The system's error, or a file whose head is not the recorder's.
pub(super) fn threads(folder: &Path) -> Result<(Vec<ThreadRecords>, u64), ReferencesError> {
    let entries = std::fs::read_dir(folder).map_err(ReferencesError::io("read", folder))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(ReferencesError::io("read", folder))?.path();
        if path.file_name().is_some_and(|name| name != "control") {
            paths.push(path);
        }
    }
    paths.sort_unstable(); // the names are numbers of equal length
    let mut all = 0;
    let mut threads: BTreeMap<(u32, u32), Vec<RecordFile>> = BTreeMap::new();
    for path in paths {
        let (thread, file) = head(path)?;
        all += file.records;
        threads.entry(thread).or_default().push(file);
    }
    let threads = threads.into_iter().map(|((process, _), mut files)| {
        files.reverse();
        ThreadRecords {
            process,
            files,
            present: None,
            read: 0,
            buffer: Vec::new(),
            at: 0,
            next: None,
            last: None,
        }
    });
    Ok((threads.collect(), all))
}

/// Reads a file's head: process, thread and number of records.
fn head(path: PathBuf) -> Result<((u32, u32), RecordFile), ReferencesError> {
    let mut file = File::open(&path).map_err(ReferencesError::io("open", &path))?;
    let length = file
        .metadata()
        .map_err(ReferencesError::io("read", &path))?
        .len();
    let mut head = [0; HEAD_BYTES];
    let is_whole = length >= HEAD_BYTES as u64;
    if is_whole {
        file.read_exact(&mut head)
            .map_err(ReferencesError::io("read", &path))?;
    }
    let words: Vec<u64> = head
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect();
    let [magic, thread, records, ..] = words[..] else {
        return Err(ReferencesError::record(&path, 0, "the file has no head"));
    };
    // A killed program may leave a file that has no head yet.
    if is_whole && magic == 0 && records == 0 {
        return Ok(((0, 0), RecordFile { path, records: 0 }));
    }
    if !is_whole || magic.to_le_bytes() != *MAGIC {
        return Err(ReferencesError::record(
            &path,
            0,
            "this is no file of the recorder",
        ));
    }
    let room = (length - HEAD_BYTES as u64) / RECORD_BYTES as u64;
    if records > room {
        let found = format!("{records} records are announced, and the file has room for {room}");
        return Err(ReferencesError::record(&path, 16, found));
    }
    let (process, thread) = (thread as u32, (thread >> 32) as u32);
    Ok(((process, thread), RecordFile { path, records }))
}

impl ThreadRecords {
    /// Sequence of the next record; `None` at the end.
    ///
    /// # Errors
    /// The system's error, an unknown record, or one that is out of order.
    pub(super) fn sequence(&mut self) -> Result<Option<u64>, ReferencesError> {
        if self.next.is_none() {
            self.next = self.decode()?;
        }
        Ok(self.next.map(|record| record.sequence))
    }

    /// Next record, if its sequence is below `until`.
    ///
    /// # Errors
    /// As for [`Self::sequence`].
    #[inline]
    pub(super) fn next_before(&mut self, until: u64) -> Result<Option<Record>, ReferencesError> {
        let next = match self.next {
            Some(next) => Some(next),
            None => self.decode()?,
        };
        let is_before = next.is_some_and(|next| next.sequence < until);
        self.next = if is_before { None } else { next };
        Ok(next.filter(|_| is_before))
    }

    /// Makes an error about the newest record that was decoded.
    #[cold]
    pub(super) fn wrong(&self, found: impl Into<String>) -> ReferencesError {
        let path = self.present.as_ref().map(|file| file.path.as_path());
        let behind = (self.buffer.len() - self.at) / RECORD_BYTES;
        let before = self.read.saturating_sub(behind as u64 + 1);
        let offset = HEAD_BYTES as u64 + before * RECORD_BYTES as u64;
        ReferencesError::record(path.unwrap_or(Path::new("records")), offset, found)
    }

    #[inline]
    fn decode(&mut self) -> Result<Option<Record>, ReferencesError> {
        if self.at == self.buffer.len() && !self.fill()? {
            return Ok(None);
        }
        let bytes = self.buffer[self.at..].first_chunk::<RECORD_BYTES>();
        let record = bytes.and_then(Record::of);
        self.at += RECORD_BYTES; // the buffer has whole records
        let Some(record) = record else {
            return Err(self.wrong("there is no such kind of record"));
        };
        if self.last.is_some_and(|last| record.sequence <= last) {
            return Err(self.wrong("the record is older than the one before"));
        }
        self.last = Some(record.sequence);
        Ok(Some(record))
    }

    /// Refills the buffer; returns false at the end of the last file.
    fn fill(&mut self) -> Result<bool, ReferencesError> {
        loop {
            if let Some(file) = &self.present {
                let count = (file.records - self.read).min(BUFFER_RECORDS);
                if count > 0 {
                    self.buffer.resize(count as usize * RECORD_BYTES, 0);
                    let offset = HEAD_BYTES as u64 + self.read * RECORD_BYTES as u64;
                    let opened = File::open(&file.path);
                    let read = opened.and_then(|open| open.read_exact_at(&mut self.buffer, offset));
                    read.map_err(ReferencesError::io("read", &file.path))?;
                    self.at = 0;
                    self.read += count;
                    return Ok(true);
                }
            }
            match self.files.pop() {
                Some(file) => {
                    self.present = Some(file);
                    self.read = 0;
                }
                None => {
                    self.buffer = Vec::new();
                    self.at = 0;
                    return Ok(false);
                }
            }
        }
    }
}
