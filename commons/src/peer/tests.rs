//! A client among hostile members: each wrong answer costs one request, and no byte of it is taken. A server, too:
//! in `requests`.

mod recruited;
mod requests;

use super::*;
use crate::catalog::{BLOCK_BYTES, Hash};
use crate::config::SharingConfig;
use crate::directory::{MemberAddress, Membership, MembershipSource};
use crate::store::ClusterMemory;
use gleaner_trust::{Authority, ClientPaths, ClientTrust, Role, ServerPaths, ServerTrust};
use rustls::{ServerConnection, StreamOwned};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const OWN: &str = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";
const HOME: &str = "1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b";
const THIRD: &str = "2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c";
const LONG: Duration = Duration::from_secs(120);

/// Way in which a hostile member answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    OtherBytes,
    FewBytes,
    CutOff,
    Endless,
    NoHttp,
    Redirect(&'static str),
}

/// A member that answers every request in one manner, and counts the requests.
struct HostileMember {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
}

impl HostileMember {
    fn start(trust: Arc<ServerTrust>, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (trust, counted) = (Arc::clone(&trust), Arc::clone(&counted));
                // The client may close the connection at any time.
                thread::spawn(move || {
                    let _ = answer(&trust, stream, manner, &counted);
                });
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

fn answer(
    trust: &ServerTrust,
    stream: TcpStream,
    manner: Manner,
    requests: &AtomicU64,
) -> std::io::Result<()> {
    let connection = ServerConnection::new(trust.config()).map_err(std::io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line)?;
        }
        requests.fetch_add(1, Ordering::SeqCst);
        let to = reader.get_mut();
        let whole = BLOCK_BYTES as usize;
        let head = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        match manner {
            Manner::OtherBytes => {
                to.write_all(head(whole).as_bytes())?;
                to.write_all(&vec![7; whole])?;
            }
            Manner::FewBytes => {
                to.write_all(head(10).as_bytes())?;
                to.write_all(&[7; 10])?;
            }
            Manner::CutOff => {
                to.write_all(head(whole).as_bytes())?;
                to.write_all(&vec![7; whole / 2])?;
                to.flush()?;
                return Ok(());
            }
            Manner::Endless => {
                to.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                loop {
                    to.write_all(b"1000\r\n")?;
                    to.write_all(&[7; 0x1000])?;
                    to.write_all(b"\r\n")?;
                }
            }
            Manner::NoHttp => {
                to.write_all(b"250 welcome\r\n\r\n")?;
                to.flush()?;
                return Ok(());
            }
            Manner::Redirect(host_id) => {
                let head = format!(
                    "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://{host_id}{path}\r\nContent-Length: 0\r\n\r\n"
                );
                to.write_all(head.as_bytes())?;
            }
        }
        to.flush()?;
    }
}

impl Manner {
    /// Answers that are no block with the wanted hash.
    fn wrong_answers() -> [Self; 5] {
        [
            Self::OtherBytes,
            Self::FewBytes,
            Self::CutOff,
            Self::Endless,
            Self::NoHttp,
        ]
    }
}

/// A deployment's authority and the certificates of hosts.
struct Deployment {
    folder: TempDir,
    authority: Authority,
    runtime: Runtime,
}

impl Deployment {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::init(&folder.path().join("pki"), "test", 10).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        Self {
            folder,
            authority,
            runtime: runtime.unwrap(),
        }
    }

    fn server_paths(&self, host_id: &str) -> ServerPaths {
        let host_id = host_id.to_owned();
        let path = |end: &str| -> PathBuf { self.folder.path().join(format!("{host_id}.{end}")) };
        let (certificate, key) = (path("crt"), path("key"));
        if !certificate.exists() {
            let role = Role::Host {
                host_id: host_id.clone(),
            };
            let issued = self.authority.issue(&role, 10).unwrap();
            fs::write(&certificate, issued.certificate_pem).unwrap();
            fs::write(&key, issued.key_pem).unwrap();
        }
        ServerPaths {
            certificate,
            key,
            authority: self.folder.path().join("pki/authority.crt"),
            revocation_list: None,
        }
    }

    fn client_paths(&self, host_id: &str) -> ClientPaths {
        let paths = self.server_paths(host_id);
        ClientPaths {
            certificate: paths.certificate,
            key: paths.key,
            authority: paths.authority,
        }
    }

    fn hostile(&self, host_id: &str, manner: Manner) -> HostileMember {
        let trust = ServerTrust::load(&self.server_paths(host_id)).unwrap();
        HostileMember::start(trust, manner)
    }

    fn sharing(&self, members: MembershipSource) -> SharingConfig {
        SharingConfig {
            listen: own_address(),
            server_paths: self.server_paths(OWN),
            client_paths: self.client_paths(OWN),
            members,
            address: None,
            peer_timeout: LONG,
            fetch_wait: Duration::from_millis(500),
            connections_limit: 1,
        }
    }

    /// A client among a home and a third member at these addresses.
    fn cluster(&self, home: SocketAddr, third: SocketAddr) -> Arc<Cluster> {
        let members = [(OWN, own_address()), (HOME, home), (THIRD, third)];
        let members = members.map(|(host_id, address)| MemberAddress {
            host_id: host_id.to_owned(),
            address: address.to_string(),
        });
        let sharing = self.sharing(MembershipSource::Fixed(members.to_vec()));
        let membership = Membership::new(&sharing.members, OWN).unwrap();
        let trust = ClientTrust::load(&sharing.client_paths).unwrap();
        let runtime = self.runtime.handle().clone();
        Cluster::start("test", membership, &sharing, 0, trust, runtime).unwrap()
    }
}

