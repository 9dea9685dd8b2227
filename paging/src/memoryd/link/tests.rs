//! Links with recruiters made by the tests.

use super::*;
use crate::core::{CoreMessage, Links};
use futures_util::{SinkExt, StreamExt};
use gleaner_paging::store::{Options, Store};
use gleaner_schemas::lending::{
    Announcement, Answer, GrantRequest, HostMessage, HostQuota, Lease, Outcome, RecruiterMessage,
    Refusal, RefusalKind, Request, RequestKind, Revocations, SLAB_BYTES, VERSION,
};
use gleaner_trust::{Authority, ClientPaths, Role, ServerPaths, ServerTrust};
use std::path::Path;
use std::time::Instant;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{
    ErrorResponse, Request as Asking, Response,
};
use tokio_tungstenite::{WebSocketStream, accept_async, accept_hdr_async};

const HOST_ID: &str = "0123456789abcdef0123456789abcdef";
/// Timeout of the tests; long, since machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(60);

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

async fn accept(listener: &TcpListener) -> WebSocketStream<TcpStream> {
    let accepted = tokio::time::timeout(PATIENCE, listener.accept())
        .await
        .expect("nobody came");
    accept_async(accepted.unwrap().0).await.unwrap()
}

fn settings(urls: &[&str], announce_every: Duration) -> Settings {
    let nowhere = || "/nowhere".into();
    Settings {
        urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        host_id: Some(HOST_ID.to_owned()),
        certificates: ClientPaths {
            certificate: nowhere(),
            key: nowhere(),
            authority: nowhere(),
        },
        announce_every,
        pages: None,
        pages_socket: None,
    }
}

fn entrance(settings: &Settings, state: &Path, links: &Links) -> Arc<Entrance> {
    let options = Options {
        wants_huge: false,
        wants_locked: false,
    };
    let store = Arc::new(Store::new(SLAB_BYTES, 1, options).unwrap());
    let certificates = &settings.certificates;
    Arc::new(Entrance::open(certificates, state, store, links.inbox()))
}

/// The core's side, simulated by the test.
struct Core {
    links: Links,
    thread: Option<JoinHandle<()>>,
}

impl Core {
    fn start(settings: &Settings) -> Self {
        Self::start_with(settings, |links| {
            entrance(settings, Path::new("/nowhere"), links)
        })
    }

    fn start_with(settings: &Settings, entrance: impl FnOnce(&Links) -> Arc<Entrance>) -> Self {
        let (links, ends) = Links::new(&settings.urls).unwrap();
        let entrance = entrance(&links);
        let thread = Some(start(settings, ends, &entrance).unwrap());
        Self { links, thread }
    }

