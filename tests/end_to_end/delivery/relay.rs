//! A relay between shipper and collector. It can stop in the middle of a batch's exchange, so that the test
//! knows that a batch was sent but not acknowledged yet.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// Point in the exchange of a batch at which the relay stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// So many thousandths of the request's body have reached the collector.
    Within(usize),
    /// The whole request was sent, but no answer was read.
    Sent,
    /// The collector has answered, but the shipper has not received the answer.
    Answered,
    /// The relay has the whole request, but has forwarded nothing.
    Kept,
}

#[derive(Default)]
struct State {
    collector: Option<SocketAddr>,
    stop_at: Option<Moment>,
    is_stopped: bool,
    /// The collector's answer to the batch that was stopped at [`Moment::Answered`].
    answered: Option<String>,
}

#[derive(Default)]
struct RelayState {
    state: Mutex<State>,
    changed: Condvar,
}

/// A relay that listens until the test process ends.
pub(super) struct Relay {
    address: SocketAddr,
    shared: Arc<RelayState>,
}

impl Relay {
    pub(super) fn start(collector: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self {
            address: listener.local_addr().unwrap(),
            shared: Arc::default(),
        };
        relay.leads_to(collector);
        let shared = Arc::clone(&relay.shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                // Errors are ignored, since either side may be killed at any moment.
                thread::spawn(move || shared.converse(client).ok());
            }
        });
        relay
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the collector to which new connections are forwarded.
    pub(super) fn leads_to(&self, collector: SocketAddr) {
        self.shared.lock().collector = Some(collector);
    }

    /// Stops the next batch at this moment. Returns once a batch has reached the moment.
    #[track_caller]
    pub(super) fn stop(&self, at: Moment) {
        let mut state = self.shared.lock();
        state.answered = None;
        state.stop_at = Some(at);
        let patience = Duration::from_secs(120);
        let (state, waited) = self
            .shared
            .changed
            .wait_timeout_while(state, patience, |state| !state.is_stopped)
            .unwrap();
        drop(state);
        assert!(!waited.timed_out(), "no batch came to {at:?}");
    }

    /// Lets the stopped exchange continue.
    pub(super) fn go_on(&self) {
        let mut state = self.shared.lock();
        (state.stop_at, state.is_stopped) = (None, false);
        self.shared.changed.notify_all();
    }

    /// Sequence that the collector acknowledged in the answer that was stopped at [`Moment::Answered`].
    pub(super) fn acknowledged(&self) -> Option<i64> {
        let body = self.shared.lock().answered.clone()?;
        let answer: serde_json::Value = serde_json::from_str(&body).ok()?;
        answer["acknowledged_sequence"].as_i64()
    }
}

impl RelayState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Stops the exchange until it is released, if `is_it` is true and `moment` is still set; `moment` is
    /// then cleared.
    fn stop_if(&self, moment: &mut Option<Moment>, is_it: bool) {
        if !is_it || moment.take().is_none() {
            return;
        }
        let mut state = self.lock();
        state.is_stopped = true;
        self.changed.notify_all();
        drop(
            self.changed
                .wait_while(state, |state| state.is_stopped)
                .unwrap(),
        );
    }

    fn converse(&self, mut client: TcpStream) -> io::Result<()> {
        let collector = self.lock().collector.unwrap();
        let mut server = TcpStream::connect(collector)?;
        loop {
            let request = read_head(&mut client)?;
            let is_batch = request.0.starts_with(b"POST /v1/batches");
            let mut moment = None;
            if is_batch {
                moment = self.lock().stop_at.take();
            }
            let done = self.exchange(&mut client, &mut server, request, &mut moment);
            if moment.is_some() {
                self.lock().stop_at = moment; // kept for the next batch
            }
            done?;
        }
    }

    fn exchange(
        &self,
        client: &mut TcpStream,
        server: &mut TcpStream,
        (head, length): (Vec<u8>, usize),
        moment: &mut Option<Moment>,
    ) -> io::Result<()> {
        let first = match moment {
            Some(Moment::Within(share)) => length * *share / 1000,
            _ => length,
        };
        let part = read_body(client, first)?;
        self.stop_if(moment, *moment == Some(Moment::Kept));
        server.write_all(&head)?;
        server.write_all(&part)?;
        let is_it = matches!(moment, Some(Moment::Within(_) | Moment::Sent));
        self.stop_if(moment, is_it);
        server.write_all(&read_body(client, length - first)?)?;
        let (answer, length) = read_head(server)?;
        let body = read_body(server, length)?;
        if *moment == Some(Moment::Answered) {
            self.lock().answered = Some(String::from_utf8_lossy(&body).into_owned());
        }
        self.stop_if(moment, *moment == Some(Moment::Answered));
        client.write_all(&answer)?;
        client.write_all(&body)
    }
}

/// Reads the head of a request or answer; also returns the length of the body.
fn read_head(stream: &mut TcpStream) -> io::Result<(Vec<u8>, usize)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head).to_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    Ok((head, length.unwrap_or(0)))
}

fn read_body(stream: &mut TcpStream, length: usize) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}