/// Address at which nobody asks this host.
fn own_address() -> SocketAddr {
    "127.0.0.1:1".parse().unwrap()
}

/// Hash of a block whose home is this host.
fn hash_at(cluster: &Cluster, host_id: &str) -> Hash {
    let membership = cluster.membership();
    let node = membership.of_host(host_id).unwrap().node;
    let hashes = (0_u64..).map(|n| Hash::from(blake3::hash(&n.to_le_bytes())));
    let mut at_host = hashes.filter(|hash| membership.home(hash) == Some(node));
    at_host.next().unwrap()
}

fn find(cluster: &impl ClusterMemory, hash: &Hash) -> Option<Vec<u8>> {
    let block = cluster.find(hash, Instant::now() + LONG);
    block.map(|block| block.to_vec())
}

fn peer(peers: Vec<PeerStatus>, host_id: &str) -> PeerStatus {
    let mut peers = peers.into_iter();
    peers.find(|peer| peer.host_id == host_id).unwrap()
}

#[test]
fn wrong_short_and_endless_answers_cost_one_request_each() {
    let deployment = Deployment::new();
    for manner in Manner::wrong_answers() {
        let home = deployment.hostile(HOME, manner);
        let cluster = deployment.cluster(home.address, home.address);
        let hash = hash_at(&cluster, HOME);
        for _ in 0..3 {
            assert_eq!(find(&*cluster, &hash), None, "{manner:?}");
        }
        assert_eq!(home.requests(), 1, "{manner:?}");
        let peer = peer(cluster.peers(), HOME);
        assert!(!peer.is_asked && peer.fault.is_some(), "{manner:?}");
        assert_eq!(peer.wrong_count + peer.failures_count, 1, "{manner:?}");
        let is_wrong = matches!(
            manner,
            Manner::OtherBytes | Manner::FewBytes | Manner::Endless
        );
        assert!(!is_wrong || peer.wrong_count == 1, "{manner:?}");
    }
}

#[test]
fn loops_of_redirects_end_after_two_requests_and_leave_the_members_never() {
    let deployment = Deployment::new();
    let cases = [
        (Manner::Redirect(HOME), 1, 0),
        (Manner::Redirect(THIRD), 1, 1),
        (Manner::Redirect(OWN), 1, 0),
        (Manner::Redirect("elsewhere.example"), 1, 0),
    ];
    for (manner, of_home, of_third) in cases {
        let home = deployment.hostile(HOME, manner);
        let third = deployment.hostile(THIRD, Manner::Redirect(HOME));
        let cluster = deployment.cluster(home.address, third.address);
        assert_eq!(find(&*cluster, &hash_at(&cluster, HOME)), None);
        assert_eq!(
            (home.requests(), third.requests()),
            (of_home, of_third),
            "{manner:?}"
        );
    }
}

#[test]
fn another_hosts_certificate_is_not_accepted() {
    let deployment = Deployment::new();
    let third = deployment.hostile(THIRD, Manner::OtherBytes);
    let cluster = deployment.cluster(third.address, third.address);
    assert_eq!(find(&*cluster, &hash_at(&cluster, HOME)), None);
    assert_eq!(third.requests(), 0);
    let peer = peer(cluster.peers(), HOME);
    assert!(!peer.is_asked && peer.failures_count == 1, "{peer:?}");
}

#[test]
fn a_home_without_room_names_itself_as_holder_to_others() {
    let deployment = Deployment::new();
    let nobody = gleaner_harness::unused_address();
    let cluster = deployment.cluster(nobody, nobody);
    let bytes = b"a block".to_vec();
    let block = Arc::new(bytes);
    let numbers = (0_u64..).map(|n| Hash::from(blake3::hash(&n.to_le_bytes())));
    let mut own = numbers.filter(|hash| cluster.is_home(hash));
    let hash = own.next().unwrap();
    // This host has no room for others' blocks, so its directory names its local memory.
    cluster.offer(&hash, &block);
    gleaner_harness::wait_for("the entry", || {
        cluster.counters().directory_entries_count == 1
    });
    assert_eq!(cluster.counters().hold.no_room_count, 1);
    assert_eq!(find(&*cluster, &hash), None);
}
