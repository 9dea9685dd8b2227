//! An HTTP server of files, for tests: it answers ranges, or it misbehaves.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Behaviour of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Ranges are answered as requested.
    Proper,
    /// Whole files are sent.
    NoRanges,
    /// The body ends after half of its length.
    Truncated,
    /// Another range than the requested one is sent.
    OtherRange,
    /// The body goes on without an end.
    Endless,
    /// Every answer is a redirect.
    Redirect,
    /// Every answer is status 500.
    Broken,
    /// Files named `large` are answered once the manner is another one.
    Stalls,
}

/// A running server. Its threads end with the test.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    folder: PathBuf,
    manner: Mutex<Manner>,
    changed: Condvar,
    /// Number of requests of each path.
    requests: Mutex<HashMap<String, u64>>,
}

impl Server {
    pub(super) fn start(folder: PathBuf, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let state = Arc::new(State {
            folder,
            manner: Mutex::new(manner),
            changed: Condvar::new(),
            requests: Mutex::default(),
        });
        let server = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::clone(&state),
        };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&state);
                thread::spawn(move || {
                    // The client may close the connection at any time.
                    let _ = state.serve(&stream);
                });
            }
        });
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes the server's behaviour.
    pub(super) fn behave(&self, manner: Manner) {
        *self.state.manner.lock().unwrap() = manner;
        self.state.changed.notify_all();
    }

    /// Number of requests of a path, as it was in the URL.
    pub(super) fn requests(&self, path: &str) -> u64 {
        self.state
            .requests
            .lock()
            .unwrap()
            .get(path)
            .copied()
            .unwrap_or(0)
    }
}

impl State {
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream).lines();
        loop {
            let Some(first) = lines.next().transpose()? else {
                return Ok(());
            };
            let mut range = None;
            for line in lines.by_ref() {
                let line = line?.to_ascii_lowercase();
                if line.is_empty() {
                    break;
                }
                if let Some(value) = line.strip_prefix("range: bytes=") {
                    let (from, to) = value.split_once('-').unwrap();
                    range = Some((from.parse::<u64>().unwrap(), to.parse::<u64>().unwrap()));
                }
            }
            let mut words = first.split(' ');
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            *self
                .requests
                .lock()
                .unwrap()
                .entry(path.to_owned())
                .or_default() += 1;
            self.answer(stream, method == "HEAD", path, range)?;
        }
    }

    fn answer(
        &self,
        mut to: &TcpStream,
        is_head: bool,
        path: &str,
        range: Option<(u64, u64)>,
    ) -> std::io::Result<()> {
        let mut manner = self.manner.lock().unwrap();
        while *manner == Manner::Stalls && path.ends_with("large") {
            manner = self.changed.wait(manner).unwrap();
        }
        let manner = *manner;
        if manner == Manner::Redirect {
            return to.write_all(b"HTTP/1.1 301 Moved\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n");
        }
        if manner == Manner::Broken {
            return to.write_all(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n");
        }
        let Ok(file) = File::open(self.folder.join(decoded(path))) else {
            return to.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        };
        let length = file.metadata()?.len();
        if is_head {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            return to.write_all(head.as_bytes());
        }
        let range = range.filter(|_| manner != Manner::NoRanges);
        let (head, from, end) = match range {
            None => (String::from("HTTP/1.1 200 OK\r\n"), 0, length),
            Some((from, _)) if from >= length => {
                return to.write_all(b"HTTP/1.1 416 Range\r\nContent-Length: 0\r\n\r\n");
            }
            Some((from, last)) => {
                let from = if manner == Manner::OtherRange {
                    from / 2
                } else {
                    from
                };
                let last = last.min(length - 1);
                let head = format!(
                    "HTTP/1.1 206 Partial\r\nContent-Range: bytes {from}-{last}/{length}\r\n"
                );
                (head, from, last + 1)
            }
        };
        let mut body = vec![0; (end - from) as usize];
        file.read_exact_at(&mut body, from)?;
        if manner == Manner::Endless {
            to.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes())?;
            loop {
                to.write_all(b"1000\r\n")?;
                to.write_all(&[7; 0x1000])?;
                to.write_all(b"\r\n")?;
            }
        }
        to.write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes())?;
        if manner == Manner::Truncated {
            to.write_all(&body[..body.len() / 2])?;
            return to.shutdown(std::net::Shutdown::Both);
        }
        to.write_all(&body)
    }
}

/// Path of a file from the path of a URL.
fn decoded(path: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::new();
    let mut rest = path.trim_start_matches('/').bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}
