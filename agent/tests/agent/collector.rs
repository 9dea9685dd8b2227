//! A scripted collector: decodes batches, keeps their rows once, and answers as the test specifies.

use gleaner_dataset::Batch;
use gleaner_dataset::batch::Limits;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// Reaction to a batch in place of accepting it.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Reads nothing of the batch and closes the connection.
    CloseBefore,
    /// Reads half of the batch and closes the connection.
    CloseWithin,
    /// Accepts the batch and closes the connection without an answer.
    CloseAfter,
    /// Accepts the batch and closes the connection within the answer.
    CutAnswer,
    /// Accepts the batch and answers with garbage.
    Garbage,
    /// Accepts the batch and answers one byte at a time, too slowly.
    Slow,
    /// Accepts the batch and never answers.
    Silent,
    /// Refuses the batch.
    Status(u16, &'static str),
}

/// Received records of one database.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedRecords {
    /// Row counts of each table, by record.
    pub(crate) rows: BTreeMap<&'static str, BTreeMap<i64, i64>>,
    pub(crate) mark: i64,
}

/// A batch that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedBatch {
    pub(crate) database_id: String,
    pub(crate) first_sequence: i64,
    pub(crate) last_sequence: i64,
    pub(crate) bytes: usize,
    /// True if all of its records were known already.
    pub(crate) repeated: bool,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) databases: BTreeMap<(String, String), ReceivedRecords>,
    pub(crate) taken: Vec<ReceivedBatch>,
    /// Faults of the next batches, one each.
    pub(crate) faults: VecDeque<Fault>,
    /// Record whose batches are refused, with the HTTP status.
    pub(crate) poison: Option<(i64, u16)>,
    /// Maximum size of a batch in bytes; larger ones are refused with 413.
    pub(crate) most_bytes: Option<usize>,
    /// Number of batches without a fault.
    pub(crate) well_count: usize,
    pub(crate) connections_count: usize,
    pub(crate) marks_asked_count: usize,
    pub(crate) requests_count: usize,
    /// First lines and headers of all requests.
    pub(crate) heads: Vec<String>,
}

impl State {
    pub(crate) fn only(&self) -> &ReceivedRecords {
        assert_eq!(self.databases.len(), 1, "{:?}", self.databases.keys());
        self.databases.values().next().unwrap()
    }
}

pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    is_over: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        Self::start_with("127.0.0.1:0", Arc::default())
    }

    fn start_with(at: &str, state: Arc<Mutex<State>>) -> Self {
        let listener = TcpListener::bind(at).unwrap();
        let (is_over, open): (Arc<AtomicBool>, Arc<Mutex<Vec<TcpStream>>>) = Default::default();
        let mut collector = Self {
            address: listener.local_addr().unwrap(),
            state,
            is_over,
            open,
            thread: None,
        };
        let (state, is_over, open) = (
            Arc::clone(&collector.state),
            Arc::clone(&collector.is_over),
            Arc::clone(&collector.open),
        );
        collector.thread = Some(std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                state.lock().unwrap().connections_count += 1;
                open.lock().unwrap().push(stream.try_clone().unwrap());
                let state = Arc::clone(&state);
                std::thread::spawn(move || {
                    let _ = serve(&stream, &state); // a sender that disconnects is no failure
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        }));
        collector
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    #[track_caller]
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Stops the collector: its address refuses connections, and open connections end. Its records
    /// are kept.
    pub(crate) fn stop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.is_over.store(true, Ordering::SeqCst);
            let _ = TcpStream::connect(self.address);
            thread.join().unwrap();
            for stream in self.open.lock().unwrap().drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    /// Restarts the collector at the same address, with its records.
    pub(crate) fn restart(mut self) -> Self {
        self.stop();
        Self::start_with(&self.address.to_string(), Arc::clone(&self.state))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(stream: &TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let length = head
            .lines()
            .find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length:")?
                    .trim()
                    .parse()
                    .ok()
            })
            .unwrap_or(0);
        let first = head.lines().next().unwrap_or_default().to_owned();
        {
            let mut state = state.lock().unwrap();
            state.requests_count += 1;
            state.heads.push(head);
        }
        if let Some(query) = first.strip_prefix("GET /v1/mark?") {
            let value = |key: &str| {
                let mut pairs = query.split([' ', '&']);
                pairs
                    .find_map(|pair| pair.strip_prefix(key))
                    .unwrap()
                    .to_owned()
            };
            let mut state = state.lock().unwrap();
            state.marks_asked_count += 1;
            let kept = state.databases.get(&(value("host="), value("database=")));
            let mark = kept.map_or("null".to_owned(), |kept| kept.mark.to_string());
            answer(
                stream,
                200,
                &format!("{{\"acknowledged_sequence\": {mark}}}"),
            )?;
        } else if first.starts_with("POST /v1/batches ") {
            if !batch(stream, &mut reader, length, state)? {
                return Ok(());
            }
        } else {
            answer(
                stream,
                404,
                "{\"error\": \"no such page\", \"retry\": false}",
            )?;
        }
    }
}

