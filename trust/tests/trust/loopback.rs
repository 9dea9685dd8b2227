//! Requests for documents to a server of this machine, and the messages about faults.

use gleaner_trust::{JsonAnswer, LoopbackError, LoopbackServer};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

const SERVER: LoopbackServer = LoopbackServer {
    kind: "recruiter",
    program: "test",
    from_elsewhere: "use a certificate",
};

/// Requests `/count` from a server that answers once with this status line and body. Returns the server's
/// address, the result, and the first line of the request.
fn answered(status: &str, body: &str) -> (String, Result<JsonAnswer<u32>, LoopbackError>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
    let answer = format!("{head}Connection: close\r\n\r\n{body}");
    let server = std::thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let (mut first, mut line) = (String::new(), String::new());
        stream.read_line(&mut first).unwrap();
        while stream.read_line(&mut line).unwrap() > 2 {
            line.clear(); // reads up to the empty line after the head
        }
        stream.get_mut().write_all(answer.as_bytes()).unwrap();
        first
    });
    let result = SERVER.get(&url, "/count");
    (url, result, server.join().unwrap())
}

#[test]
fn a_document_is_returned_as_text_and_value() {
    let (_, result, request) = answered("200 OK", " 7\n");
    let answer = result.unwrap();
    assert_eq!((answer.text.as_str(), answer.value), (" 7\n", 7));
    assert_eq!(request, "GET /count HTTP/1.1\r\n");
}

#[test]
fn faults_of_an_answer_name_the_server_and_its_address() {
    let foreign = "its answer is none of a recruiter's (expected value at line 1 column 1)";
    for (status, body, reason, is_refusal) in [
        ("200 OK", "hello", foreign, false),
        (
            "403 Forbidden",
            "{\"title\":\"Forbidden\",\"detail\":\"not for you\"}",
            "not for you",
            true,
        ),
        (
            "500 Internal Server Error",
            "broken\n",
            "500 Internal Server Error: broken",
            true,
        ),
        ("302 Found", "7", "302 Found: 7", true),
    ] {
        let (url, result, _) = answered(status, body);
        let error = result.unwrap_err();
        let message = format!("the recruiter at {url} does not answer: {reason}");
        assert_eq!((error.to_string(), error.is_refusal), (message, is_refusal));
    }
}

#[test]
fn a_request_that_cannot_be_sent_is_an_error_with_the_address_as_given() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (url, reason) in [
        (format!("http://{free}"), "refused"),
        ("nowhere".to_owned(), "nowhere"),
        (
            "https://localhost:1".to_owned(),
            "only http:// is asked, on the recruiter's own machine; from elsewhere, use a certificate",
        ),
    ] {
        let error = SERVER.get::<u32>(&url, "/count").unwrap_err();
        let message = error.to_string();
        let begin = format!("the recruiter at {url} does not answer: ");
        assert!(
            message.starts_with(&begin) && message.contains(reason),
            "{message}"
        );
        assert!(!error.is_refusal);
    }
}
