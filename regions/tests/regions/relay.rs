//! Something between client and server that changes what is read.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Longer than a reply without data: what is longer holds a page.
const LONGEST_WITHOUT_DATA_BYTES: usize = 1024;

pub(crate) struct Relay {
    pub(crate) url: String,
    pub(crate) is_lying: Arc<AtomicBool>,
}

impl Relay {
    /// For one connection.
    pub(crate) fn start(server_url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nbd://{}", listener.local_addr().unwrap());
        let target = server_url.strip_prefix("nbd://").unwrap();
        let target = target.trim_end_matches('/').to_owned();
        let is_lying = Arc::new(AtomicBool::new(false));
        let lies = Arc::clone(&is_lying);
        thread::spawn(move || {
            let client = listener.accept().unwrap().0;
            let server = TcpStream::connect(target).unwrap();
            let pair = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pass(pair.0, pair.1, |_| {}));
            pass(server, client, |bytes| {
                if lies.load(Ordering::Acquire) && bytes.len() > LONGEST_WITHOUT_DATA_BYTES {
                    bytes[bytes.len() / 2] ^= 0x10;
                }
            });
        });
        Self { url, is_lying }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut change: impl FnMut(&mut [u8])) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer).unwrap_or(0);
        change(&mut buffer[..count]);
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            let _ = to.shutdown(Shutdown::Both); // gone already, perhaps
            let _ = from.shutdown(Shutdown::Both);
            return;
        }
    }
}
