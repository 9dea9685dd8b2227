//! A network between clerk and server that can be cut, held up, and lie.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Mood {
    Well,
    /// Nothing goes through, and nobody is told.
    Partitioned,
    /// Now and then a byte from the server is another one.
    Lying,
    /// Answers that nobody asked for stand before those of the server.
    Forging,
}

/// First bytes of a simple reply (NBD protocol, "Simple reply message").
const REPLY_MAGIC: [u8; 4] = 0x6744_6698_u32.to_be_bytes();

/// Success for each small number: a request of the disk or of another server may have it.
fn forged() -> Vec<u8> {
    let reply = |cookie: u64| {
        let mut reply = REPLY_MAGIC.to_vec();
        reply.extend(0_u32.to_be_bytes());
        reply.extend(cookie.to_be_bytes());
        reply
    };
    (0..64).flat_map(reply).collect()
}

struct Shared {
    mood: AtomicU8,
    to: Mutex<String>,
    open: Mutex<Vec<TcpStream>>,
    has_ended: AtomicBool,
}

/// Forwards connections; ended with the value.
pub(super) struct Relay {
    pub(super) url: String,
    shared: Arc<Shared>,
}

impl Relay {
    /// `to`: HOST:PORT.
    pub(super) fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nbd://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            mood: AtomicU8::new(Mood::Well as u8),
            to: Mutex::new(to.to_owned()),
            open: Mutex::default(),
            has_ended: AtomicBool::new(false),
        });
        let forwarding = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if forwarding.has_ended.load(Ordering::Relaxed) {
                    break;
                }
                forwarding.forward(client);
            }
        });
        Self { url, shared }
    }

    pub(super) fn set(&self, mood: Mood) {
        self.shared.mood.store(mood as u8, Ordering::Relaxed);
    }

    /// Another server is behind it from now on.
    pub(super) fn redirect(&self, to: &str) {
        to.clone_into(&mut self.shared.to.lock().unwrap());
    }

    /// Ends all connections.
    pub(super) fn cut(&self) {
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        self.cut();
        let _ = TcpStream::connect(self.url.trim_start_matches("nbd://"));
    }
}

impl Shared {
    fn forward(self: &Arc<Self>, client: TcpStream) {
        let to = self.to.lock().unwrap().clone();
        let Ok(server) = TcpStream::connect(&to) else {
            return; // closed with the value
        };
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
            self.open.lock().unwrap().push(stream.try_clone().unwrap());
        }
        let ways = [
            (
                client.try_clone().unwrap(),
                server.try_clone().unwrap(),
                false,
            ),
            (server, client, true),
        ];
        for (from, to, is_from_server) in ways {
            let shared = self.clone();
            thread::spawn(move || shared.pump(from, to, is_from_server));
        }
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream, is_from_server: bool) {
        let mut bytes = vec![0; 64 << 10];
        let mut until_lie = 10_000;
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            while self.mood.load(Ordering::Relaxed) == Mood::Partitioned as u8 {
                if self.has_ended.load(Ordering::Relaxed) {
                    return;
                }
                thread::sleep(Duration::from_millis(5));
            }
            if is_from_server && self.mood.load(Ordering::Relaxed) == Mood::Lying as u8 {
                // Within a page that was read, never within the head of an answer.
                until_lie -= i64::try_from(count).unwrap();
                if until_lie < 0 && count > 2000 {
                    bytes[count / 2] ^= 0x10;
                    until_lie = 20_000;
                }
            }
            let is_forging = self.mood.load(Ordering::Relaxed) == Mood::Forging as u8;
            if is_from_server && is_forging && bytes.starts_with(&REPLY_MAGIC) {
                let _ = to.write_all(&forged());
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
