//! Tests slow and malformed senders. They are disconnected, if possible with a reason, and delay nobody else.

use crate::made::{body, id};
use crate::running::{Collector, wait_for};
use crate::trusted::{Deployment, strangers_connection};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Maximum time until a stranger is disconnected. It exceeds the collector's timeout, since this machine may
/// be busy with a build.
const GIVEN_UP: Duration = Duration::from_secs(80);

fn connect(url: &str) -> TcpStream {
    let socket = TcpStream::connect(url.rsplit('/').next().unwrap()).unwrap();
    socket.set_read_timeout(Some(GIVEN_UP)).unwrap();
    socket
}

/// Reads until the collector closes the connection.
fn read_to_end(mut socket: TcpStream) -> String {
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(e) => panic!("not given up: {e}"),
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn connections_that_say_nothing_are_closed_and_do_not_count_for_others() {
    let deployment = Deployment::new();
    let collector = deployment.start("connections_limit = 8");
    let url = collector.tls_url.clone().unwrap();
    // Clients that never begin a handshake use six of the eight connections.
    let silent: Vec<_> = (0..6).map(|_| connect(&url)).collect();
    let (host, batch) = (deployment.host(&id(1)), body(&id(1), &id(2), 1..=1));
    let begin = Instant::now();
    let sent = crate::running::try_post(&host, &format!("{url}/v1/batches"), &batch);
    assert_eq!(sent.unwrap().0, 200);
    assert!(begin.elapsed() < GIVEN_UP);
    for socket in silent {
        read_to_end(socket);
    }
    collector.hear("no TLS handshake in time");
}

#[test]
fn more_connections_than_there_are_places_are_turned_away_until_some_end() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "connections_limit = 4");
    let held: Vec<_> = (0..4).map(|_| connect(&collector.url)).collect();
    // The limit applies once the collector has accepted the other connections.
    wait_for("a connection to be turned away", || {
        let socket = connect(&collector.url);
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        matches!((&socket).read(&mut [0; 1]), Ok(0))
            || (&socket)
                .read(&mut [0; 1])
                .is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset)
    });
    drop(held);
    wait_for("a place", || {
        crate::running::try_get(
            &crate::running::agent(),
            &format!("{}/v1/status", collector.url),
        )
        .is_ok_and(|(status, _)| status == 200)
    });
}

#[test]
fn a_body_that_does_not_come_is_given_up_and_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let mut slow = connect(&collector.url);
    let head = "POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nab";
    slow.write_all(head.as_bytes()).unwrap();
    // Other clients are served meanwhile.
    assert_eq!(collector.send(&body(&id(1), &id(2), 1..=1)).0, 200);
    let answer = read_to_end(slow);
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("did not arrive within"), "{answer}");
    assert!(answer.contains("\"retry\":true"), "{answer}");
}

#[test]
fn a_stranger_who_says_it_slowly_is_given_up() {
    let deployment = Deployment::new();
    let collector = deployment.start("");
    let url = collector.tls_url.clone().unwrap();
    let mut stream = strangers_connection(&deployment, &url);
    let head = "POST /v1/enroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20000\r\n\r\n{";
    stream.write_all(head.as_bytes()).unwrap();
    let begin = Instant::now();
    // The client sends a byte now and then, and never the end of its request.
    while stream.write_all(b" ").and_then(|()| stream.flush()).is_ok() {
        assert!(begin.elapsed() < GIVEN_UP, "not given up");
        std::thread::sleep(Duration::from_millis(200));
    }
    collector.hear("a stranger stayed for too long");
}

#[test]
fn what_a_stranger_sends_is_bounded_and_so_is_what_is_logged_of_it() {
    let deployment = Deployment::new();
    let collector = deployment.start("");
    let url = format!("{}/v1/enroll", collector.tls_url.clone().unwrap());
    let stranger = deployment.stranger();
    let request = gleaner_trust::KeyAndRequest::new().unwrap().request_pem;
    let token = deployment
        .authority
        .new_token(Duration::from_secs(60), None);
    let token = token.unwrap();
    let ask = |host_id: String| {
        let asked =
            serde_json::json!({ "token": token, "host_id": host_id, "request_pem": request });
        crate::trusted::post_json(&stranger, &url, &asked).0
    };
    assert_eq!(ask("x".repeat(100_000)), 413);
    assert_eq!(ask(format!("\n{}\x1b[2J", "y".repeat(20_000))), 403);
    for i in 0..300 {
        assert_eq!(ask(format!("z{i}")), 403);
    }
    // Another client is refused. When this refusal appears in the output, all earlier output has been read.
    let url = collector.tls_url.clone().unwrap();
    let host = deployment.host(&id(1));
    let batch = body(&id(2), &id(3), 1..=1);
    let sent = crate::running::try_post(&host, &format!("{url}/v1/batches"), &batch);
    assert_eq!(sent.unwrap().0, 403);
    let mut said = Vec::new();
    wait_for("the host's refusal", || {
        said.extend(collector.said());
        said.iter()
            .any(|line: &String| line.contains("refused host"))
    });
    said.retain(|line| line.contains("refused 127."));
    assert_eq!(said.len(), 100, "{said:#?}");
    assert!(
        said.iter()
            .all(|line| line.len() < 2000 && !line.contains('\x1b'))
    );
    assert!(said[2].contains("\"z1\" is not a host id"), "{}", said[2]);
}

#[test]
fn a_batch_without_a_length_and_words_that_are_no_http_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let say = |words: &str| {
        let mut socket = connect(&collector.url);
        // The collector may have answered and closed before the last byte. So writing may fail, and only the
        // answer matters.
        let _ = socket.write_all(words.as_bytes());
        let _ = socket.shutdown(std::net::Shutdown::Write);
        read_to_end(socket)
    };
    let chunked = "POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n";
    let answer = say(chunked);
    assert!(answer.starts_with("HTTP/1.1 411"), "{answer}");
    say("EHLO collector\r\n");
    let header = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    let answer = say(&header);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
    assert_eq!(collector.send(&body(&id(1), &id(2), 1..=1)).0, 200);
}

#[test]
fn a_web_page_on_the_collectors_machine_can_neither_send_nor_read() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let agent = crate::running::agent();
    let url = |path: &str| format!("{}{path}", collector.url);
    let batch = body(&id(1), &id(2), 1..=1);
    let sent = agent
        .post(url("/v1/batches"))
        .header("Origin", "https://evil.example")
        .send(&batch[..]);
    assert_eq!(sent.unwrap().status(), 403);
    let read = agent
        .get(url("/v1/status"))
        .header("Host", "evil.example")
        .call();
    assert_eq!(read.unwrap().status(), 403);
    assert_eq!(collector.send(&batch).0, 200);
}

#[test]
fn it_takes_as_many_descriptors_as_it_may_have() {
    let folder = tempfile::tempdir().unwrap();
    let config = "local_listen = \"127.0.0.1:0\"\nlocal_access = \"all\"\n";
    let mut command = std::process::Command::new("sh");
    command.args([
        "-c",
        "ulimit -S -n 64 && exec \"$@\"",
        "sh",
        crate::running::program(),
    ]);
    let collector = Collector::start_as(folder.path(), config, &mut command);
    let _held: Vec<_> = (0..200).map(|_| connect(&collector.url)).collect();
    assert_eq!(collector.send(&body(&id(1), &id(2), 1..=1)).0, 200);
}
