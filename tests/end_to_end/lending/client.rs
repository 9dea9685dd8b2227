//! A client that sends requests to recruiters, over plain HTTP on loopback.

use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(super) const CLIENT: &str = "tester";
pub(super) const LEASE_BYTES: u64 = 8 << 20;

/// HTTP status and document of an answer.
pub(super) type Answer = (u16, Value);

/// Sends a request to a recruiter. The result is an error if no complete answer arrives.
pub(super) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    document: Option<&Value>,
    patience: Duration,
) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(patience))?;
    let body = document.map(Value::to_string).unwrap_or_default();
    let about_body = match document {
        Some(_) => format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        ),
        None => String::new(),
    };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nGleaner-Client: {CLIENT}\r\nConnection: close\r\n{about_body}\r\n{body}"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let cut_short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut_short)?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(cut_short)?;
    if body.is_empty() {
        return Ok((status, Value::Null));
    }
    let document = serde_json::from_str(body).map_err(|_| cut_short())?;
    Ok((status, document))
}

/// A request for one lease.
pub(super) fn lease_request(key: &str, term_ms: i64) -> Value {
    json!({ "bytes": LEASE_BYTES, "key": key, "term_ms": term_ms, "placement": "random" })
}
