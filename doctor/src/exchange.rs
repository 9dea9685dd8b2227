//! Sends one request over an open connection (HTTP/1.1, RFC 9112). Of the answer, only status, date and body
//! are returned.

use std::io::{self, ErrorKind, Read, Write};

/// Maximum size of an answer, which is a page of JSON.
const MOST_BYTES: usize = 4 << 20;

/// A server's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Time in the answer's header `Date`, ms since 1970-01-01 UTC.
    pub(super) time_ms: Option<i64>,
    pub(super) body: String,
}

/// Requests `path` from the server; `host` is sent in the header `Host`.
///
/// # Errors
/// Error of the connection, or an answer that is not HTTP.
pub(super) fn get(
    connection: &mut (impl Read + Write),
    host: &str,
    path: &str,
) -> io::Result<Answer> {
    let version = env!("CARGO_PKG_VERSION");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: gleaner-doctor/{version}\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(request.as_bytes())?;
    connection.flush()?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    while bytes.len() < MOST_BYTES && !is_whole(&bytes) {
        match connection.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // If the server closed the connection without closing TLS, a complete answer is valid
            // nevertheless.
            Err(_) if parse(&bytes).is_some() => break,
            Err(e) => return Err(e),
        }
    }
    parse(&bytes).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "it answers no HTTP"))
}

fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = header(head, "content-length").and_then(|length| length.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split_whitespace().nth(1)?;
    let date = header(head, "date").and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    Some(Answer {
        status: status.parse().ok()?,
        time_ms: date.map(|date| date.timestamp().as_millisecond()),
        body: body.to_owned(),
    })
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends its answer in pieces, then closes the connection.
    struct Server(Vec<Vec<u8>>);

    impl Read for Server {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let piece = self.0.remove(0);
            buffer[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    impl Write for Server {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn answers_come_in_pieces_or_are_none() {
        let pieces = [
            "HTTP/1.1 403 No\r\nDATE: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Le",
            "ngth: 4\r\n\r\nab",
            "cd",
            "never read",
        ];
        let mut server = Server(pieces.map(|piece| piece.as_bytes().to_vec()).into());
        let answer = get(&mut server, "h", "/").unwrap();
        let expected = Answer {
            status: 403,
            time_ms: Some(784_111_777_000),
            body: "abcd".to_owned(),
        };
        assert_eq!(answer, expected);
        assert_eq!(server.0.len(), 1);
        for piece in [
            "",
            "HTTP/1.1 200",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 x\r\n\r\n",
            "\u{0}\r\n\r\n",
        ] {
            assert!(
                get(&mut Server(vec![piece.as_bytes().to_vec()]), "h", "/").is_err(),
                "{piece}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn no_answer_is_too_strange(head in "(?s).{0,60}", body in "(?s).{0,60}") {
            let text = format!("HTTP/1.1 {head}\r\nDate: {body}\r\nContent-Length: {head}\r\n\r\n{body}");
            for bytes in [head.as_bytes(), text.as_bytes()] {
                let _ = get(&mut Server(vec![bytes.to_vec()]), "h", "/");
            }
        }
    }
}
