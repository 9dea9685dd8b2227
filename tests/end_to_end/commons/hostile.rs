//! A member of a commons that answers as a test wishes, with a host's certificate.

use super::fleet::host_id;
use gleaner_trust::{ServerPaths, ServerTrust};
use rustls::{ServerConnection, StreamOwned};
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const BLOCK_BYTES: usize = 64 << 10;
/// Interval of looking for a new conduct, and of the bytes of a slow answer.
const TURN: Duration = Duration::from_millis(5);

/// Way in which the member answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conduct {
    /// No block is found, and every block that is put is accepted.
    Empty,
    /// Every block has other bytes.
    OtherBytes,
    /// Every block is cut off.
    Short,
    /// A block's bytes have no end.
    Endless,
    /// The answer is no HTTP.
    Garbage,
    /// Another member is named as the holder of each block.
    Redirect,
    /// Another member is always about to fetch the block.
    UnderWay,
    /// The answer comes byte by byte.
    Slow,
    /// There is no answer.
    Silent,
}

impl Conduct {
    /// All conducts of a member that is not honest.
    pub(super) const FAULTS: [Self; 8] = [
        Self::OtherBytes,
        Self::Short,
        Self::Endless,
        Self::Garbage,
        Self::Redirect,
        Self::UnderWay,
        Self::Slow,
        Self::Silent,
    ];
}

/// A running member. Its threads end with the test.
pub(super) struct HostileMember {
    pub(super) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    trust: Arc<ServerTrust>,
    conduct: Mutex<Conduct>,
    /// Requests that were answered dishonestly.
    dishonest: AtomicU64,
    /// Certificates of the senders of requests.
    seen: Mutex<HashSet<Vec<u8>>>,
}

impl HostileMember {
    /// Starts an honest member.
    pub(super) fn start(paths: &ServerPaths) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let state = Arc::new(State {
            trust: ServerTrust::load(paths).unwrap(),
            conduct: Mutex::new(Conduct::Empty),
            dishonest: AtomicU64::new(0),
            seen: Mutex::default(),
        });
        let member = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::clone(&state),
        };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&state);
                thread::spawn(move || {
                    // The client may close the connection at any time.
                    let _ = state.serve(stream);
                });
            }
        });
        member
    }

    pub(super) fn behave(&self, conduct: Conduct) {
        *self.state.conduct.lock().unwrap() = conduct;
    }

    /// Returns true if a sender of a request has shown this certificate.
    pub(super) fn has_seen(&self, certificate: &[u8]) -> bool {
        self.state.seen.lock().unwrap().contains(certificate)
    }

    /// Number of requests that were answered dishonestly so far.
    pub(super) fn dishonest(&self) -> u64 {
        self.state.dishonest.load(Ordering::SeqCst)
    }
}

/// Length of a request's body, from its head.
fn body_bytes(head: &str) -> u64 {
    let head = head.to_ascii_lowercase();
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length:"));
    length.map_or(0, |length| length.trim().parse().unwrap())
}

impl State {
    fn conduct(&self) -> Conduct {
        *self.conduct.lock().unwrap()
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let connection = ServerConnection::new(self.trust.config()).map_err(io::Error::other)?;
        let mut reader = BufReader::new(StreamOwned::new(connection, stream));
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head)? == 0 {
                    return Ok(());
                }
            }
            let chain = reader.get_ref().conn.peer_certificates();
            if let Some(first) = chain.and_then(|chain| chain.first()) {
                self.seen.lock().unwrap().insert(first.to_vec());
            }
            let mut body = reader.by_ref().take(body_bytes(&head));
            io::copy(&mut body, &mut io::sink())?;
            let conduct = self.conduct();
            if conduct != Conduct::Empty {
                self.dishonest.fetch_add(1, Ordering::SeqCst);
            }
            let mut words = head.split(' ');
            let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            self.answer(reader.get_mut(), conduct, method, path)?;
            reader.get_mut().flush()?;
        }
    }

    /// Answers one request; an error closes the connection.
    fn answer(
        &self,
        to: &mut impl Write,
        conduct: Conduct,
        method: &str,
        path: &str,
    ) -> io::Result<()> {
        let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {BLOCK_BYTES}\r\n\r\n");
        let empty = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        let closed = || io::Error::from(io::ErrorKind::ConnectionAborted);
        match conduct {
            Conduct::Empty => to.write_all(
                empty(match method {
                    "GET" => "404 Not Found",
                    "PUT" => "201 Created",
                    _ => "204 No Content",
                })
                .as_bytes(),
            ),
            Conduct::OtherBytes => {
                to.write_all(whole.as_bytes())?;
                to.write_all(&[7; BLOCK_BYTES])
            }
            Conduct::Short => {
                to.write_all(whole.as_bytes())?;
                to.write_all(&[7; BLOCK_BYTES / 2])?;
                to.flush()?;
                Err(closed())
            }
            Conduct::Endless => {
                to.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                loop {
                    to.write_all(b"1000\r\n")?;
                    to.write_all(&[7; 0x1000])?;
                    to.write_all(b"\r\n")?;
                }
            }
            Conduct::Garbage => {
                to.write_all(b"\0\xff250 welcome\r\n\r\n")?;
                to.flush()?;
                Err(closed())
            }
            Conduct::Redirect => {
                let other = host_id(0);
                let head = format!(
                    "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://{other}{path}\r\nContent-Length: 0\r\n\r\n"
                );
                to.write_all(head.as_bytes())
            }
            Conduct::UnderWay => to.write_all(empty("202 Accepted").as_bytes()),
            Conduct::Slow => {
                for byte in whole.bytes().chain([7; BLOCK_BYTES]) {
                    if self.conduct() != conduct {
                        return Err(closed());
                    }
                    to.write_all(&[byte])?;
                    to.flush()?;
                    thread::sleep(TURN);
                }
                Ok(())
            }
            Conduct::Silent => {
                while self.conduct() == conduct {
                    thread::sleep(TURN);
                }
                Err(closed())
            }
        }
    }
}
