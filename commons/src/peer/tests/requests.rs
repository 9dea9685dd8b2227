//! A server among hostile members that a recruiter lists: what they send takes bounded memory and time, and the
//! other members are served.

use super::recruited::{GENERATION, blocks_of, listed};
use super::*;
use crate::global::PutOutcome;
use crate::peer::client::{BlockAnswer, BlockClient, PutAnswer};
use crate::peer::resolver::MemberAddresses;
use crate::peer::wire::{READER, block_path, format_reader};
use gleaner_daemon::listen::{Limits, bind, serve};
use gleaner_daemon::shares::Shares;
use gleaner_harness::wait_for;
use gleaner_policy::global::directory::{Holder, Stamp};
use gleaner_policy::global::node_of_host;
use gleaner_trust::hex;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use std::io::Read;
use tokio::sync::Semaphore;

/// Number of connections that are served at a time.
const CONNECTIONS: usize = 16;
/// Most bytes of an endless request, after which its test has failed.
const MOST_SENT_BYTES: usize = 256 << 20;
/// Lines of a proper request for a block.
const READS: &str = "Gleaner-Reader: 5.2\r\n";

/// Connection of a member that sends as a test wishes.
type Talk = StreamOwned<ClientConnection, TcpStream>;

/// This host, which serves the other members.
struct ServingHost {
    exchange: Arc<Exchange>,
    address: SocketAddr,
    connections: Arc<Semaphore>,
}

impl ServingHost {
    fn has(&self, hash: &Hash) -> bool {
        self.exchange.memory().has(hash)
    }

    /// Number of blocks with a holder.
    fn entries(&self) -> u64 {
        self.exchange.memory().counts().directory_entries
    }
}

impl Deployment {
    /// This host with memory for 16 blocks. A caller that takes no answer is served for `reader_timeout`.
    fn serving(&self, reader_timeout: Duration) -> ServingHost {
        let any_port = "127.0.0.1:0".parse().unwrap();
        let (socket, address) = self.runtime.block_on(bind(any_port)).unwrap();
        let nobody = own_address();
        let members = [(OWN, address), (HOME, nobody), (THIRD, nobody)];
        let exchange = self.exchange(16, &listed(&members));
        let server = Arc::new(NodeServer::new("test", Arc::clone(&exchange)));
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        let limits = Limits {
            connections: Arc::clone(&connections),
            shares: Some(Arc::new(Shares::of(CONNECTIONS as u64))),
            reader_timeout,
        };
        let trust = ServerTrust::load(&self.server_paths(OWN)).unwrap();
        let (door, router) = (server.door(), server.router());
        self.runtime
            .spawn(serve(socket, Some(trust), limits, door, router));
        ServingHost {
            exchange,
            address,
            connections,
        }
    }

    /// Connects as the host `host_id`.
    fn talk(&self, host: &ServingHost, host_id: &str) -> Talk {
        let trust = ClientTrust::load(&self.client_paths(host_id)).unwrap();
        let config = trust.credentials().config();
        let name = ServerName::try_from(OWN).unwrap();
        let connection = ClientConnection::new(config, name).unwrap();
        let stream = TcpStream::connect(host.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        StreamOwned::new(connection, stream)
    }

    /// Asserts that an honest member's block is stored and found again. Each call needs a number of its own.
    #[track_caller]
    fn assert_serves(&self, host: &ServingHost, number: usize) {
        let trust = ClientTrust::load(&self.client_paths(THIRD)).unwrap();
        let members = host.exchange.membership();
        let own = members.of_host(OWN).unwrap();
        let client = BlockClient::new("test", MemberAddresses::of(&members), trust).unwrap();
        let (hash, bytes) = blocks_of(OWN).nth(number).unwrap();
        let block = Arc::new(bytes);
        let put = client.put(own, (&hash, &block), &[], LONG);
        assert_eq!(put.unwrap(), PutAnswer::Held);
        let reader = format_reader(Holder {
            node: node_of_host(THIRD),
            generation: GENERATION,
            stamp: Stamp::default().next(false),
        });
        let headers = [(READER, reader.as_str())];
        let answered = client.request(own, &hash, &headers, LONG);
        let (answer, _) = answered.unwrap();
        assert!(
            matches!(&answer, BlockAnswer::Found(found) if *found == block),
            "{answer:?}"
        );
    }
}

/// Head of a request with these further lines.
fn head(method: &str, path: &str, lines: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: {OWN}\r\nGleaner-Commons: test\r\n{lines}\r\n")
}

/// Line with the length of a body.
fn length(bytes: usize) -> String {
    format!("Content-Length: {bytes}\r\n")
}

/// Status of the next answer; `None` if the connection ends without one.
fn status(talk: &mut Talk) -> Option<u16> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        if !matches!(talk.read(&mut byte), Ok(1)) {
            return None;
        }
        line.extend(byte);
    }
    let line = String::from_utf8(line).ok()?;
    line.split(' ').nth(1)?.parse().ok()
}

