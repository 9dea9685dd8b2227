//! A lying recruiter, at the other end of a memory server's link.

use super::stage::Stage;
use crate::recruiter::{Link, Recruiter, grant};
use gleaner_harness::{PATIENCE, mutations};
use gleaner_schemas::lending::{
    HostMessage, Outcome, RecruiterMessage, Refusal, RefusalKind, Request, RequestKind, Revocations,
};
use serde_json::{Value, json, to_value};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Instant;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Message};

/// Number of liars at one time. Several save time: a link that has ended is reconnected only after up to a
/// second.
const LIARS: usize = 8;
/// Allowed growth by answers to pings that a recruiter does not read: the limit of unsent bytes, and a little
/// more.
const MOST_UNTAKEN_BYTES: u64 = 16 << 20;
/// Maximum length of the refusal of a senseless request: it quotes no text of the recruiter that is longer
/// than a name may be.
const LONGEST_REFUSAL_BYTES: usize = 2000;

fn request(request_id: u64, asked: RequestKind) -> Value {
    to_value(RecruiterMessage::Request(Request { request_id, asked })).unwrap()
}

/// Every message that a recruiter may send. If you add a message to the protocol, add it here.
fn conversation() -> Vec<Value> {
    let lease_id = "0123456789abcdef0123456789abcdef".to_owned();
    let client = Some("liar".to_owned());
    vec![
        request(1, grant("liar", "k", 1)),
        request(
            2,
            RequestKind::Renew {
                client: client.clone(),
                lease_id: lease_id.clone(),
                term_ms: 1000,
            },
        ),
        request(3, RequestKind::Release { client, lease_id }),
        to_value(RecruiterMessage::Revocations(Revocations {
            pem: "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n".to_owned(),
        }))
        .unwrap(),
        to_value(RecruiterMessage::Refused(Refusal {
            kind: RefusalKind::Busy,
            detail: "later".to_owned(),
            retry_in_ms: Some(0),
        }))
        .unwrap(),
    ]
}

