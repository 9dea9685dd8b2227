//! TLS on a memory server's port for pages. It can be started only once on a connection, and nothing that was
//! sent before TLS is valid within it.

use super::client::CLIENT;
use super::partition::{HOST, Host, LONG_TERM_MS, PAGES_PORT, Recruiter};
use crate::delivery::network::within;
use crate::delivery::partitions::pki;
use gleaner_paging::nbd::client::{Server, Tls, connect};
use gleaner_paging::nbd::export_name;
use gleaner_paging::nbd::wire::{GREETING, OPTION_MAGIC, REPLY_MAGIC, option, reply};
use gleaner_trust::{ClientPaths, ClientTrust};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Opens a connection, and completes the greetings of the NBD protocol.
fn greeted() -> TcpStream {
    let mut stream = TcpStream::connect((HOST[0], PAGES_PORT)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting[..8], GREETING[0].to_be_bytes());
    stream.write_all(&3_u32.to_be_bytes()).unwrap();
    stream
}

fn an_option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Data that the options `INFO` and `GO` have in the NBD protocol, for this export.
fn named(export: &str) -> Vec<u8> {
    let mut data = (export.len() as u32).to_be_bytes().to_vec();
    data.extend(export.as_bytes());
    data.extend([0; 2]);
    data
}

/// Reads the next reply; returns its kind and data.
fn answer(stream: &mut impl Read) -> (u32, Vec<u8>) {
    let mut head = [0; 20];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[..8], REPLY_MAGIC.to_be_bytes());
    let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
    let mut data = vec![0; word(16) as usize];
    stream.read_exact(&mut data).unwrap();
    (word(12), data)
}

/// Sends an option; returns the kind of the reply.
fn ask(stream: &mut (impl Read + Write), number: u32, data: &[u8]) -> u32 {
    stream.write_all(&an_option(number, data)).unwrap();
    stream.flush().unwrap();
    answer(stream).0
}

fn is_closed(stream: &mut impl Read) -> bool {
    let mut scrap = [0; 4096];
    loop {
        match stream.read(&mut scrap) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) => {
                let is_early = matches!(
                    e.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                );
                return !is_early;
            }
        }
    }
}

#[test]
fn tls_is_begun_once_and_nothing_said_before_it_counts_within() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pki(folder, &["init", "--name", "collector.example"]);
    let recruiter = Recruiter::start(folder);
    let host = Host::start(folder, 0, &recruiter.namespace);
    let lease = recruiter.grant("pages", LONG_TERM_MS);
    let lending = host.lending();
    let held = lending
        .leases
        .iter()
        .find(|held| held.lease_id == lease.id)
        .unwrap();
    assert_eq!(held.client, CLIENT);
    let export = export_name(&held.lease_id, held.generation);
    let paths = ClientPaths {
        certificate: folder.join("client.crt"),
        key: folder.join("client.key"),
        authority: folder.join("pki/authority.crt"),
    };
    let config = ClientTrust::load(&paths).unwrap().credentials().config();
    let name = ServerName::try_from(host.id.clone()).unwrap();
    let secured = |stream: TcpStream| {
        let connection = ClientConnection::new(config.clone(), name.clone()).unwrap();
        StreamOwned::new(connection, stream)
    };
    within(&recruiter.namespace.path(), || {
        // Before STARTTLS, every other option is rejected. STARTTLS itself must not have data.
        let mut stream = greeted();
        for number in [option::LIST, option::INFO, option::GO, 77] {
            assert_eq!(
                ask(&mut stream, number, &named(&export)),
                reply::ERR_TLS_REQD
            );
        }
        assert_eq!(
            ask(&mut stream, option::STARTTLS, b"now"),
            reply::ERR_INVALID
        );
        assert_eq!(ask(&mut stream, option::STARTTLS, &[]), reply::ACK);
        // Within TLS, every STARTTLS is rejected, and the negotiation continues.
        let mut tls = secured(stream);
        for _ in 0..3 {
            assert_eq!(ask(&mut tls, option::STARTTLS, &[]), reply::ERR_POLICY);
        }
        assert_eq!(ask(&mut tls, option::LIST, &[]), reply::ACK);
        assert_eq!(ask(&mut tls, option::GO, &named(&export)), reply::INFO);
        assert_eq!(answer(&mut tls).0, reply::ACK);

        // An option that is sent together with STARTTLS, before TLS, must not count as sent within TLS: the
        // connection is closed.
        let mut stream = greeted();
        let both = [
            an_option(option::STARTTLS, &[]),
            an_option(option::GO, &named(&export)),
        ];
        stream.write_all(&both.concat()).unwrap();
        assert_eq!(answer(&mut stream).0, reply::ACK);
        assert!(is_closed(&mut stream));

        // The connection is also closed after a TLS handshake before STARTTLS, and after a handshake within
        // TLS.
        let mut stream = secured(greeted());
        assert!(stream.write_all(&an_option(option::LIST, &[])).is_err() || is_closed(&mut stream));
        let mut stream = greeted();
        assert_eq!(ask(&mut stream, option::STARTTLS, &[]), reply::ACK);
        let mut tls = secured(stream);
        let mut inner = ClientConnection::new(config.clone(), name.clone()).unwrap();
        inner.write_tls(&mut tls).unwrap();
        tls.flush().unwrap();
        assert!(is_closed(&mut tls));

        // After all this, an honest client is served.
        let server = Server::Tcp(format!("{}:{PAGES_PORT}", HOST[0]));
        let tls = Tls {
            config: config.clone(),
            name: name.clone(),
        };
        let (_, found) = connect(&server, &export, Some(&tls), PATIENCE).unwrap();
        assert_eq!(found.bytes, held.granted_bytes);
    });
    drop(host);
}