/// Sends a request; returns the status of its answer. The server may answer and close before it has read all.
fn answered(talk: &mut Talk, head: &str, body: &[u8]) -> Option<u16> {
    let _ = talk.write_all(head.as_bytes());
    let _ = talk.write_all(body);
    let _ = talk.flush();
    status(talk)
}

#[test]
fn oversized_requests_are_rejected_and_other_members_are_served() {
    let deployment = Deployment::new();
    let host = deployment.serving(LONG);
    let (hash, _) = blocks_of(OWN).nth(9).unwrap();
    let large = BLOCK_BYTES as usize + 1;
    let json = "Content-Type: application/json\r\n";
    let update = format!("{{\"alone\": [\"{}\"]}}", "0".repeat(200_000));
    let cases = [
        ("PUT", block_path(&hash), length(large), vec![7; large]),
        (
            "POST",
            "/v1/directory".to_owned(),
            length(update.len()) + json,
            update.into_bytes(),
        ),
        (
            "GET",
            block_path(&hash),
            format!("Gleaner-Reader: {}\r\n", "1".repeat(100_000)),
            Vec::new(),
        ),
        (
            "GET",
            format!("/{}", "x".repeat(100_000)),
            String::new(),
            Vec::new(),
        ),
    ];
    for (number, (method, path, lines, body)) in cases.into_iter().enumerate() {
        let mut talk = deployment.talk(&host, HOME);
        let status = answered(&mut talk, &head(method, &path, &lines), &body);
        assert!(
            status.is_none_or(|status| status >= 400),
            "case {number}: {status:?}"
        );
        deployment.assert_serves(&host, number);
    }
    assert!(!host.has(&hash));
    assert_eq!(host.entries(), 4, "the honest member's four blocks");
}

#[test]
fn a_request_without_end_is_ended_and_other_members_are_served() {
    let deployment = Deployment::new();
    let host = deployment.serving(LONG);
    let (hash, _) = blocks_of(OWN).nth(9).unwrap();
    let chunked = "Transfer-Encoding: chunked\r\n";
    let json = "Content-Type: application/json\r\n";
    let chunk = [b"4000\r\n".as_slice(), &[b' '; 0x4000], b"\r\n"].concat();
    let requests = [
        head("PUT", &block_path(&hash), chunked),
        head("POST", "/v1/directory", &format!("{chunked}{json}")),
    ];
    for (number, request) in requests.iter().enumerate() {
        let mut talk = deployment.talk(&host, HOME);
        talk.write_all(request.as_bytes()).unwrap();
        let mut sent_bytes = 0;
        while talk.write_all(&chunk).is_ok() {
            sent_bytes += chunk.len();
            assert!(sent_bytes < MOST_SENT_BYTES, "{request}");
        }
        deployment.assert_serves(&host, number);
    }
    assert!(!host.has(&hash));
}

