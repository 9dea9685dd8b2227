//! A file of the journal. It is appended to and synced, later read once, and removed.

use super::entry::Entry;
use crate::Error;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The segment that is being written.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    path: PathBuf,
    file: File,
    /// Number of durable bytes.
    pub(super) bytes: u64,
}

impl Segment {
    /// Creates a segment, and syncs its folder so that the file survives a power failure.
    pub(super) fn create(folder: &Path, number: u64) -> Result<Self, Error> {
        let path = path(folder, number);
        let create = || -> std::io::Result<File> {
            let file = File::create_new(&path)?;
            File::open(folder)?.sync_all()?;
            Ok(file)
        };
        let file = create().map_err(Error::io("create", &path))?;
        Ok(Self {
            number,
            path,
            file,
            bytes: 0,
        })
    }

    /// Appends `entries` (made by [`Entry::write`]) durably, or not at all.
    pub(super) fn append(&mut self, entries: &[u8]) -> Result<(), Error> {
        let written = self
            .file
            .write_all(entries)
            .and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                self.bytes += entries.len() as u64;
                Ok(())
            }
            Err(source) => {
                // A partial entry must not precede the next one, so it is cut off. If this fails too, a
                // reader finds the next entry by its magic.
                let _ = self.file.set_len(self.bytes);
                let _ = self.file.seek(SeekFrom::Start(self.bytes));
                Err(Error::io("write", &self.path)(source))
            }
        }
    }
}

/// Contents of a segment.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Complete entries, in order.
    pub(crate) entries: Vec<Entry>,
    /// Bytes outside complete entries. They are an entry that a crash cut off (never acknowledged), or
    /// damage.
    pub(crate) lost_bytes: usize,
    /// True if a crash does not explain the lost bytes: complete entries follow them, or nothing is missing
    /// at the end.
    pub(crate) is_damaged: bool,
}

/// Reads a segment.
///
/// # Errors
/// The system's error.
pub(crate) fn read(folder: &Path, number: u64) -> Result<Contents, Error> {
    let path = path(folder, number);
    let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
    Ok(contents(&bytes))
}

/// Parses the bytes of a segment.
pub(super) fn contents(bytes: &[u8]) -> Contents {
    let mut contents = Contents::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        if let Some((entry, size)) = Entry::read(rest) {
            contents.entries.push(entry);
            rest = rest.get(size..).unwrap_or_default();
            contents.is_damaged |= contents.lost_bytes > 0;
        } else {
            let skipped = Entry::next_after_damage(rest).unwrap_or(rest.len());
            contents.lost_bytes += skipped;
            contents.is_damaged |= !Entry::is_truncated(rest);
            rest = rest.get(skipped..).unwrap_or_default();
        }
    }
    contents
}

/// Numbers of the segments in `folder`, in order.
pub(super) fn numbers(folder: &Path) -> Result<Vec<u64>, Error> {
    let list = || -> std::io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".journal"));
            numbers.extend(name.and_then(|name| name.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    };
    list().map_err(Error::io("list", folder))
}

/// Removes a segment whose entries are in the dataset.
pub(crate) fn remove(folder: &Path, number: u64) -> Result<(), Error> {
    let path = path(folder, number);
    fs::remove_file(&path).map_err(Error::io("remove", &path))
}

/// Stores an entry that no dataset accepts, for an administrator to inspect. If this is repeated after a
/// crash, it writes the same file.
pub(crate) fn keep_rejected(
    folder: &Path,
    number: u64,
    index: usize,
    entry: &Entry,
) -> Result<PathBuf, Error> {
    let path = folder.join(format!("{number:012}-{index}.rejected"));
    let mut bytes = Vec::new();
    entry.write(&mut bytes);
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&path)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        File::open(folder)?.sync_all()
    };
    write().map_err(Error::io("write", &path))?;
    Ok(path)
}

/// Sets a damaged segment aside, for an administrator to inspect.
pub(crate) fn set_aside(folder: &Path, number: u64) -> Result<PathBuf, Error> {
    let path = path(folder, number);
    let aside = path.with_extension("damaged");
    fs::rename(&path, &aside).map_err(Error::io("rename", &path))?;
    Ok(aside)
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}.journal"))
}

/// Length of a segment in bytes; 0 if unknown.
pub(super) fn length(folder: &Path, number: u64) -> u64 {
    fs::metadata(path(folder, number)).map_or(0, |found| found.len())
}

#[cfg(test)]
mod tests {
    use super::super::entry::Header;
    use super::*;
    use bytes::Bytes;

    fn entries(count: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for sequence in 1..=count {
            let header = Header {
                host_id: "h".to_owned(),
                database_id: "d".to_owned(),
                first_sequence: sequence,
                last_sequence: sequence,
                rows_count: 1,
                received_time_ms: 0,
                skew_ms: None,
            };
            let body = Bytes::from_static(b"a batch");
            Entry { header, body }.write(&mut bytes);
        }
        bytes
    }

    fn contents(bytes: &[u8]) -> Contents {
        let folder = tempfile::tempdir().unwrap();
        fs::write(path(folder.path(), 1), bytes).unwrap();
        read(folder.path(), 1).unwrap()
    }

    #[test]
    fn what_a_crash_cut_off_is_told_from_damage() {
        let whole = entries(3);
        assert_eq!(contents(&whole).entries.len(), 3);
        let cut = contents(&whole[..whole.len() - 3]);
        assert_eq!((cut.entries.len(), cut.is_damaged), (2, false));
        assert!(cut.lost_bytes > 0);
        // One byte is flipped in the last entry, then one in the middle entry. Both entries were
        // acknowledged.
        for at in [whole.len() - 3, whole.len() / 2] {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            let found = contents(&flipped);
            assert_eq!((found.entries.len(), found.is_damaged), (2, true), "{at}");
        }
    }

    #[test]
    fn a_flipped_bit_of_the_last_entry_is_damage_wherever_it_is() {
        let whole = entries(3);
        let last = entries(2).len();
        for bit in last * 8..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = contents(&flipped);
            let told = (found.entries.len(), found.is_damaged);
            assert_eq!(
                told,
                (2, true),
                "bit {bit}: an acknowledged entry taken for a torn tail"
            );
        }
        for length in last + 1..whole.len() {
            let cut = contents(&whole[..length]);
            assert_eq!((cut.entries.len(), cut.is_damaged), (2, false), "{length}");
        }
    }

    #[test]
    fn segments_of_earlier_releases_are_read() {
        let mut bytes = entries(1);
        let entry = contents(&bytes).entries.remove(0);
        entry.write_version_1(&mut bytes);
        entry.write(&mut bytes);
        let found = contents(&bytes);
        assert_eq!((found.entries.len(), found.lost_bytes), (3, 0));
        assert!(found.entries.iter().all(|read| *read == entry));
        bytes.truncate(bytes.len() - 3);
        let found = contents(&bytes);
        assert_eq!((found.entries.len(), found.is_damaged), (2, false));
    }
}
