//! Pages by TLS: requests of sizes around those of records and buffers, one at a time and many at once.

use gleaner_harness::{Running, program};
use gleaner_paging::nbd::client::{Server, Tls, Wire, connect};
use gleaner_paging::nbd::wire::{Command, Request, SimpleReply};
use gleaner_trust::{Authority, ClientPaths, ClientTrust, Role};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rustls::pki_types::ServerName;
use std::io::{Read, Write};
use std::process::{self, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: usize = 4096;

/// A memory server that requires TLS, and a client's connection to it.
struct Encrypted {
    wire: Wire,
    _server: Running,
    _folder: TempDir,
}

impl Encrypted {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let authority = Authority::init(&file("pki"), "here", 1).unwrap();
        let server = Role::Collector {
            names: vec!["localhost".to_owned()],
        };
        let server = authority.issue(&server, 1).unwrap();
        server
            .write(&file("server.crt"), &file("server.key"))
            .unwrap();
        let client = Role::Client {
            name: "standalone".to_owned(),
        };
        let client = authority.issue(&client, 1).unwrap();
        client.write(&file("crt"), &file("key")).unwrap();
        let mut command = process::Command::new(program("gleaner-memoryd").unwrap());
        command
            .args(["standalone", "8MiB", "--listen", "127.0.0.1:0", "--tls"])
            .args([file("server.crt"), file("server.key")])
            .arg(authority.certificate_path());
        let running = Running::start(command.stdout(Stdio::piped()));
        let url = running.printed();
        let address = url.strip_prefix("nbd://").unwrap().trim_end_matches('/');
        let trust = ClientTrust::load(&ClientPaths {
            certificate: file("crt"),
            key: file("key"),
            authority: authority.certificate_path(),
        });
        let tls = Tls {
            config: trust.unwrap().credentials().config(),
            name: ServerName::try_from("localhost").unwrap(),
        };
        let server = Server::Tcp(address.to_owned());
        let (wire, _) = connect(&server, "", Some(&tls), PATIENCE).unwrap();
        wire.set_patience(Some(PATIENCE)).unwrap();
        Self {
            wire,
            _server: running,
            _folder: folder,
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.wire.write_all(bytes).unwrap();
        self.wire.flush().unwrap();
    }

    /// Receives the reply to the request `cookie`, and the data of a read.
    fn receive(&mut self, cookie: usize, bytes: usize) -> Vec<u8> {
        let mut head = [0; SimpleReply::BYTES];
        self.wire.read_exact(&mut head).unwrap();
        let reply = SimpleReply::decode(&head).unwrap();
        assert_eq!((reply.error, reply.cookie), (0, cookie as u64));
        let mut data = vec![0; bytes];
        self.wire.read_exact(&mut data).unwrap();
        data
    }
}

fn request(command: Command, cookie: usize, offset: usize, bytes: usize) -> [u8; Request::BYTES] {
    Request {
        flags: 0,
        command,
        cookie: cookie as u64,
        offset: offset as u64,
        bytes: bytes as u32,
    }
    .encode()
}

fn random_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    ChaCha8Rng::seed_from_u64(count as u64).fill_bytes(&mut bytes);
    bytes
}

#[test]
fn requests_of_all_sizes_are_answered() {
    let mut by_tls = Encrypted::start();
    let sizes = [
        1,
        4080,
        PAGE,
        16_356,
        16_368,
        16_384,
        65_536,
        128 << 10,
        200_000,
        256 << 10,
        3 << 20,
    ];
    for (cookie, bytes) in sizes.into_iter().enumerate() {
        let data = random_bytes(bytes);
        let mut sent = request(Command::Write, cookie, 100, bytes).to_vec();
        sent.extend(&data);
        by_tls.send(&sent);
        by_tls.receive(cookie, 0);
        by_tls.send(&request(Command::Read, cookie, 100, bytes));
        assert!(by_tls.receive(cookie, bytes) == data, "{bytes} bytes");
    }
}

#[test]
fn many_requests_at_once_are_answered_in_order() {
    const COUNT: usize = 300;
    let mut by_tls = Encrypted::start();
    let data = random_bytes(COUNT * PAGE);
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for (number, page) in data.chunks(PAGE).enumerate() {
        writes.extend(request(Command::Write, number, number * PAGE, PAGE));
        writes.extend(page);
        reads.extend(request(Command::Read, number, number * PAGE, PAGE));
    }
    by_tls.send(&writes);
    for number in 0..COUNT {
        by_tls.receive(number, 0);
    }
    by_tls.send(&reads);
    for (number, page) in data.chunks(PAGE).enumerate() {
        assert!(by_tls.receive(number, PAGE) == page, "page {number}");
    }
}
