//! Recruiters made by the tests, at the other end of a memory server's link.

use gleaner_harness::{PATIENCE, wait_for_some};
use gleaner_schemas::lending::{
    Announcement, GrantRequest, HostMessage, Lease, Outcome, RecruiterMessage, Request, RequestKind,
};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use tokio_tungstenite::tungstenite::{Message, WebSocket, accept};

/// Id of the host under test.
pub(crate) const HOST_ID: &str = "0123456789abcdef0123456789abcdef";

/// Timeout of a read that finds out whether an accepted connection was closed already.
const LOOK: Duration = Duration::from_millis(500);

/// A recruiter for one memory server, which is linked as soon as [`Recruiter::link`] is called.
pub(crate) struct Recruiter {
    listener: TcpListener,
    pub(crate) url: String,
}

impl Recruiter {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        Self { listener, url }
    }

    /// Waits for the memory server's next connection.
    #[track_caller]
    pub(crate) fn link(&self) -> Link {
        wait_for_some("the memory server", || self.try_link())
    }

    /// Returns the memory server's next connection, if there is one already.
    pub(crate) fn try_link(&self) -> Option<Link> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(LOOK)).unwrap();
        let socket = accept(stream).ok()?;
        // On a busy machine, a connection may be accepted so late that the memory server has closed it
        // already. The memory server connects again.
        if matches!(socket.get_ref().peek(&mut [0]), Ok(0)) {
            return None;
        }
        socket.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        Some(Link { socket, last_id: 0 })
    }
}

/// A connection of a memory server.
pub(crate) struct Link {
    pub(crate) socket: WebSocket<TcpStream>,
    last_id: u64,
}

impl Link {
    pub(crate) fn send(&mut self, asked: RequestKind) {
        self.try_send(asked).expect("a link");
    }

    /// Sends a request; returns its number, or `None` if the link has ended.
    pub(crate) fn try_send(&mut self, asked: RequestKind) -> Option<u64> {
        self.last_id += 1;
        let request_id = self.last_id;
        let request = RecruiterMessage::Request(Request { request_id, asked });
        let text = serde_json::to_string(&request).unwrap();
        self.socket.send(Message::Text(text.into())).ok()?;
        Some(request_id)
    }

    #[track_caller]
    fn next(&mut self) -> HostMessage {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// Sends a request, and returns the outcome.
    #[track_caller]
    pub(crate) fn ask(&mut self, asked: RequestKind) -> Outcome {
        self.send(asked);
        loop {
            if let HostMessage::Answer(answer) = self.next() {
                assert_eq!(answer.request_id, self.last_id);
                return answer.outcome;
            }
        }
    }

    /// Sends a request that must give a lease, and returns the lease.
    #[track_caller]
    pub(crate) fn lease(&mut self, asked: RequestKind) -> Lease {
        match self.ask(asked) {
            Outcome::Granted { lease } => lease,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the next announcement for which `is_it` returns true.
    #[track_caller]
    pub(crate) fn announced(&mut self, is_it: impl Fn(&Announcement) -> bool) -> Announcement {
        loop {
            match self.next() {
                HostMessage::Announcement(told) if is_it(&told) => return *told,
                _ => (),
            }
        }
    }
}

/// A request for a lease of an hour.
pub(crate) fn grant(client: &str, key: &str, bytes: u64) -> RequestKind {
    RequestKind::Grant(GrantRequest {
        client: client.to_owned(),
        key: key.to_owned(),
        bytes,
        term_ms: 3_600_000,
    })
}
