//! Pieces of files that are requested, being fetched, or held in memory for readers, with a limit of their bytes.
//! A state machine without threads and without I/O.
//!
//! A piece that readers need at once is always accepted: pieces that nobody waits for make room, those first that
//! were read to their end. A piece that is only fetched ahead is accepted if there is room. So readers never wait
//! for room.

use arrow::buffer::Buffer;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a file to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Last bytes of the file, of this length; the whole file if it is shorter.
    End(u64),
    /// Bytes between two offsets.
    Between(Range<u64>),
}

impl Extent {
    fn bytes(&self) -> u64 {
        match self {
            Self::End(bytes) => *bytes,
            Self::Between(range) => range.end.saturating_sub(range.start),
        }
    }

    fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::End(bytes), Self::End(others)) => bytes >= others,
            (Self::Between(range), Self::Between(others)) => {
                range.start <= others.start && others.end <= range.end
            }
            _ => false,
        }
    }
}

/// Bytes of a file from the offset `start` on.
#[derive(Clone, Debug)]
pub(crate) struct FileBytes {
    pub(crate) start: u64,
    pub(crate) bytes: Buffer,
}

impl FileBytes {
    /// Offset of the end of the bytes.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

/// Request of a piece, for a thread that fetches it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) path: Arc<str>,
    pub(super) extent: Extent,
}

#[derive(Debug)]
struct Piece {
    path: Arc<str>,
    extent: Extent,
    state: State,
    /// Number of readers that wait for the piece, or are taking it. Meanwhile it stays.
    readers: usize,
    last_use: u64,
    /// Highest offset up to which the piece was read.
    read_to: u64,
}

#[derive(Debug)]
enum State {
    Queued,
    InFlight,
    Held(FileBytes),
    Failed(io::ErrorKind, String),
}

impl Piece {
    fn is_read(&self) -> bool {
        matches!(&self.extent, Extent::Between(range) if self.read_to >= range.end)
    }

    /// Returns true if the piece may be dropped to make room. The end of a file stays until it is taken.
    fn may_go(&self) -> bool {
        let is_held = matches!(self.state, State::Held(_));
        is_held && self.readers == 0 && matches!(self.extent, Extent::Between(_))
    }
}

/// All pieces of one dataset's files.
#[derive(Debug)]
pub(super) struct Pieces {
    pieces: HashMap<u64, Piece>,
    /// Ids of the pieces of each file.
    by_path: HashMap<Arc<str>, Vec<u64>>,
    queue: VecDeque<u64>,
    /// Bytes of all pieces, requested or held.
    bytes: u64,
    bytes_at_most: u64,
    uses: u64,
    pub(super) is_closed: bool,
}

impl Pieces {
    pub(super) fn new(bytes_at_most: u64) -> Self {
        Self {
            pieces: HashMap::new(),
            by_path: HashMap::new(),
            queue: VecDeque::new(),
            bytes: 0,
            bytes_at_most,
            uses: 0,
            is_closed: false,
        }
    }

    /// Bytes of all pieces, requested or held.
    #[cfg(test)]
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Id of the piece, requested or held, that contains this extent of the file.
    pub(super) fn holding(&self, path: &str, extent: &Extent) -> Option<u64> {
        let mut ids = self.by_path.get(path)?.iter().copied();
        ids.find(|id| {
            self.pieces.get(id).is_some_and(|piece| {
                !matches!(piece.state, State::Failed(..)) && piece.extent.contains(extent)
            })
        })
    }

    /// Requests a piece that a reader needs at once; returns its id.
    pub(super) fn request(&mut self, path: &Arc<str>, extent: Extent) -> u64 {
        self.make_room(extent.bytes(), true);
        self.add(path, extent)
    }

    /// Requests a piece ahead of its readers. Returns false, and requests nothing, without room.
    pub(super) fn prefetch(&mut self, path: &Arc<str>, extent: Extent) -> bool {
        self.make_room(extent.bytes(), false);
        let has_room = self.bytes.saturating_add(extent.bytes()) <= self.bytes_at_most;
        if has_room {
            self.add(path, extent);
        }
        has_room
    }

    fn add(&mut self, path: &Arc<str>, extent: Extent) -> u64 {
        self.uses += 1;
        let id = self.uses;
        self.bytes = self.bytes.saturating_add(extent.bytes());
        let piece = Piece {
            path: Arc::clone(path),
            extent,
            state: State::Queued,
            readers: 0,
            last_use: id,
            read_to: 0,
        };
        self.pieces.insert(id, piece);
        let of_file = self.by_path.entry(Arc::clone(path)).or_default();
        of_file.push(id);
        self.queue.push_back(id);
        id
    }