    fn told(&self) -> CoreMessage {
        let begin = Instant::now();
        loop {
            if let Some(told) = self.waiting() {
                return told;
            }
            assert!(begin.elapsed() < PATIENCE, "nothing was told");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn waiting(&self) -> Option<CoreMessage> {
        // Skips reports about revocation lists, which these tests do not check.
        loop {
            match self.links.take_message()? {
                CoreMessage::Revocations { .. } => {}
                told => return Some(told),
            }
        }
    }

    #[track_caller]
    fn is_up(&self, expected: bool) {
        match self.told() {
            CoreMessage::Linked { is_up, .. } => assert_eq!(is_up, expected),
            other => panic!("{other:?}"),
        }
    }

    /// Waits for the next request; returns its link and its id.
    fn request(&self) -> (usize, u64) {
        loop {
            match self.told() {
                CoreMessage::Request { link, request } => return (link, request.request_id),
                CoreMessage::Linked { .. } => (),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Ends the core and the links.
    fn end(self) {
        drop(self.links);
        self.thread.unwrap().join().unwrap();
    }
}

fn announcement(quota_bytes: u64) -> Announcement {
    Announcement {
        version: VERSION,
        quota: HostQuota {
            quota_bytes,
            ..HostQuota::default()
        },
        ..Announcement::default()
    }
}

/// Returns the next message that is no ping.
async fn next<S>(socket: &mut WebSocketStream<S>) -> Option<HostMessage>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        let message = tokio::time::timeout(PATIENCE, socket.next())
            .await
            .expect("no message");
        match message?.ok()? {
            Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
            Message::Close(_) => return None,
            _ => (),
        }
    }
}

#[track_caller]
fn quota_of(message: Option<HostMessage>) -> u64 {
    match message {
        Some(HostMessage::Announcement(told)) => told.quota.quota_bytes,
        other => panic!("no announcement: {other:?}"),
    }
}

async fn ask<S>(socket: &mut WebSocketStream<S>, request_id: u64)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let asked = RequestKind::Grant(GrantRequest {
        client: "c".to_owned(),
        key: "k".to_owned(),
        bytes: 1,
        term_ms: 1,
    });
    let request = RecruiterMessage::Request(Request { request_id, asked });
    let text = serde_json::to_string(&request).unwrap();
    socket.send(Message::Text(text.into())).await.unwrap();
}

fn answer(request_id: u64) -> Answer {
    Answer {
        request_id,
        outcome: Outcome::Granted {
            lease: Lease::default(),
        },
        unleased_bytes: 7,
        requests_per_s: 0.0,
    }
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn what_the_core_says_is_told_at_once() {
    let (listener, url) = listen().await;
    let core = Core::start(&settings(&[&url], HOUR));
    core.links.announce(announcement(1));
    let mut socket = accept(&listener).await;
    assert_eq!(quota_of(next(&mut socket).await), 1);
    core.is_up(true);
    let begin = Instant::now();
    core.links.announce(announcement(2));
    assert_eq!(quota_of(next(&mut socket).await), 2);
    assert!(begin.elapsed() < PATIENCE);
    for quota_bytes in 3..=5000 {
        core.links.announce(announcement(quota_bytes));
    }
    let mut told = Vec::new();
    while told.last() != Some(&5000) {
        told.push(quota_of(next(&mut socket).await));
    }
    assert!(
        told.is_sorted() && told.len() < 4998,
        "of many changes the last: {}",
        told.len()
    );
}

#[tokio::test]
async fn nothing_is_announced_before_the_core_has_said_anything() {
    let (listener, url) = listen().await;
    let core = Core::start(&settings(&[&url], HOUR));
    let mut socket = accept(&listener).await;
    core.is_up(true);
    ask(&mut socket, 4).await;
    let (link, request_id) = core.request();
    core.links.answer(link, answer(request_id));
    assert!(matches!(
        next(&mut socket).await,
        Some(HostMessage::Answer(_))
    ));
    core.links.announce(announcement(6));
    assert_eq!(quota_of(next(&mut socket).await), 6);
}

#[tokio::test]
async fn requests_are_passed_on_and_answers_find_their_way() {
    let (first, first_url) = listen().await;
    let (second, second_url) = listen().await;
    let core = Core::start(&settings(&[&first_url, &second_url], HOUR));
    let (mut one, mut two) = (accept(&first).await, accept(&second).await);
    ask(&mut one, 17).await;
    assert_eq!(core.request(), (0, 17));
    ask(&mut two, 17).await;
    assert_eq!(core.request(), (1, 17));
    core.links.answer(1, answer(17));
    let Some(HostMessage::Answer(got)) = next(&mut two).await else {
        panic!("no answer")
    };
    assert_eq!((got.request_id, got.unleased_bytes), (17, 7));

    // The connection of the other request ends before its answer: the next connection has a request of the
    // same number, and must not get that answer.
    drop(one);
    let mut one = accept(&first).await;
    ask(&mut one, 17).await;
    assert_eq!(core.request(), (0, 17));
    core.links.answer(0, answer(17));
    let second_answer = Answer {
        unleased_bytes: 8,
        ..answer(17)
    };
    core.links.answer(0, second_answer);
    let Some(HostMessage::Answer(got)) = next(&mut one).await else {
        panic!("no answer")
    };
    assert_eq!(got.unleased_bytes, 8);
}

#[tokio::test]
async fn more_requests_than_may_wait_are_refused() {
    let (listener, url) = listen().await;
    let core = Core::start(&settings(&[&url], HOUR));
    let mut socket = accept(&listener).await;
    let last = REQUESTS_AT_ONCE as u64;
    for request_id in 0..=last {
        ask(&mut socket, request_id).await;
    }
    let Some(HostMessage::Answer(got)) = next(&mut socket).await else {
        panic!("no answer")
    };
    assert_eq!(got.request_id, last);
    assert!(
        matches!(&got.outcome, Outcome::Refused(refusal) if refusal.retry_in_ms.is_some()),
        "{got:?}"
    );
    for request_id in 0..last {
        assert_eq!(core.request(), (0, request_id));
        core.links.answer(0, answer(request_id));
    }
    for _ in 0..last {
        assert!(matches!(
            next(&mut socket).await,
            Some(HostMessage::Answer(_))
        ));
    }
    ask(&mut socket, 99).await;
    assert_eq!(core.request(), (0, 99));
}

#[tokio::test]
async fn what_ends_or_falls_silent_is_connected_to_anew() {
    let (listener, url) = listen().await;
    let core = Core::start(&settings(&[&url], Duration::from_millis(300)));
    core.links.announce(announcement(1));
    let mut socket = accept(&listener).await;
    core.is_up(true);
    assert_eq!(quota_of(next(&mut socket).await), 1);
    // The recruiter closes the connection.
    drop(socket);
    core.is_up(false);
    let socket = accept(&listener).await;
    core.is_up(true);
    // The recruiter is silent: it does not read, so that pings go unanswered.
    core.is_up(false);
    let mut again = accept(&listener).await;
    assert_eq!(quota_of(next(&mut again).await), 1);
    drop(socket);
    // The recruiter sends invalid JSON.
    again.send(Message::Text("{".into())).await.unwrap();
    let mut again = accept(&listener).await;
    // The link skips a message of a later version.
    let later = "{\"type\":\"fanfare\"}";
    again.send(Message::Text(later.into())).await.unwrap();
    ask(&mut again, 3).await;
    assert_eq!(core.request(), (0, 3));
    // The recruiter refuses the link.
    let refused = RecruiterMessage::Refused(Refusal {
        kind: RefusalKind::Ending,
        detail: "the recruiter ends".to_owned(),
        retry_in_ms: None,
    });
    let text = serde_json::to_string(&refused).unwrap();
    again.send(Message::Text(text.into())).await.unwrap();
    accept(&listener).await;
}

#[tokio::test]
async fn the_last_word_goes_out_before_the_end() {
    let (listener, url) = listen().await;
    let core = Core::start(&settings(&[&url], HOUR));
    core.links.announce(announcement(1));
    let mut socket = accept(&listener).await;
    assert_eq!(quota_of(next(&mut socket).await), 1);
    let end = std::thread::spawn(move || {
        core.links.announce(announcement(0));
        core.end();
    });
    assert_eq!(quota_of(next(&mut socket).await), 0);
    while next(&mut socket).await.is_some() {}
    drop(socket);
    end.join().unwrap();

    // Neither a recruiter that reads nothing nor a missing recruiter delays the end.
    let begin = Instant::now();
    let core = Core::start(&settings(&[&url], HOUR));
    let socket = accept(&listener).await;
    core.is_up(true);
    core.end();
    drop((socket, listener));
    Core::start(&settings(&[&url], HOUR)).end();
    assert!(begin.elapsed() < PATIENCE / 2);
}

#[test]
fn what_can_never_work_is_said_at_once() {
    let refused = |settings: Settings| {
        let (links, ends) = Links::new(&settings.urls).unwrap();
        let entrance = entrance(&settings, Path::new("/nowhere"), &links);
        start(&settings, ends, &entrance).unwrap_err().to_string()
    };
    assert!(refused(settings(&["http://192.0.2.1:1"], HOUR)).contains("use https://"));
    let nameless = Settings {
        host_id: None,
        ..settings(&["http://127.0.0.1:1"], HOUR)
    };
    assert!(refused(nameless).contains("host_id"));
}

/// Certificates of a deployment: an authority's, a recruiter's and a host's.
fn certificates(folder: &Path) -> (ServerPaths, ClientPaths, Authority) {
    let pki = folder.join("pki");
    let authority = Authority::init(&pki, "test", 30).unwrap();
    let names = vec!["127.0.0.1".to_owned()];
    let server = authority.issue(&Role::Recruiter { names }, 30).unwrap();
    server
        .write(&folder.join("server.crt"), &folder.join("server.key"))
        .unwrap();
    let paths = ClientPaths {
        certificate: folder.join("host.crt"),
        key: folder.join("host.key"),
        authority: pki.join("authority.crt"),
    };
    issue_host(&authority, &paths);
    let server = ServerPaths {
        certificate: folder.join("server.crt"),
        key: folder.join("server.key"),
        authority: pki.join("authority.crt"),
        revocation_list: None,
    };
    (server, paths, authority)
}

fn issue_host(authority: &Authority, paths: &ClientPaths) {
    let host_id = HOST_ID.to_owned();
    let issued = authority.issue(&Role::Host { host_id }, 30).unwrap();
    issued.write(&paths.certificate, &paths.key).unwrap();
}

#[tokio::test]
async fn through_tls_both_sides_are_who_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client, authority) = certificates(folder.path());
    // The link waits for the enrolment.
    for path in [&client.certificate, &client.key] {
        std::fs::remove_file(path).unwrap();
    }
    let server = ServerTrust::load(&server).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(server.config());
    let (listener, url) = listen().await;
    let url = url.replace("http://", "https://");

    let settings = Settings {
        certificates: client.clone(),
        ..settings(&[&url], HOUR)
    };
    let core = Core::start(&settings);
    core.links.announce(announcement(9));
    issue_host(&authority, &client);
    let mut shown = Vec::new();
    for _ in 0..2 {
        let (stream, _) = tokio::time::timeout(PATIENCE, listener.accept())
            .await
            .unwrap()
            .unwrap();
        let stream = acceptor.accept(stream).await.unwrap();
        shown.push(stream.get_ref().1.peer_certificates().unwrap()[0].clone());
        let mut path = String::new();
        #[allow(clippy::result_large_err)] // the library's type
        let look = |asking: &Asking, response: Response| -> Result<Response, ErrorResponse> {
            path = asking.uri().path().to_owned();
            Ok(response)
        };
        let mut socket = accept_hdr_async(stream, look).await.unwrap();
        assert_eq!(path, format!("/v1/hosts/{HOST_ID}/link"));
        assert_eq!(quota_of(next(&mut socket).await), 9);
        // After a renewal, the next connection shows the new certificate.
        issue_host(&authority, &client);
    }
    assert_ne!(shown[0], shown[1]);
    core.end();

    // The link does not talk to a recruiter whose name is not in its certificate.
    let core = Core::start(&Settings {
        urls: vec![url.replace("127.0.0.1", "localhost")],
        ..settings
    });
    let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
    let (stream, _) = accepted.unwrap().unwrap();
    assert!(acceptor.accept(stream).await.is_err());
    assert!(core.waiting().is_none());
}

/// A recruiter that uses TLS; its certificate is at the path `certificate`.
struct Secret {
    acceptor: tokio_rustls::TlsAcceptor,
    listener: TcpListener,
    url: String,
    certificate: std::path::PathBuf,
}

impl Secret {
    async fn start(folder: &Path, name: &str, authority: &Authority) -> Self {
        let file = |end: &str| folder.join(format!("{name}.{end}"));
        let names = vec!["127.0.0.1".to_owned()];
        let issued = authority.issue(&Role::Recruiter { names }, 30).unwrap();
        issued.write(&file("crt"), &file("key")).unwrap();
        let trust = ServerTrust::load(&ServerPaths {
            certificate: file("crt"),
            key: file("key"),
            authority: authority.certificate_path(),
            revocation_list: None,
        });
        let (listener, url) = listen().await;
        Self {
            acceptor: trust.unwrap().config().into(),
            listener,
            url: url.replace("http://", "https://"),
            certificate: file("crt"),
        }
    }

