//! Sends rows to a reader as one Arrow IPC stream. A separate thread reads and encodes the rows, and waits
//! for the reader.
//!
//! Invariant: an incomplete stream cannot be mistaken for a complete one. An incomplete stream breaks off in
//! the middle of a message, and the connection closes without HTTP's last chunk.

use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow::record_batch::RecordBatch;
use bytes::{Bytes, BytesMut};
use gleaner_dataset::DatasetError;
use hyper::body::{Body, Frame};
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;

/// Number of rows in a record batch that is sent. Small batches are joined, and large ones split.
const BATCH_ROWS: usize = 16_384;
/// Size of a chunk sent to the connection.
const CHUNK_BYTES: usize = 64 << 10;
/// Maximum number of chunks that wait for the reader.
const CHUNKS_WAITING: usize = 8;
/// First bytes of a message with 64 KiB of metadata. The metadata never follow, which marks the stream as
/// broken.
const BROKEN_OFF: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0];

/// Reader's end of a stream.
pub(super) struct Receiver {
    parts: mpsc::Receiver<Part>,
    is_broken: bool,
}

/// Writer's end of a stream.
pub(super) struct Sender {
    parts: mpsc::Sender<Part>,
    waiting: BytesMut,
}

enum Part {
    Chunk(Bytes),
    End,
}

/// Reason why a stream broke off.
pub(super) enum StreamBreak {
    /// The reader has disconnected, or stopped reading.
    Gone,
    /// The rows cannot be read.
    Unreadable(DatasetError),
    /// The rows cannot be encoded.
    Unwritable(ArrowError),
}

/// The two ends of a stream.
pub(super) fn channel() -> (Sender, Receiver) {
    let (parts, received) = mpsc::channel(CHUNKS_WAITING);
    let waiting = BytesMut::new();
    let receiver = Receiver {
        parts: received,
        is_broken: false,
    };
    (Sender { parts, waiting }, receiver)
}

impl Sender {
    /// Sends all `batches` of `schema`. Blocks while the reader does not read.
    pub(super) fn send(
        mut self,
        schema: &SchemaRef,
        options: IpcWriteOptions,
        batches: impl Iterator<Item = Result<RecordBatch, DatasetError>>,
    ) -> Result<(), StreamBreak> {
        let sent = write(&mut self, schema, options, batches);
        let sent = sent.and_then(|()| {
            self.pass_on(0).map_err(|_| StreamBreak::Gone)?;
            self.parts
                .blocking_send(Part::End)
                .map_err(|_| StreamBreak::Gone)
        });
        sent.map_err(|broken| {
            if self.parts.is_closed() {
                return StreamBreak::Gone;
            }
            self.waiting.extend_from_slice(&BROKEN_OFF);
            let _ = self.pass_on(0); // if this fails, the reader has gone, or sees an incomplete stream
            broken
        })
    }

    /// Passes waiting bytes to the connection, until at most `rest` bytes wait.
    fn pass_on(&mut self, rest: usize) -> io::Result<()> {
        while self.waiting.len() > rest {
            let length = self.waiting.len().min(CHUNK_BYTES);
            let chunk = Part::Chunk(self.waiting.split_to(length).freeze());
            let sent = self.parts.blocking_send(chunk);
            sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        Ok(())
    }
}

impl Write for &mut Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        self.pass_on(CHUNK_BYTES)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // chunks are sent once they are full, and the last one at the end
    }
}

fn write(
    sender: &mut Sender,
    schema: &SchemaRef,
    options: IpcWriteOptions,
    batches: impl Iterator<Item = Result<RecordBatch, DatasetError>>,
) -> Result<(), StreamBreak> {
    let mut stream = StreamWriter::try_new_with_options(sender, schema, options)
        .map_err(StreamBreak::Unwritable)?;
    let mut joined = BatchCoalescer::new(schema.clone(), BATCH_ROWS);
    for batch in batches {
        let batch = batch.map_err(StreamBreak::Unreadable)?;
        for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            let rows = BATCH_ROWS.min(batch.num_rows() - start);
            let joining = joined.push_batch(batch.slice(start, rows));
            joining
                .and_then(|()| write_completed(&mut joined, &mut stream))
                .map_err(StreamBreak::Unwritable)?;
        }
    }
    let last = joined.finish_buffered_batch();
    last.and_then(|()| write_completed(&mut joined, &mut stream))
        .and_then(|()| stream.finish())
        .map_err(StreamBreak::Unwritable)
}

fn write_completed<W: Write>(
    joined: &mut BatchCoalescer,
    stream: &mut StreamWriter<W>,
) -> Result<(), ArrowError> {
    while let Some(batch) = joined.next_completed_batch() {
        stream.write(&batch)?;
    }
    Ok(())
}

impl Body for Receiver {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match ready!(self.parts.poll_recv(context)) {
            Some(Part::Chunk(bytes)) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Some(Part::End) => Poll::Ready(None),
            None if self.is_broken => {
                let error = io::Error::other("the rows could not be read to the end");
                Poll::Ready(Some(Err(error)))
            }
            None => {
                // Data sent before an error are lost unless flushed now.
                self.is_broken = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}
