//! The recorder's file `control`: counters of all processes of a program.

use super::super::error::ReferencesError;
use super::MAGIC;
use std::path::Path;

/// Counters of a recording. They are in shared memory while the program runs, so they can be read at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Number of records.
    pub records: u64,
    /// Number of files with records.
    pub files: u64,
    /// Processes that ran: the program, and those that it forked.
    pub processes: u64,
    /// Processes that ended by themselves.
    pub ended: u64,
    /// Processes that another program has replaced (execve), which is not recorded.
    pub replaced: u64,
    /// Instructions of all processes.
    pub instructions: u64,
    /// Loads and stores of all processes.
    pub references: u64,
    /// Threads whose records were lost.
    pub lost: u64,
    /// Error of the system by which records were lost first; 0 if none were.
    pub error: i32,
    /// Size of the cache whose misses were recorded; 0 if references were.
    pub cache_bytes: u64,
    /// True if the pages of instructions were recorded, too.
    pub has_code: bool,
}

/// Numbers in the file, after [`MAGIC`].
const NUMBERS: usize = 12;

impl Control {
    /// Reads the counters of a recording in this folder.
    ///
    /// # Errors
    /// The system's error, or a file that is too short or has other contents.
    pub fn read(folder: &Path) -> Result<Self, ReferencesError> {
        let path = folder.join("control");
        let bytes = std::fs::read(&path).map_err(ReferencesError::io("read", &path))?;
        let found = "this is no file of the recorder";
        let rest = bytes.strip_prefix(MAGIC);
        let rest = rest.ok_or_else(|| ReferencesError::record(&path, 0, found))?;
        let mut numbers = [0_u64; NUMBERS];
        let (chunks, _) = rest.as_chunks::<8>();
        if chunks.len() < NUMBERS {
            let found = format!("the file ends after {} of {NUMBERS} counters", chunks.len());
            return Err(ReferencesError::record(&path, bytes.len() as u64, found));
        }
        for (number, chunk) in numbers.iter_mut().zip(chunks) {
            *number = u64::from_le_bytes(*chunk);
        }
        let [
            records,
            files,
            processes,
            ended,
            replaced,
            instructions,
            references,
            lost,
            error,
            is_misses,
            cache_bytes,
            has_code,
        ] = numbers;
        Ok(Self {
            records,
            files,
            processes,
            ended,
            replaced,
            instructions,
            references,
            lost,
            error: i32::try_from(error).unwrap_or(i32::MAX),
            cache_bytes: if is_misses == 0 { 0 } else { cache_bytes },
            has_code: has_code != 0,
        })
    }

    /// Reason why the recording lacks a part of the program's references; `None` if it is whole.
    #[must_use]
    pub fn cut(&self) -> Option<String> {
        if self.lost > 0 {
            let error = std::io::Error::from_raw_os_error(self.error);
            return Some(format!(
                "records of {} threads were lost, the first because of: {error}",
                self.lost
            ));
        }
        if self.replaced > 0 {
            return Some(format!(
                "{} of {} processes were replaced by another program (execve), which is not recorded",
                self.replaced, self.processes
            ));
        }
        let missing = self.processes.saturating_sub(self.ended);
        (missing > 0).then(|| {
            format!(
                "{missing} of {} processes were killed, or still ran",
                self.processes
            )
        })
    }
}