/// Sends a message and waits until it was handled; returns false if the link has ended.
fn is_linked_after(link: &mut Link, message: Message) -> bool {
    let marker = Bytes::from_static(b"heard");
    let sent = link.socket.send(message);
    if sent.is_err() || link.socket.send(Message::Ping(marker.clone())).is_err() {
        return false;
    }
    loop {
        match link.socket.read() {
            Ok(Message::Pong(heard)) if heard == marker => return true,
            Ok(Message::Text(text)) => check(&text),
            Ok(Message::Close(_)) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

/// Checks that a text of the memory server is a valid message, and a short one if it is a refusal.
#[track_caller]
fn check(text: &str) {
    let heard: HostMessage = serde_json::from_str(text).unwrap();
    if let HostMessage::Answer(answer) = heard
        && let Outcome::Refused(refusal) = answer.outcome
    {
        assert!(
            text.len() < LONGEST_REFUSAL_BYTES,
            "{} bytes: {:.300}",
            text.len(),
            refusal.detail
        );
    }
}

/// Sends all messages. After a message that ends the link, continues over the next link.
fn lie<'a>(liar: &Recruiter, messages: impl Iterator<Item = &'a Message>) {
    let mut link = liar.link();
    for message in messages {
        if !is_linked_after(&mut link, message.clone()) {
            link = liar.link();
        }
    }
    // Releases the leases that the liar was granted: they would take the honest client's memory.
    for lease_id in leases_of(&mut link, "neighbour") {
        let release = RequestKind::Release {
            client: None,
            lease_id,
        };
        assert!(link.try_send(release).is_some());
    }
    assert!(is_linked_after(&mut link, Message::Ping(Bytes::new())));
}

/// Leases of other clients than `but`, as announced on a new link.
fn leases_of(link: &mut Link, but: &str) -> Vec<String> {
    let told = loop {
        // The memory server sends an announcement each second.
        match link.socket.read().unwrap() {
            Message::Text(text) => match serde_json::from_str(&text).unwrap() {
                HostMessage::Announcement(told) => break told,
                _ => continue,
            },
            _ => continue,
        }
    };
    let others = told.leases.into_iter().filter(|lease| lease.client != but);
    others.map(|lease| lease.lease_id).collect()
}

fn text(value: &Value) -> Message {
    Message::text(value.to_string())
}

#[test]
fn mutated_requests_of_a_recruiter_are_answered_or_end_its_link_alone() {
    let liars: Vec<Recruiter> = (0..LIARS).map(|_| Recruiter::new()).collect();
    let urls: Vec<String> = liars.iter().map(|liar| liar.url.clone()).collect();
    let mut stage = Stage::start(&urls);
    let conversation = conversation();
    let mutated = conversation.iter().flat_map(mutations);
    let mut all: Vec<Message> = mutated.map(|(_, mutated)| text(&mutated)).collect();
    // Messages that no recruiter sends: an answer, an announcement, an array, and an unknown type.
    let answer =
        json!({ "type": "answer", "request_id": 1, "outcome": "released", "lease_id": "" });
    for unasked in [
        answer,
        json!({ "type": "announcement" }),
        json!([]),
        json!({ "type": "later" }),
    ] {
        all.push(text(&unasked));
    }
    all.extend(
        conversation
            .iter()
            .flat_map(|message| [text(message), text(message)]),
    );
    all.push(Message::Binary(vec![0; 60_000].into()));
    all.push(Message::Pong(Bytes::from_static(b"unasked")));
    all.push(Message::Close(None));
    println!("{} messages", all.len());
    std::thread::scope(|scope| {
        let all = &all;
        let lying = liars.iter().enumerate().map(|(number, liar)| {
            scope.spawn(move || lie(liar, all.iter().skip(number).step_by(LIARS)))
        });
        let lying: Vec<_> = lying.collect();
        while lying.iter().any(|liar| !liar.is_finished()) {
            stage.is_served();
        }
    });
    stage.stands();
}

/// Sends pings until the link ends, without reading the answers; returns their number.
fn ping_and_never_listen(link: &mut Link) -> usize {
    const MOST: usize = 200_000;
    let payload = Bytes::from_static(&[b'x'; 125]);
    (0..MOST)
        .take_while(|_| link.socket.write(Message::Ping(payload.clone())).is_ok())
        .count()
}

#[test]
fn floods_of_a_recruiter_take_little_memory_and_no_time_of_its_neighbours() {
    let liar = Recruiter::new();
    // The memory server notices only by the next announcement that a recruiter reads nothing.
    let mut stage = Stage::announcing(std::slice::from_ref(&liar.url), "1m");
    let pings = ping_and_never_listen(&mut liar.link());
    stage.stays_within(MOST_UNTAKEN_BYTES);
    std::thread::scope(|scope| {
        let flooding = scope.spawn(|| {
            // More requests than may wait: the memory server refuses some. The test reads no answer.
            let mut link = liar.link();
            let asked = (0..20_000).take_while(|n| {
                let key = format!("{n}-{}", "k".repeat(40_000));
                link.try_send(grant("liar", &key, 1)).is_some()
            });
            let asked = asked.count();
            // The link may still be up here: buffers between both ends may hold all answers.
            drop(link);
            // This message consists of parts that never end.
            let mut link = liar.link();
            let begin = Frame::message(vec![b'['; 1000], OpCode::Data(Data::Text), false);
            let mut is_taken = link.socket.send(Message::Frame(begin)).is_ok();
            let mut parts = 0;
            while is_taken && parts < 10_000 {
                let part = Frame::message(vec![b'['; 60_000], OpCode::Data(Data::Continue), false);
                is_taken = link.socket.send(Message::Frame(part)).is_ok();
                parts += 1;
            }
            println!("{pings} pings, {asked} requests, {parts} parts");
            assert!(parts < 10_000, "a message without end is taken in");
        });
        while !flooding.is_finished() {
            stage.is_served();
        }
    });
    stage.stands();
}

#[test]
fn a_recruiter_that_answers_the_link_with_no_end_of_words_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut stage = Stage::start(&[url]);
    std::thread::scope(|scope| {
        let talking = scope.spawn(|| {
            for head in [
                "HTTP/1.1 101 Switching Protocols\r\n",
                "HTTP/1.1 503 No\r\n\r\n",
                "",
            ] {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let _ = stream.read(&mut [0; 4096]).unwrap();
                let began = Instant::now();
                let line = format!("x: {}\r\n", "y".repeat(60_000));
                let mut is_taken = stream.write_all(head.as_bytes()).is_ok();
                let mut lines = 0;
                while is_taken && lines < 4000 {
                    is_taken = stream.write_all(line.as_bytes()).is_ok();
                    lines += 1;
                }
                println!("{lines} lines in {:?} after {head:?}", began.elapsed());
            }
        });
        while !talking.is_finished() {
            stage.is_served();
        }
    });
    stage.stands();
}

#[test]
fn leases_for_ever_new_clients_leave_the_owners_log_small() {
    const LEASES: usize = 400;
    /// Maximum number of clients named in one line of the log.
    const MOST_CLIENTS: usize = 32;
    let liar = Recruiter::new();
    // The link must not time out because this machine is busy.
    let mut stage = Stage::announcing(std::slice::from_ref(&liar.url), "30s");
    let mut link = liar.link();
    for number in 0..LEASES {
        let client = format!("{number:0>256}");
        let lease = link.lease(grant(&client, "k", 1));
        let lease_id = lease.lease_id;
        let release = RequestKind::Release {
            client: Some(client),
            lease_id: lease_id.clone(),
        };
        assert_eq!(link.ask(release), Outcome::Released { lease_id });
    }
    stage.is_served();
    let log = stage.daemon.log();
    for line in &log {
        assert!(
            line.clients.len() <= MOST_CLIENTS,
            "{} clients",
            line.clients.len()
        );
    }
    // Leases that end together share a line of the log. So they do not displace the lines that interest the
    // owner.
    assert!(log.len() < LEASES / 8, "{} lines", log.len());
    assert_eq!(
        log.iter().map(|line| line.steps_count).sum::<u64>(),
        LEASES as u64
    );
    stage.stands();
}
