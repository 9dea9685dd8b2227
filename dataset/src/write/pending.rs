//! Rows of one table and day that are not sealed yet.

use arrow::array::{Array, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;

/// Number of rows below which a batch is small, and is joined with others.
const SMALL_ROWS: usize = 1024;
/// Number of small batches that are joined into one. A batch of a few rows takes a hundred times the memory
/// of the rows themselves.
const SMALL_PIECES: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct PendingRows {
    pub(crate) pieces: Vec<RecordBatch>,
    /// Number of small batches, which are at the end of `pieces`.
    small: usize,
}

impl PendingRows {
    pub(crate) fn push(&mut self, rows: RecordBatch) -> Result<(), ArrowError> {
        if rows.num_rows() < SMALL_ROWS {
            // The rows are copied: a slice might keep a large buffer in memory.
            let all: UInt32Array = (0..).take(rows.num_rows()).collect();
            self.pieces.push(take_record_batch(&rows, &all)?);
            self.small += 1;
        } else {
            self.pieces.push(rows);
            self.small = 0;
        }
        if self.small == SMALL_PIECES {
            let first = self.pieces.len() - SMALL_PIECES;
            let small = &self.pieces[first..];
            let joined = concat_batches(&small[0].schema(), small)?;
            self.small = usize::from(joined.num_rows() < SMALL_ROWS);
            self.pieces.truncate(first);
            self.pieces.push(joined);
        }
        Ok(())
    }

    /// Total number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.pieces.iter().map(RecordBatch::num_rows).sum()
    }

    /// Memory of the rows, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let columns = self.pieces.iter().flat_map(RecordBatch::columns);
        let sizes = columns.map(|c| c.to_data().get_slice_memory_size());
        sizes.filter_map(Result::ok).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use std::sync::Arc;

    #[test]
    fn tiny_pieces_are_joined_in_their_order() {
        let mut pending = PendingRows::default();
        let batch = |values: std::ops::Range<i64>| {
            let column = Int64Array::from_iter_values(values);
            RecordBatch::try_from_iter([("x", Arc::new(column) as _)]).unwrap()
        };
        let mut next = 0;
        for i in 0..20_000 {
            let rows = if i % 5000 == 4999 { 3000 } else { 1 };
            pending.push(batch(next..next + rows)).unwrap();
            next += rows;
            let most = SMALL_PIECES * 5 + pending.rows() / SMALL_ROWS;
            assert!(pending.pieces.len() <= most);
        }
        assert_eq!(pending.rows() as i64, next);
        let joined = concat_batches(&pending.pieces[0].schema(), &pending.pieces).unwrap();
        let values = joined.column(0).as_primitive::<Int64Type>().values();
        assert!(values.iter().copied().eq(0..next));
    }
}
