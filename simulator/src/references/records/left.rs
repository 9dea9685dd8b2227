//! References to the pages that leave a list.

use super::merge::Refusal;
use super::record::Record;

/// References that one number of a [`super::record::Kind::More`] record counts.
const MORE_REFERENCES: u64 = 1 << 16;

/// Counts of records of more references, until their pages leave.
#[derive(Debug)]
pub(super) struct LeftReferences {
    /// Page and references of each thread's last record of more references.
    more: Vec<Option<(u64, u64)>>,
}

impl LeftReferences {
    pub(super) fn of_threads(threads: usize) -> Self {
        Self {
            more: vec![None; threads],
        }
    }

    /// Takes a record of more references.
    pub(super) fn more(&mut self, thread: usize, record: &Record) {
        let references = record.enters.saturating_mul(MORE_REFERENCES);
        if let Some(more) = self.more.get_mut(thread) {
            *more = Some((record.leaves, references));
        }
    }

    /// References to the page that leaves with this record.
    #[inline]
    pub(super) fn of(&mut self, thread: usize, record: &Record) -> Result<u64, Refusal> {
        let more = self.more.get_mut(thread).and_then(Option::take);
        match more {
            Some((of, _)) if of != record.leaves => Err(Refusal::Impossible(
                "the record before counts references to another page",
            )),
            more => Ok(record.references + more.map_or(0, |(_, references)| references)),
        }
    }
}
