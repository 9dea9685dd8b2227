//! Leases by the link: the test is the recruiter, and asks twice as one does that has not got its answer.

use crate::host::{Host, MIB, PATIENCE, wait_for};
use gleaner_schemas::lending::{
    Announcement, Asked, FromHost, Lease, Outcome, RefusalKind, Request, ToHost,
};
use gleaner_schemas::live::OwnerState;
use std::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::{Message, WebSocket, accept};

const HOST_ID: &str = "0123456789abcdef0123456789abcdef";
const CAP: u64 = 128 * MIB;
const BYTES: u64 = 8 * MIB;

struct Recruiter {
    listener: TcpListener,
    url: String,
}

impl Recruiter {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        Self { listener, url }
    }

    /// The memory server's next connection.
    #[track_caller]
    fn link(&self) -> Link {
        let (stream, _) = wait_for("the memory server", || self.listener.accept().ok());
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Link {
            socket: accept(stream).unwrap(),
            last_id: 0,
        }
    }
}

struct Link {
    socket: WebSocket<TcpStream>,
    last_id: u64,
}

impl Link {
    fn send(&mut self, asked: Asked) {
        self.last_id += 1;
        let request_id = self.last_id;
        let request = ToHost::Request(Request { request_id, asked });
        let text = serde_json::to_string(&request).unwrap();
        self.socket.send(Message::Text(text.into())).unwrap();
    }

    #[track_caller]
    fn next(&mut self) -> FromHost {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// What comes of it.
    #[track_caller]
    fn ask(&mut self, asked: Asked) -> Outcome {
        self.send(asked);
        loop {
            if let FromHost::Answer(answer) = self.next() {
                assert_eq!(answer.request_id, self.last_id);
                return answer.outcome;
            }
        }
    }

    /// The lease that comes of it.
    #[track_caller]
    fn lease(&mut self, asked: Asked) -> Lease {
        match self.ask(asked) {
            Outcome::Granted { lease } => lease,
            other => panic!("{other:?}"),
        }
    }

    /// The next announcement that is as expected.
    #[track_caller]
    fn announced(&mut self, is_it: impl Fn(&Announcement) -> bool) -> Announcement {
        loop {
            match self.next() {
                FromHost::Announcement(told) if is_it(&told) => return *told,
                _ => (),
            }
        }
    }
}

fn grant(client: &str, key: &str, bytes: u64) -> Asked {
    Asked::Grant {
        client: client.to_owned(),
        key: key.to_owned(),
        bytes,
        term_ms: 3_600_000,
    }
}

#[test]
fn asked_twice_by_one_key_it_grants_once() {
    let host = Host::new();
    let (one, other) = (Recruiter::new(), Recruiter::new());
    host.configure(&format!(
        "host_id = \"{HOST_ID}\"\nrecruiters = [\"{}\", \"{}\"]\ncap = \"{CAP}B\"\nrise_after = \"0s\"\npressure_pause = \"0s\"",
        one.url, other.url
    ));
    let daemon = host.daemon_with(&[]);
    let mut agent = host.agent();
    agent.sample();
    agent.owner(OwnerState::Idle, None);
    agent.stays();
    let ids = || -> Vec<String> {
        let leases = daemon.status().leases;
        leases.into_iter().map(|lease| lease.lease_id).collect()
    };

    // The connection is gone before the answer is there.
    let (mut link, mut other_link) = (one.link(), other.link());
    link.announced(|told| told.quota.free_bytes == CAP);
    link.send(grant("a", "k", BYTES));
    drop(link);
    wait_for("the lease", || (ids().len() == 1).then_some(()));
    let first = ids().remove(0);
    let mut link = one.link();
    for _ in 0..2 {
        assert_eq!(link.lease(grant("a", "k", BYTES)).lease_id, first);
        assert_eq!(other_link.lease(grant("a", "k", BYTES)).lease_id, first);
    }
    // As many whole slabs.
    assert_eq!(link.lease(grant("a", "k", BYTES - 1)).lease_id, first);
    assert_eq!(ids(), std::slice::from_ref(&first));
    assert_eq!(daemon.status().quota.lent_bytes, BYTES);

    // The key means a lease of that size, and that client's.
    match link.ask(grant("a", "k", 2 * BYTES)) {
        Outcome::Refused(refusal) => assert_eq!(refusal.kind, RefusalKind::Malformed),
        more => panic!("{more:?}"),
    }
    assert_eq!(ids(), std::slice::from_ref(&first));
    let theirs = link.lease(grant("b", "k", BYTES)).lease_id;
    let second = link.lease(grant("a", "l", BYTES)).lease_id;
    assert!(theirs != first && second != first && theirs != second);
    assert_eq!(ids().len(), 3);

    // What has ended is granted anew.
    let release = Asked::Release {
        client: Some("a".to_owned()),
        lease_id: first.clone(),
    };
    let released = Outcome::Released {
        lease_id: first.clone(),
    };
    for _ in 0..2 {
        assert_eq!(link.ask(release.clone()), released);
    }
    let anew = link.lease(grant("a", "k", 2 * BYTES));
    assert!(anew.lease_id != first && anew.granted_bytes == 2 * BYTES);
    assert_eq!(ids().len(), 3);
    let told = other_link.announced(|told| told.leases.iter().any(|l| l.lease_id == anew.lease_id));
    assert_eq!(told.leases.len(), 3);
}
