//! A recruiter made by the test, whose first hosts are unreachable.

use crate::server::{MIB, file};
use gleaner_harness::unused_address;
use gleaner_regions::{RegionError, Regions, Settings};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

/// Answers one request on its own connection; returns the request line and the body.
fn answer(listener: &TcpListener, status: u16, body: &str) -> (String, String) {
    let mut reader = BufReader::new(listener.accept().unwrap().0);
    let (mut first, mut bytes) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(length) = line.to_lowercase().strip_prefix("content-length:") {
            bytes = length.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut asked = vec![0; bytes];
    reader.read_exact(&mut asked).unwrap();
    let head = format!(
        "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    reader
        .get_mut()
        .write_all((head + body).as_bytes())
        .unwrap();
    let asked = String::from_utf8(asked).unwrap();
    (first, asked.split_whitespace().collect())
}

#[test]
fn a_host_that_cannot_be_reached_is_avoided_in_the_next_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let nobody = unused_address();
    let recruiter = thread::spawn(move || {
        let mut asked = Vec::new();
        for n in ['a', 'b'] {
            let id = n.to_string().repeat(32);
            let lease = format!(
                r#"{{"leases": [{{"lease_id": "{id}", "generation": 1, "client": "c", "key": "k", "host_id": "host-{n}",
                "granted_bytes": 16777216, "remaining_bytes": 16777216, "expires_in_ms": 60000, "address": "{nobody}"}}]}}"#
            );
            asked.push(answer(&listener, 201, &lease));
            asked.push(answer(&listener, 204, "")); // the lease is released
        }
        let refusal = r#"{"type": "x", "title": "x", "status": 503, "detail": "no host is left", "kind": "no_memory"}"#;
        asked.push(answer(&listener, 503, refusal));
        asked
    });
    let all = Regions::new(Settings {
        recruiters: vec![url],
        client: Some("c".to_owned()),
        refraction: Duration::from_secs(3600),
        ..Settings::default()
    });
    let all = all.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        all.open(MIB, file(folder.path(), "data", &[]), 0)
            .map(|_| ())
    };
    match open() {
        Err(RegionError::NoMemory { why }) => assert!(why.contains("host-b"), "{why}"),
        other => panic!("{other:?}"),
    }
    let asked = recruiter.join().unwrap();
    assert!(!asked[0].1.contains("avoided_host_ids"), "{asked:?}");
    assert!(
        asked[1].0.starts_with("DELETE /v1/leases/aaaa"),
        "{asked:?}"
    );
    assert!(
        asked[2].1.contains(r#""avoided_host_ids":["host-a"]"#),
        "{asked:?}"
    );
    assert!(
        asked[3].0.starts_with("DELETE /v1/leases/bbbb"),
        "{asked:?}"
    );
    assert!(
        asked[4]
            .1
            .contains(r#""avoided_host_ids":["host-a","host-b"]"#),
        "{asked:?}"
    );
    // The refraction period has begun: otherwise this would be a connection error.
    match open() {
        Err(RegionError::NoMemory { why }) => assert!(why.contains("asked in vain"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(all.figures().asked_count, 3);
}
