//! Records of all threads in the order in which they were made.

use super::super::error::ReferencesError;
use super::files::ThreadRecords;
use super::record::Record;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Calls `take` with each record and the index of its thread, by the records' sequence. `take` returns a
/// description of a record that cannot be.
///
/// # Errors
/// The errors of the files, and records that `take` refuses.
pub(super) fn in_order(
    threads: &mut [ThreadRecords],
    mut take: impl FnMut(usize, u32, &Record) -> Result<(), Refusal>,
) -> Result<(), ReferencesError> {
    let mut heads = BinaryHeap::new();
    for (thread, records) in threads.iter_mut().enumerate() {
        if let Some(sequence) = records.sequence()? {
            heads.push(Reverse((sequence, thread)));
        }
    }
    while let Some(Reverse((_, thread))) = heads.pop() {
        let Some(records) = threads.get_mut(thread) else {
            break;
        };
        let until = heads
            .peek()
            .map_or(u64::MAX, |Reverse((sequence, _))| *sequence);
        // Two records with one sequence: the first thread's comes first.
        let until = until.saturating_add(1);
        while let Some(record) = records.next_before(until)? {
            match take(thread, records.process, &record) {
                Ok(()) => {}
                Err(Refusal::Impossible(found)) => return Err(records.wrong(found)),
                Err(Refusal::Error(error)) => return Err(error),
            }
        }
        if let Some(sequence) = records.sequence()? {
            heads.push(Reverse((sequence, thread)));
        }
    }
    Ok(())
}

/// Reason why a record was refused.
pub(super) enum Refusal {
    /// No recorder writes this record here.
    Impossible(&'static str),
    /// Another error.
    Error(ReferencesError),
}
