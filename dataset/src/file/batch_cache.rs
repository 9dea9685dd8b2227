//! Cache of decoded batches that several hosts share. It holds one batch per file, and has a limit for the
//! memory of all of them.

use crate::file::index::Part;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum size of all cached batches together.
const BYTES_AT_MOST: usize = 256 << 20;

/// The batch that was decoded last from a file.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Option<CachedBatch>>);

struct CachedBatch {
    part: Part,
    columns: SchemaRef,
    rows: RecordBatch,
}

/// Cache of the batches of several files.
#[derive(Default)]
pub(crate) struct BatchCache(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    /// Slots that are not empty, in the order in which they were first filled.
    filled: VecDeque<Arc<Slot>>,
    bytes: usize,
}

impl Slot {
    /// The rows of `part` with these columns, if they are cached.
    pub(crate) fn get(&self, part: &Part, columns: &SchemaRef) -> Option<RecordBatch> {
        let kept = lock(&self.0);
        let kept = kept.as_ref()?;
        (kept.part == *part && kept.columns == *columns).then(|| kept.rows.clone())
    }
}

impl BatchCache {
    /// Puts `rows` into `slot`, replacing its batch. If the memory limit is exceeded, other slots are
    /// emptied, the one filled first before the others.
    pub(crate) fn keep(
        &self,
        slot: &Arc<Slot>,
        part: &Part,
        columns: &SchemaRef,
        rows: &RecordBatch,
    ) {
        let mut slots = lock(&self.0);
        slots.bytes += rows.get_array_memory_size();
        let kept = CachedBatch {
            part: part.clone(),
            columns: Arc::clone(columns),
            rows: rows.clone(),
        };
        let before = lock(&slot.0).replace(kept);
        match before {
            Some(before) => slots.bytes -= before.rows.get_array_memory_size(),
            None => slots.filled.push_back(Arc::clone(slot)),
        }
        while slots.bytes > BYTES_AT_MOST {
            let Some(first) = slots.filled.pop_front() else {
                return;
            };
            let emptied = lock(&first.0).take();
            slots.bytes -= emptied.map_or(0, |kept| kept.rows.get_array_memory_size());
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
