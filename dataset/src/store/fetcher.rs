//! Threads that fetch pieces of files from a store, ahead of their readers where possible.

use super::Store;
use super::pieces::{Extent, FileBytes, Pieces, Request};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Limits of fetching from a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Number of requests at once.
    pub(crate) requests: usize,
    /// Bytes of files that are fetched but not read yet, or may be read again. Only bytes that readers are
    /// waiting for may exceed it.
    pub(crate) held_bytes: u64,
    /// Maximum length of a piece with the record batches of several hosts.
    pub(crate) piece_bytes: u64,
    /// Length of the end of a file that is fetched first, in addition to the length expected for its index. A
    /// shorter file is fetched whole.
    pub(crate) end_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 32,
            held_bytes: 256 << 20,
            piece_bytes: 8 << 20,
            end_bytes: 64 << 10,
        }
    }
}

/// Threads that fetch from a store. They end when the fetcher is dropped, after their present requests.
#[derive(Debug)]
pub(crate) struct Fetcher {
    shared: Arc<Shared>,
    limits: Limits,
}

/// Bytes from a piece, for a reader.
#[derive(Debug)]
pub(crate) struct Portion {
    pub(crate) bytes: FileBytes,
    /// True if no later bytes of the file's record batches were requested yet.
    pub(crate) is_furthest: bool,
}

#[derive(Debug)]
struct Shared {
    pieces: Mutex<Pieces>,
    /// Signals that a piece was fetched, or could not be.
    arrived: Condvar,
    /// Signals that a piece was requested, or that the fetcher was dropped.
    requested: Condvar,
}

impl Fetcher {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn start(store: &Arc<dyn Store>, limits: Limits) -> io::Result<Self> {
        let fetcher = Self {
            shared: Arc::new(Shared {
                pieces: Mutex::new(Pieces::new(limits.held_bytes)),
                arrived: Condvar::new(),
                requested: Condvar::new(),
            }),
            limits,
        };
        for _ in 0..limits.requests {
            let (store, shared) = (Arc::clone(store), Arc::clone(&fetcher.shared));
            thread::Builder::new()
                .name("gleaner-fetch".to_owned())
                .spawn(move || shared.serve(&*store))?;
        }
        Ok(fetcher)
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns true if these bytes are requested or held.
    pub(crate) fn has(&self, path: &str, extent: &Extent) -> bool {
        self.shared.lock().holding(path, extent).is_some()
    }

    /// Requests bytes ahead of their readers, if there is room for them.
    pub(crate) fn prefetch(&self, path: &Arc<str>, extent: Extent) {
        let mut pieces = self.shared.lock();
        if pieces.holding(path, &extent).is_none() && pieces.prefetch(path, extent) {
            self.shared.requested.notify_one();
        }
    }

    /// Returns the last `length` bytes of a file; the whole file if it is shorter.
    ///
    /// # Errors
    /// The store's error.
    pub(crate) fn end(&self, path: &Arc<str>, length: u64) -> io::Result<FileBytes> {
        let end = Extent::End(length);
        Ok(self.wait(path, &end, end.clone())?.bytes)
    }

    /// Returns a piece with the bytes of `span`. If no such piece is held or requested yet, `wanted`, which
    /// contains the span, is fetched.
    ///
    /// # Errors
    /// The store's error; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
    pub(crate) fn read(
        &self,
        path: &Arc<str>,
        span: Range<u64>,
        wanted: Range<u64>,
    ) -> io::Result<Portion> {
        self.wait(path, &Extent::Between(span), Extent::Between(wanted))
    }

    fn wait(&self, path: &Arc<str>, asked: &Extent, wanted: Extent) -> io::Result<Portion> {
        let mut pieces = self.shared.lock();
        let id = match pieces.holding(path, asked) {
            Some(id) => id,
            None => {
                let id = pieces.request(path, wanted);
                self.shared.requested.notify_one();
                id
            }
        };
        pieces.pin(id);
        let outcome = loop {
            match pieces.outcome(id) {
                Some(outcome) => break outcome,
                None => pieces = waited(&self.shared.arrived, pieces),
            }
        };
        let is_furthest = pieces.is_furthest(id);
        pieces.unpin(id, asked);
        outcome.map(|bytes| Portion { bytes, is_furthest })
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.requested.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches what is requested, until the fetcher is dropped.
    fn serve(&self, store: &dyn Store) {
        while let Some(request) = self.next() {
            let fetched = fetch(store, &request);
            self.lock().finish(request.id, fetched);
            self.arrived.notify_all();
        }
    }

    /// Waits for the next request; `None` once the fetcher was dropped.
    fn next(&self) -> Option<Request> {
        let mut pieces = self.lock();
        while !pieces.is_closed {
            if let Some(request) = pieces.next() {
                return Some(request);
            }
            pieces = waited(&self.requested, pieces);
        }
        None
    }
}

fn waited<'a>(signal: &Condvar, pieces: MutexGuard<'a, Pieces>) -> MutexGuard<'a, Pieces> {
    let waited = signal.wait(pieces);
    waited.unwrap_or_else(PoisonError::into_inner)
}

fn fetch(store: &dyn Store, request: &Request) -> io::Result<FileBytes> {
    match &request.extent {
        Extent::End(length) => {
            let (bytes, file_bytes) = store.read_end(&request.path, *length)?;
            Ok(FileBytes {
                start: file_bytes.saturating_sub(bytes.len() as u64),
                bytes: bytes.into(),
            })
        }
        Extent::Between(range) => {
            let bytes = store.read_range(&request.path, range.clone())?;
            if bytes.len() as u64 != range.end - range.start {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(FileBytes {
                start: range.start,
                bytes: bytes.into(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::MemoryStore;

    #[test]
    fn pieces_ahead_stay_within_the_limit_and_readers_never_wait_for_room() {
        let store = Arc::new(MemoryStore::default());
        store.put("a", vec![7; 1000]);
        let limits = Limits {
            requests: 2,
            held_bytes: 100,
            ..Limits::default()
        };
        let of: Arc<dyn Store> = Arc::<MemoryStore>::clone(&store);
        let fetcher = Fetcher::start(&of, limits).unwrap();
        let path: Arc<str> = Arc::from("a");
        let pieces = || (0..90).map(|piece| Extent::Between(piece * 10..piece * 10 + 10));
        for piece in pieces() {
            fetcher.prefetch(&path, piece);
        }
        let ahead = pieces().filter(|piece| fetcher.has(&path, piece)).count();
        assert_eq!(ahead, 10);
        let portion = fetcher.read(&path, 910..950, 900..990).unwrap();
        assert_eq!((portion.bytes.start, portion.bytes.end()), (900, 990));
        let beyond = fetcher.read(&path, 990..1010, 990..1010).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
        let fetched: u64 = store.take_answers().iter().map(|(_, bytes)| bytes).sum();
        assert!(fetched <= 100 + 90 + 10, "{fetched}");
    }
}
