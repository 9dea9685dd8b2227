//! Tests a recruiter's stream of quotas. The tests send the stream themselves, so that they can break it.

use super::following::{MIB, RunningAdapter, quota, quotas, wait_for};
use super::servers::{Server, unused_address};
use gleaner_schemas::lending::HostQuota;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// Accepts a connection, and sends the head of the answer.
fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("GET /v1/quotas/watch "), "{first}");
    while !lines.next().unwrap().unwrap().is_empty() {}
    let mut stream = stream;
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

fn tell(stream: &mut TcpStream, text: &str) {
    write!(stream, "{:x}\r\n{text}\r\n", text.len()).unwrap();
}

fn tell_quotas(stream: &mut TcpStream, hosts: &[HostQuota]) {
    tell(
        stream,
        &format!("event: quotas\ndata: {}\n\n", quotas(hosts)),
    );
}

#[test]
fn changes_are_taken_up_and_a_recruiter_that_is_gone_gives_the_minimum() {
    let server = Server::memcached(&unused_address(), 64);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let following = RunningAdapter::start(&[
        "--recruiter",
        &url,
        "--host",
        "b",
        "--memcached",
        &server.address,
        "--quota-includes-use",
        "--minimum",
        "16MiB",
        "--quota-timeout",
        "6s",
    ]);
    let mut stream = accept(&listener);
    tell_quotas(&mut stream, &[quota("a", 500), quota("b", 100)]);
    assert_eq!(following.change()["limit_bytes"], 100 * MIB);
    tell(&mut stream, ": still here\n\n");
    tell_quotas(&mut stream, &[quota("a", 400)]);
    tell_quotas(&mut stream, &[quota("b", 80)]);
    assert_eq!(following.change()["limit_bytes"], 80 * MIB);

    // The recruiter ends. Another one replaces it, and does not know the host yet.
    drop(stream);
    let mut stream = accept(&listener);
    tell_quotas(&mut stream, &[quota("a", 400)]);
    following.0.hear("has no host b");
    let change = following.change();
    assert_eq!(
        (
            change["limit_bytes"].as_u64(),
            change["limit_reason"].as_str()
        ),
        (Some(16 * MIB), Some("no_host"))
    );
    tell_quotas(&mut stream, &[quota("b", 90)]);
    assert_eq!(following.change()["limit_bytes"], 90 * MIB);

    drop((stream, listener));
    let change = following.change();
    assert_eq!(
        (
            change["limit_bytes"].as_u64(),
            change["limit_reason"].as_str()
        ),
        (Some(16 * MIB), Some("lost"))
    );
    wait_for("the server", || {
        server.connect().stats("")["limit_maxbytes"] == 16 * MIB
    });
}

#[test]
fn plain_http_never_leaves_this_machine() {
    let output = super::following::once(&[
        "--recruiter",
        "http://192.0.2.7:7444",
        "--memcached",
        "127.0.0.1:1",
    ]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1) && said.contains("use https://"),
        "{said}"
    );
}