#[test]
fn slow_senders_and_readers_are_disconnected_and_other_members_are_served() {
    let deployment = Deployment::new();
    let host = deployment.serving(Duration::from_millis(200));
    // A whole block: many answers with it fit in no socket's buffers. It stays, because this host uses it.
    let bytes = vec![7; BLOCK_BYTES as usize];
    let hash = Hash::from(blake3::hash(&bytes));
    let memory = host.exchange.memory();
    let stored = memory.receive_put(node_of_host(THIRD), &hash, bytes, (5, 0));
    assert_eq!(stored, PutOutcome::Stored);
    assert!(memory.use_block(&hash).is_some());

    let mut slow_sender = deployment.talk(&host, HOME);
    let unfinished = head("PUT", &block_path(&hash), &length(BLOCK_BYTES as usize));
    slow_sender.write_all(unfinished.as_bytes()).unwrap();
    slow_sender.write_all(&[7; 100]).unwrap();
    slow_sender.flush().unwrap();
    let mut slow_reader = deployment.talk(&host, HOME);
    let lines = format!("{READS}Gleaner-Forwarded: true\r\n");
    let request = head("GET", &block_path(&hash), &lines);
    for _ in 0..500 {
        // The server may have closed the connection already.
        if slow_reader.write_all(request.as_bytes()).is_err() {
            break;
        }
    }
    deployment.assert_serves(&host, 0);
    assert_eq!(status(&mut slow_sender), Some(408));
    drop(slow_sender);
    wait_for("the end of the slow reader's connection", || {
        host.connections.available_permits() == CONNECTIONS
    });
    deployment.assert_serves(&host, 1);
    drop(slow_reader);
}

#[test]
fn a_block_with_a_forged_hash_is_not_stored_and_its_sender_is_accused() {
    let deployment = Deployment::new();
    let host = deployment.serving(LONG);
    let (hash, mut forged) = blocks_of(OWN).nth(9).unwrap();
    forged[0] ^= 1;
    let mut talk = deployment.talk(&host, HOME);
    let request = head("PUT", &block_path(&hash), &length(forged.len()));
    assert_eq!(answered(&mut talk, &request, &forged), Some(400));
    assert!(!host.has(&hash));
    let home = peer(host.exchange.peers(), HOME);
    assert!(!home.is_asked && home.wrong_count == 1, "{home:?}");
    deployment.assert_serves(&host, 0);
}

#[test]
fn malformed_requests_are_rejected_and_change_nothing() {
    let deployment = Deployment::new();
    let host = deployment.serving(LONG);
    let (hash, bytes) = blocks_of(OWN).nth(9).unwrap();
    let path = block_path(&hash);
    let ask = |request: &str, body: &[u8]| {
        let mut talk = deployment.talk(&host, HOME);
        answered(&mut talk, request, body)
    };
    for value in ["x", "1", "1.4294967296", "-1.1", ""] {
        let request = head("GET", &path, &format!("Gleaner-Reader: {value}\r\n"));
        assert_eq!(ask(&request, &[]), Some(400), "{value}");
    }
    assert_eq!(ask(&head("GET", &path, ""), &[]), Some(400));
    let of_block = length(bytes.len());
    for line in [
        "Gleaner-Age-Ms: x",
        "Gleaner-Age-Ms: -1",
        "Gleaner-Chances: 256",
    ] {
        let request = head("PUT", &path, &format!("{line}\r\n{of_block}"));
        assert_eq!(ask(&request, &bytes), Some(400), "{line}");
    }
    for path in ["/v1/blocks/00", "/v1/blocks/zz", &path.to_uppercase()] {
        let status = ask(&head("GET", path, READS), &[]);
        assert!(matches!(status, Some(400 | 404)), "{path}: {status:?}");
    }
    assert!(!host.has(&hash));
    assert_eq!(host.entries(), 0);
    // The largest numbers are numbers.
    let age_ms = u64::MAX;
    let lines = format!("Gleaner-Age-Ms: {age_ms}\r\nGleaner-Chances: 255\r\n{of_block}");
    assert_eq!(ask(&head("PUT", &path, &lines), &bytes), Some(201));
    deployment.assert_serves(&host, 0);
}