    /// Drops held pieces until `bytes` more fit: first those that were read to their end, then, if `is_needed`,
    /// others; each group from the least recently used on. An eighth of the limit more is dropped of the first
    /// group, so that few calls look at all pieces.
    fn make_room(&mut self, bytes: u64, is_needed: bool) {
        let fits = self.bytes_at_most.saturating_sub(bytes);
        if self.bytes <= fits {
            return;
        }
        let may_go = self.pieces.iter().filter(|(_, piece)| piece.may_go());
        let keys = may_go.map(|(id, piece)| (!piece.is_read(), piece.last_use, *id));
        let mut keys: Vec<(bool, u64, u64)> = keys.filter(|key| is_needed || !key.0).collect();
        keys.sort_unstable();
        for (is_unread, _, id) in keys {
            let spare = if is_unread { 0 } else { self.bytes_at_most / 8 };
            if self.bytes > fits.saturating_sub(spare) {
                self.remove(id);
            }
        }
    }

    fn remove(&mut self, id: u64) {
        let Some(piece) = self.pieces.remove(&id) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(piece.extent.bytes());
        if let Some(ids) = self.by_path.get_mut(&piece.path) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_path.remove(&piece.path);
            }
        }
    }

    /// Registers a reader that waits for the piece, which is then fetched next.
    pub(super) fn pin(&mut self, id: u64) {
        self.uses += 1;
        let now = self.uses;
        let Some(piece) = self.pieces.get_mut(&id) else {
            return;
        };
        piece.readers += 1;
        piece.last_use = now;
        if matches!(piece.state, State::Queued)
            && let Some(at) = self.queue.iter().position(|queued| *queued == id)
        {
            self.queue.remove(at);
            self.queue.push_front(id);
        }
    }

    /// Outcome of fetching a pinned piece; `None` while it is awaited.
    pub(super) fn outcome(&self, id: u64) -> Option<io::Result<FileBytes>> {
        match self.pieces.get(&id).map(|piece| &piece.state) {
            Some(State::Held(bytes)) => Some(Ok(bytes.clone())),
            Some(State::Failed(kind, message)) => Some(Err(io::Error::new(*kind, message.clone()))),
            Some(State::Queued | State::InFlight) => None,
            None => Some(Err(io::Error::other("its bytes were dropped"))),
        }
    }

    /// Ends a reader's use of a piece, of which it read `extent`. Failures are forgotten with the last reader:
    /// the next one fetches anew. The end of a file is taken by its reader.
    pub(super) fn unpin(&mut self, id: u64, extent: &Extent) {
        let Some(piece) = self.pieces.get_mut(&id) else {
            return;
        };
        piece.readers = piece.readers.saturating_sub(1);
        if let Extent::Between(range) = extent {
            piece.read_to = piece.read_to.max(range.end);
        }
        let is_taken = matches!(piece.extent, Extent::End(_));
        if piece.readers == 0 && (is_taken || matches!(piece.state, State::Failed(..))) {
            self.remove(id);
        }
    }

    /// Returns true if no other piece of the same file goes further than this one.
    pub(super) fn is_furthest(&self, id: u64) -> bool {
        let end = |id: &u64| match self.pieces.get(id).map(|piece| &piece.extent) {
            Some(Extent::Between(range)) => range.end,
            _ => 0,
        };
        let of_file = (self.pieces.get(&id)).and_then(|piece| self.by_path.get(&piece.path));
        of_file.is_some_and(|ids| ids.iter().all(|other| end(other) <= end(&id)))
    }

    /// Takes the next request from the queue.
    pub(super) fn next(&mut self) -> Option<Request> {
        let id = self.queue.pop_front()?;
        let piece = self.pieces.get_mut(&id)?;
        piece.state = State::InFlight;
        Some(Request {
            id,
            path: Arc::clone(&piece.path),
            extent: piece.extent.clone(),
        })
    }

    /// Stores the result of a request. A failure that no reader awaits is forgotten.
    pub(super) fn finish(&mut self, id: u64, fetched: io::Result<FileBytes>) {
        let Some(piece) = self.pieces.get_mut(&id) else {
            return;
        };
        match fetched {
            Ok(bytes) => piece.state = State::Held(bytes),
            Err(_) if piece.readers == 0 => self.remove(id),
            Err(error) => piece.state = State::Failed(error.kind(), error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(start: u64, end: u64) -> Extent {
        Extent::Between(start..end)
    }

    fn path(name: &str) -> Arc<str> {
        Arc::from(name)
    }

    /// Fetches all requests, and reads none of the pieces.
    fn fetch_all(pieces: &mut Pieces) -> usize {
        let mut fetched = 0;
        while let Some(request) = pieces.next() {
            let (start, length) = match &request.extent {
                Extent::End(bytes) => (0, *bytes),
                Extent::Between(range) => (range.start, range.end - range.start),
            };
            let bytes = Buffer::from_vec(vec![0_u8; length as usize]);
            pieces.finish(request.id, Ok(FileBytes { start, bytes }));
            fetched += 1;
        }
        fetched
    }

    fn read(pieces: &mut Pieces, path: &str, extent: &Extent) {
        let id = pieces.holding(path, extent).unwrap();
        pieces.pin(id);
        assert!(pieces.outcome(id).unwrap().is_ok());
        pieces.unpin(id, extent);
    }

    #[test]
    fn pieces_ahead_stay_within_the_limit_and_needed_ones_are_always_accepted() {
        let mut pieces = Pieces::new(100);
        let (a, b) = (path("a"), path("b"));
        assert!(pieces.prefetch(&a, between(0, 60)));
        assert!(!pieces.prefetch(&b, between(0, 60)));
        assert_eq!(pieces.bytes(), 60);
        // Nothing can be dropped while it is in flight: the needed piece exceeds the limit.
        pieces.request(&b, between(0, 60));
        assert_eq!(pieces.bytes(), 120);
        assert_eq!(fetch_all(&mut pieces), 2);
        // Unread pieces make room for needed ones only.
        assert!(!pieces.prefetch(&a, between(60, 80)));
        pieces.request(&a, between(60, 80));
        assert_eq!(pieces.bytes(), 80);
        assert_eq!(pieces.holding("a", &between(0, 60)), None);
        assert!(pieces.holding("b", &between(10, 20)).is_some());
    }

    #[test]
    fn pieces_that_were_read_go_first() {
        let mut pieces = Pieces::new(100);
        let a = path("a");
        for start in [0, 30, 60] {
            assert!(pieces.prefetch(&a, between(start, start + 30)));
        }
        assert_eq!(fetch_all(&mut pieces), 3);
        read(&mut pieces, "a", &between(30, 45)); // not to its end
        read(&mut pieces, "a", &between(60, 90));
        assert!(pieces.prefetch(&a, between(90, 120)));
        assert_eq!(pieces.holding("a", &between(60, 90)), None);
        for kept in [between(0, 30), between(30, 60), between(90, 120)] {
            assert!(pieces.holding("a", &kept).is_some(), "{kept:?}");
        }
    }

    #[test]
    fn a_piece_stays_while_a_reader_has_it() {
        let mut pieces = Pieces::new(100);
        let a = path("a");
        let first = pieces.request(&a, between(0, 90));
        pieces.pin(first);
        fetch_all(&mut pieces);
        let second = pieces.request(&a, between(90, 180));
        pieces.pin(second);
        fetch_all(&mut pieces);
        assert!(pieces.outcome(first).unwrap().is_ok());
        pieces.unpin(first, &between(0, 90));
        pieces.request(&a, between(180, 270));
        assert_eq!(pieces.holding("a", &between(0, 90)), None);
        assert!(pieces.outcome(second).unwrap().is_ok());
    }

    #[test]
    fn a_piece_that_a_reader_awaits_is_fetched_next() {
        let mut pieces = Pieces::new(1000);
        let a = path("a");
        for start in 0..5 {
            pieces.prefetch(&a, between(start * 10, start * 10 + 10));
        }
        let awaited = pieces.holding("a", &between(30, 40)).unwrap();
        pieces.pin(awaited);
        assert_eq!(pieces.next().unwrap().id, awaited);
        let first = pieces.holding("a", &between(0, 10)).unwrap();
        assert_eq!(pieces.next().unwrap().id, first);
    }

    #[test]
    fn a_failure_reaches_those_who_wait_and_is_then_forgotten() {
        let mut pieces = Pieces::new(100);
        let a = path("a");
        let failed = || Err(io::Error::new(io::ErrorKind::NotFound, "gone"));
        pieces.prefetch(&a, between(0, 10));
        let request = pieces.next().unwrap();
        pieces.finish(request.id, failed());
        assert_eq!(
            (pieces.holding("a", &between(0, 10)), pieces.bytes()),
            (None, 0)
        );
        let id = pieces.request(&a, between(0, 10));
        pieces.pin(id);
        pieces.pin(id);
        let request = pieces.next().unwrap();
        pieces.finish(request.id, failed());
        assert_eq!(pieces.holding("a", &between(0, 10)), None);
        for _ in 0..2 {
            let error = pieces.outcome(id).unwrap().unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string()),
                (io::ErrorKind::NotFound, "gone".to_owned())
            );
            pieces.unpin(id, &between(0, 10));
        }
        assert_eq!(pieces.bytes(), 0);
    }

    #[test]
    fn the_end_of_a_file_is_kept_until_it_is_taken() {
        let mut pieces = Pieces::new(100);
        let a = path("a");
        assert!(pieces.prefetch(&a, Extent::End(50)));
        fetch_all(&mut pieces);
        pieces.request(&a, between(0, 100));
        let id = pieces.holding("a", &Extent::End(50)).unwrap();
        pieces.pin(id);
        pieces.unpin(id, &Extent::End(50));
        assert_eq!(pieces.holding("a", &Extent::End(50)), None);
        assert_eq!(pieces.bytes(), 100);
    }

    #[test]
    fn the_furthest_piece_of_a_file_is_known() {
        let mut pieces = Pieces::new(100);
        let (a, b) = (path("a"), path("b"));
        let first = pieces.request(&a, between(0, 10));
        pieces.request(&b, between(50, 60));
        assert!(pieces.is_furthest(first));
        pieces.prefetch(&a, between(10, 20));
        assert!(!pieces.is_furthest(first));
    }
}
