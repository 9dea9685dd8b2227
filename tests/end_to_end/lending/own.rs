//! A host in a commons: its member's link with the recruiter, and leases of its own memory over a Unix socket. All
//! over TLS, with real daemons; the test is the member.

use super::client::LEASE_BYTES;
use super::partition::{Host, LONG_TERM_MS, PORT, RECRUITER, Recruiter, client};
use crate::delivery::network::within;
use crate::delivery::partitions::pki;
use crate::delivery::running::wait_for;
use gleaner_paging::nbd::client::{ConnectError, Server, Wire, connect};
use gleaner_paging::nbd::export_name;
use gleaner_schemas::commons::{
    BLOCK_BYTES, CommonsMessage, Hello, MemberMessage, Summary, VERSION, Weights,
};
use gleaner_trust::{ClientPaths, ClientTrust};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// Timeout of a message or an answer; long, since machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Error number with which reads and writes of an ended lease fail (NBD's ESHUTDOWN).
const SHUTDOWN: u32 = 108;

/// A member's side of the link: as much of RFC 6455 as the test needs.
struct MemberLink(StreamOwned<ClientConnection, TcpStream>);

impl MemberLink {
    fn open(folder: &Path, recruiter: &Recruiter, name: &str) -> Self {
        let paths = ClientPaths {
            certificate: folder.join("host0.crt"),
            key: folder.join("host0.key"),
            authority: folder.join("pki/authority.crt"),
        };
        let config = ClientTrust::load(&paths).unwrap().credentials().config();
        let stream = within(&recruiter.namespace.path(), || {
            TcpStream::connect((RECRUITER[0], PORT)).unwrap()
        });
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let server = ServerName::try_from(RECRUITER[0]).unwrap();
        let tls = ClientConnection::new(config, server).unwrap();
        let mut link = Self(StreamOwned::new(tls, stream));
        let request = format!(
            "GET /v1/commons/{name}/link HTTP/1.1\r\nHost: {}:{PORT}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            RECRUITER[0]
        );
        link.0.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(link.bytes::<1>());
        }
        let head = String::from_utf8_lossy(&head);
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        link
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn say(&mut self, message: &MemberMessage) {
        let text = serde_json::to_vec(message).unwrap();
        let length = u16::try_from(text.len()).unwrap();
        // A final text frame with a length of 16 bits and the mask 0.
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text);
        self.0.write_all(&frame).unwrap();
        self.0.flush().unwrap();
    }

    fn hear(&mut self) -> CommonsMessage {
        let [opcode, length] = self.bytes();
        let length = match length {
            126 => u64::from(u16::from_be_bytes(self.bytes())),
            127 => u64::from_be_bytes(self.bytes()),
            short => u64::from(short),
        };
        let mut text = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut text).unwrap();
        assert_eq!(opcode, 0x81, "no text frame");
        serde_json::from_slice(&text).unwrap()
    }

    /// Answers a request for a summary, and waits for the weights that follow.
    fn weights(&mut self, free_frames: u32) -> Weights {
        loop {
            match self.hear() {
                CommonsMessage::ReportPlease(request) => {
                    self.say(&MemberMessage::Summary(Summary {
                        epoch: request.epoch,
                        classes: vec![0; 70],
                        free_frames,
                        ..Summary::default()
                    }));
                }
                CommonsMessage::Weights(weights) => return weights,
                CommonsMessage::Members(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Sends one request for pages, and returns the error number and the data of the answer.
fn transfer(wire: &mut Wire, kind: u16, offset: u64, data: &mut [u8]) -> u32 {
    const WRITE: u16 = 1;
    let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
    request.extend([0; 2]);
    request.extend(kind.to_be_bytes());
    request.extend(7_u64.to_be_bytes());
    request.extend(offset.to_be_bytes());
    request.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    if kind == WRITE {
        request.extend(&*data);
    }
    wire.write_all(&request).unwrap();
    let mut answer = [0; 16];
    wire.read_exact(&mut answer).unwrap();
    assert_eq!(answer[..4], 0x6744_6698_u32.to_be_bytes());
    let error = u32::from_be_bytes(answer[4..8].try_into().unwrap());
    if kind != WRITE && error == 0 {
        wire.read_exact(data).unwrap();
    }
    error
}

fn read(wire: &mut Wire, offset: u64) -> Result<Vec<u8>, u32> {
    let mut data = vec![0; 4096];
    match transfer(wire, 0, offset, &mut data) {
        0 => Ok(data),
        error => Err(error),
    }
}

#[test]
fn a_host_in_a_commons_has_weights_and_its_own_memory_until_its_owner_returns() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pki(folder, &["init", "--name", "collector.example"]);
    let recruiter = Recruiter::start(folder);
    let host = Host::start(folder, 0, &recruiter.namespace);
    let own = client(folder, "host0");
    let ask = |request: Value| recruiter.ask_as(&own, "/v1/leases", Some(&request));
    let lease = |host_id: &str| json!({ "bytes": LEASE_BYTES, "key": "commons", "term_ms": LONG_TERM_MS, "host_id": host_id });

    let mut granted = Value::Null;
    wait_for("a lease of the own memory", || {
        let (status, answer) = ask(lease(&host.id));
        assert!(matches!(status, 201 | 503), "{answer}");
        granted = answer["leases"][0].clone();
        status == 201
    });
    assert_eq!(granted["host_id"], host.id.as_str());
    assert_eq!(granted["client"], format!("host:{}", host.id));
    let (status, answer) = ask(lease(&format!("{:032x}", 0xa1)));
    assert_eq!(status, 403, "{answer}");
    assert_eq!(answer["kind"], "forbidden");
    // A client's lease is not served at the host's socket, even if its name is known there.
    let of_client = recruiter.grant("another client", LONG_TERM_MS);

    let mut link = MemberLink::open(folder, &recruiter, "tools");
    link.say(&MemberMessage::Hello(Hello {
        version: VERSION,
        generation: 1,
        address: "10.77.1.2:7445".to_owned(),
        frames: 128,
        ..Hello::default()
    }));
    let frames = u32::try_from(LEASE_BYTES / BLOCK_BYTES).unwrap();
    let weights = link.weights(frames);
    assert_eq!(weights.own_weight, 64, "{weights:?}");
    assert!(weights.is_counter && weights.targets.is_empty());
    assert!(weights.quota_bytes.unwrap() >= LEASE_BYTES);

    let socket = granted["address"].as_str().unwrap();
    let server = Server::of_lease(socket.to_owned());
    assert_eq!(server, Server::Unix(socket.into()));
    let lease_id = granted["lease_id"].as_str().unwrap();
    let export = export_name(lease_id, granted["generation"].as_u64().unwrap());
    let (mut wire, export) = connect(&server, &export, None, PATIENCE).unwrap();
    assert_eq!(export.bytes, LEASE_BYTES);
    wire.set_patience(Some(PATIENCE)).unwrap();
    assert_eq!(transfer(&mut wire, 1, 8192, &mut [7; 4096]), 0);
    assert_eq!(read(&mut wire, 8192), Ok(vec![7; 4096]));
    assert_eq!(read(&mut wire, 0), Ok(vec![0; 4096]));
    let others = export_name(&of_client.id, of_client.generation);
    let refused = connect(&server, &others, None, PATIENCE);
    assert!(
        matches!(refused, Err(ConnectError::Refused(_))),
        "another client's lease is open at the host's socket"
    );

    host.agent.owner_returns();
    wait_for("the owner's memory", || host.lending().leases.is_empty());
    assert_eq!(read(&mut wire, 8192), Err(SHUTDOWN));
    assert_eq!(transfer(&mut wire, 1, 0, &mut [7; 4096]), SHUTDOWN);
    let gone = format!("/v1/leases/{lease_id}");
    wait_for("the recruiter to know", || {
        recruiter.ask_as(&own, &gone, None).0 == 404
    });
    wait_for("no weight for a host in use", || {
        link.weights(frames).own_weight == 0
    });
}