#[test]
fn entries_of_other_members_and_of_former_memory_are_not_taken() {
    let deployment = Deployment::new();
    let host = deployment.serving(LONG);
    let (hash, _) = blocks_of(OWN).nth(9).unwrap();
    let digits = hex::encode(&hash[..16]);
    let update = |host_id: &str, generation: u32, fields: &str| {
        let body = format!("{{\"generation\": {generation}, {fields}}}");
        let json = "Content-Type: application/json\r\n";
        let lines = format!("{json}{}", length(body.len()));
        let mut talk = deployment.talk(&host, host_id);
        let request = head("POST", "/v1/directory", &lines);
        answered(&mut talk, &request, body.as_bytes())
    };
    let moved = format!("\"moved\": [[\"{digits}\", 2]]");
    let gone = format!("\"gone\": [[\"{digits}\", 40]]");
    // A message has no field for another member's number: its sender is the certificate's host.
    for field in ["node", "holder"] {
        let fields = format!("{moved}, \"{field}\": {}", node_of_host(THIRD));
        let status = update(HOME, GENERATION, &fields);
        assert!(matches!(status, Some(400 | 422)), "{field}: {status:?}");
    }
    let many = vec![format!("[\"{digits}\", 2]"); 1025].join(", ");
    let many = format!("\"moved\": [{many}]");
    assert_eq!(update(HOME, GENERATION, &many), Some(400));
    // The sender's former memory is lost.
    assert_eq!(update(HOME, GENERATION - 1, &moved), Some(204));
    assert_eq!(host.entries(), 0);

    assert_eq!(update(HOME, GENERATION, &moved), Some(204));
    assert_eq!(host.entries(), 1);
    assert_eq!(update(THIRD, GENERATION, &gone), Some(204));
    assert_eq!(host.entries(), 1, "another member withdraws no entry");
    assert_eq!(update(HOME, GENERATION, &gone), Some(204));
    assert_eq!(host.entries(), 0);
    deployment.assert_serves(&host, 0);
}

#[test]
fn callers_that_are_no_members_are_not_served() {
    const STRANGER: &str = "4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d";
    let deployment = Deployment::new();
    let host = deployment.serving(LONG);
    let (hash, _) = blocks_of(OWN).nth(9).unwrap();
    let request = head("GET", &block_path(&hash), READS);
    let mut talk = deployment.talk(&host, STRANGER);
    assert_eq!(answered(&mut talk, &request, &[]), Some(503));
    let of_another = request.replace("Gleaner-Commons: test", "Gleaner-Commons: other");
    let mut talk = deployment.talk(&host, HOME);
    assert_eq!(answered(&mut talk, &of_another, &[]), Some(403));
    assert_eq!(host.entries(), 0);
    deployment.assert_serves(&host, 0);
}

#[test]
fn a_member_with_as_many_connections_as_it_gets_leaves_the_others_theirs() {
    let deployment = Deployment::new();
    let host = deployment.serving(LONG);
    let (hash, _) = blocks_of(OWN).nth(9).unwrap();
    // The answer to a malformed request shows that a connection is served, and leaves it open.
    let request = head("GET", &block_path(&hash), "");
    let served = || {
        let mut talk = deployment.talk(&host, HOME);
        let status = answered(&mut talk, &request, &[]);
        (status == Some(400)).then_some(talk)
    };
    let crowd: Vec<Talk> = (0..2 * CONNECTIONS).filter_map(|_| served()).collect();
    assert_eq!(crowd.len(), CONNECTIONS / 4);
    deployment.assert_serves(&host, 0);

    drop(crowd);
    wait_for("the member's next connection", || served().is_some());
}