    async fn accept(
        &self,
    ) -> std::io::Result<WebSocketStream<tokio_rustls::server::TlsStream<TcpStream>>> {
        let accepted = tokio::time::timeout(PATIENCE, self.listener.accept()).await;
        let (stream, _) = accepted.expect("nobody came").unwrap();
        let stream = self.acceptor.accept(stream).await?;
        accept_async(stream).await.map_err(std::io::Error::other)
    }
}

#[tokio::test]
async fn lists_hold_whoever_brings_them_and_a_revoked_recruiter_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (_, client, authority) = certificates(folder.path());
    let good = Secret::start(folder.path(), "good", &authority).await;
    let bad = Secret::start(folder.path(), "bad", &authority).await;
    let settings = Settings {
        certificates: client,
        ..settings(&[&good.url, &bad.url], Duration::from_secs(30))
    };
    let state = folder.path().join("state");
    let mut kept = None;
    let core = Core::start_with(&settings, |links| {
        let entrance = entrance(&settings, &state, links);
        kept = Some(entrance.clone());
        entrance
    });
    let kept = kept.unwrap();
    let (mut one, two) = (good.accept().await.unwrap(), bad.accept().await.unwrap());
    let mut send = async |pem: String| {
        let text =
            serde_json::to_string(&RecruiterMessage::Revocations(Revocations { pem })).unwrap();
        one.send(Message::Text(text.into())).await.unwrap();
        // A rejected message does not end the link: later messages are handled in order.
        let asked = RequestKind::Release {
            client: None,
            lease_id: "k".to_owned(),
        };
        let request = RecruiterMessage::Request(Request {
            request_id: 1,
            asked,
        });
        let text = serde_json::to_string(&request).unwrap();
        one.send(Message::Text(text.into())).await.unwrap();
        assert_eq!(core.request(), (0, 1));
    };
    let older = std::fs::read_to_string(authority.revoked_path()).unwrap();
    let forged = Authority::init(&folder.path().join("forger"), "test", 30).unwrap();
    let forged = std::fs::read_to_string(forged.revoked_path()).unwrap();
    for wrong in [
        String::new(),
        forged,
        older.repeat(1 + (1 << 20) / older.len()),
    ] {
        send(wrong).await;
        assert!(kept.lists().is_empty());
    }
    let revoked = authority.revoke(bad.certificate.to_str().unwrap());
    assert_eq!(revoked.unwrap().len(), 1);
    let list = std::fs::read_to_string(authority.revoked_path()).unwrap();
    let text =
        serde_json::to_string(&RecruiterMessage::Revocations(Revocations { pem: list })).unwrap();
    one.send(Message::Text(text.into())).await.unwrap();
    let begin = Instant::now();
    loop {
        match core.told() {
            CoreMessage::Linked { link, is_up } if (link, is_up) == (1, false) => break,
            told => assert!(begin.elapsed() < PATIENCE, "{told:?}"),
        }
    }
    drop(two);
    assert!(bad.accept().await.is_err(), "it is not linked with again");
    // The other link stays up, and an older list changes nothing.
    ask(&mut one, 7).await;
    assert_eq!(core.request(), (0, 7));
    let held = kept.lists();
    assert_eq!(held.len(), 1);
    kept.receive(&older).unwrap();
    assert_eq!(kept.lists(), held);
    // Lists survive a restart, and are verified again.
    let (links, _ends) = Links::new(&[]).unwrap();
    let again = entrance(&settings, &state, &links);
    assert_eq!(again.lists(), held);
    assert!(matches!(
        links.take_message(),
        Some(CoreMessage::Revocations { held: Some(held), .. }) if held.certificates_count == 1
    ));
    core.end();
}