/// Handles a batch; returns true to keep the connection.
fn batch(
    stream: &TcpStream,
    reader: &mut impl Read,
    length: usize,
    state: &Mutex<State>,
) -> io::Result<bool> {
    let fault = state.lock().unwrap().faults.pop_front();
    let mut body = vec![0; length];
    match fault {
        Some(Fault::CloseBefore) => return Ok(false),
        Some(Fault::CloseWithin) => {
            reader.read_exact(&mut body[..length / 2])?;
            return Ok(false);
        }
        _ => reader.read_exact(&mut body)?,
    }
    if let Some(Fault::Status(status, said)) = fault {
        answer(stream, status, said)?;
        return Ok(true);
    }
    let batch = Batch::decode(&body, &Limits::default()).unwrap();
    {
        let mut state = state.lock().unwrap();
        let range = batch.first_sequence..=batch.last_sequence;
        if let Some((sequence, status)) = state.poison
            && range.contains(&sequence)
        {
            answer(
                stream,
                status,
                "{\"error\": \"poisoned\", \"retry\": false}",
            )?;
            return Ok(true);
        }
        if state.most_bytes.is_some_and(|most| body.len() > most) {
            answer(stream, 413, "{\"error\": \"too large\", \"retry\": false}")?;
            return Ok(true);
        }
        take_in(&mut state, &batch, body.len());
        state.well_count += usize::from(fault.is_none());
    }
    let said = format!(
        "{{\"acknowledged_sequence\": {}, \"rows_count\": 1, \"repeated\": false}}",
        batch.last_sequence
    );
    match fault {
        Some(Fault::CloseAfter) => Ok(false),
        Some(Fault::CutAnswer) => {
            let whole = response(200, &said);
            (&*stream).write_all(&whole.as_bytes()[..whole.len() - 8])?;
            Ok(false)
        }
        Some(Fault::Garbage) => {
            answer(stream, 200, "<html>Welcome to the hotel</html>").map(|()| true)
        }
        Some(Fault::Slow) => {
            for byte in response(200, &said).as_bytes() {
                (&*stream).write_all(&[*byte])?;
                std::thread::sleep(Duration::from_millis(300));
            }
            Ok(true)
        }
        Some(Fault::Silent) => {
            let _ = reader.read(&mut [0]); // waits until the other side times out
            Ok(false)
        }
        _ => answer(stream, 200, &said).map(|()| true),
    }
}

fn take_in(state: &mut State, batch: &Batch, bytes: usize) {
    let name = (batch.host_id.clone(), batch.database_id.clone());
    let kept = state.databases.entry(name).or_default();
    let known = kept.mark;
    for (table, rows) in &batch.tables {
        let column = rows.column_by_name("sequence").unwrap().to_data();
        for &sequence in &column.buffers()[0].typed_data::<i64>()[..rows.num_rows()] {
            if sequence > known {
                let of_table = kept.rows.entry(table.name).or_default();
                *of_table.entry(sequence).or_default() += 1;
            }
        }
    }
    kept.mark = kept.mark.max(batch.last_sequence);
    state.taken.push(ReceivedBatch {
        database_id: batch.database_id.clone(),
        first_sequence: batch.first_sequence,
        last_sequence: batch.last_sequence,
        bytes,
        repeated: batch.last_sequence <= known,
    });
}

fn response(status: u16, body: &str) -> String {
    let retry_after = if matches!(status, 429 | 503) {
        "Retry-After: 1\r\n"
    } else {
        ""
    };
    format!(
        "HTTP/1.1 {status} So\r\n{retry_after}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn answer(mut stream: &TcpStream, status: u16, body: &str) -> io::Result<()> {
    stream.write_all(response(status, body).as_bytes())
}
