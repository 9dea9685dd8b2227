//! The link, with recruiters of the test's own.

use super::*;
use futures_util::{SinkExt, StreamExt};
use gleaner_schemas::lending::{
    Asked, FromHost, HostQuota, Lease, Outcome, Refusal, RefusalKind, Request, ToHost,
};
use gleaner_trust::{Authority, ClientPaths, Role, ServerPaths, ServerTrust};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{
    ErrorResponse, Request as Asking, Response,
};
use tokio_tungstenite::{WebSocketStream, accept_async, accept_hdr_async};

const HOST_ID: &str = "0123456789abcdef0123456789abcdef";
/// Machines that test are busy.
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
    Settings {
        host_id: HOST_ID.to_owned(),
        recruiters: urls
            .iter()
            .map(|url| Address::parse(url).unwrap())
            .collect(),
        trust: None,
        announce_every,
    }
}

fn start(settings: Settings) -> (Links, Receiver<Event>) {
    let (sender, events) = channel();
    let links = Links::start(settings, Box::new(move |event| sender.send(event).is_ok()));
    (links.unwrap(), events)
}

fn announcement(quota_bytes: u64) -> Announcement {
    Announcement {
        quota: HostQuota {
            quota_bytes,
            ..HostQuota::default()
        },
        ..Announcement::default()
    }
}

/// The next message that is no ping.
async fn next<S>(socket: &mut WebSocketStream<S>) -> Option<FromHost>
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
fn quota_of(message: Option<FromHost>) -> u64 {
    match message {
        Some(FromHost::Announcement(told)) => told.quota.quota_bytes,
        other => panic!("no announcement: {other:?}"),
    }
}

async fn ask(socket: &mut WebSocketStream<TcpStream>, request_id: u64) {
    let asked = Asked::Grant {
        client: "c".to_owned(),
        key: "k".to_owned(),
        bytes: 1,
        term_ms: 1,
    };
    let request = ToHost::Request(Request { request_id, asked });
    let text = serde_json::to_string(&request).unwrap();
    socket.send(Message::Text(text.into())).await.unwrap();
}

fn answer(request_id: u64) -> Answer {
    Answer {
        request_id,
        outcome: Outcome::Granted {
            lease: Lease::default(),
        },
        free_bytes: 7,
        requests_per_s: 0.0,
    }
}

fn next_request(events: &Receiver<Event>) -> (usize, u64, String) {
    loop {
        match events.recv_timeout(PATIENCE).unwrap() {
            Event::Request {
                link,
                request,
                fresh_id,
            } => return (link, request.request_id, fresh_id),
            Event::Linked(_) => (),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn changes_are_told_at_once_and_else_at_the_interval() {
    let (listener, url) = listen().await;
    let (links, events) = start(settings(&[&url], Duration::from_secs(3600)));
    links.announce(announcement(1));
    let mut socket = accept(&listener).await;
    assert_eq!(quota_of(next(&mut socket).await), 1);
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Event::Linked(true));
    assert_eq!(links.linked(), std::slice::from_ref(&url));
    links.announce(announcement(2));
    let begin = Instant::now();
    assert_eq!(quota_of(next(&mut socket).await), 2);
    assert!(begin.elapsed() < PATIENCE);

    let (often, url) = listen().await;
    let (links, _events) = start(settings(&[&url], Duration::from_millis(200)));
    links.announce(announcement(3));
    let mut socket = accept(&often).await;
    for _ in 0..4 {
        assert_eq!(quota_of(next(&mut socket).await), 3);
    }
}

#[tokio::test]
async fn of_many_changes_the_last_is_told() {
    let (listener, url) = listen().await;
    let (links, _events) = start(settings(&[&url], Duration::from_secs(3600)));
    links.announce(announcement(1));
    let mut socket = accept(&listener).await;
    assert_eq!(quota_of(next(&mut socket).await), 1);
    for quota_bytes in 2..=5000 {
        links.announce(announcement(quota_bytes));
    }
    let mut told = Vec::new();
    while told.last() != Some(&5000) {
        told.push(quota_of(next(&mut socket).await));
    }
    assert!(told.is_sorted() && told.len() < 5000, "{}", told.len());
}

#[tokio::test]
async fn requests_are_passed_on_and_answers_find_their_way() {
    let (first, first_url) = listen().await;
    let (second, second_url) = listen().await;
    let (links, events) = start(settings(
        &[&first_url, &second_url],
        Duration::from_secs(3600),
    ));
    let (mut one, mut two) = (accept(&first).await, accept(&second).await);
    ask(&mut one, 17).await;
    let from_one = next_request(&events);
    ask(&mut two, 17).await;
    let from_two = next_request(&events);
    assert_eq!((from_one.1, from_two.1), (17, 17));
    assert_ne!(from_one.0, from_two.0);
    assert!(
        from_one.2 != from_two.2 && from_one.2.len() == 32,
        "{}",
        from_one.2
    );
    links.answer(from_two.0, answer(17));
    let Some(FromHost::Answer(got)) = next(&mut two).await else {
        panic!("no answer")
    };
    assert_eq!((got.request_id, got.free_bytes), (17, 7));

    // The connection of the other is gone before its answer: the next one does not get it.
    drop(one);
    let mut one = accept(&first).await;
    ask(&mut one, 17).await;
    let again = next_request(&events);
    links.answer(from_one.0, answer(17));
    links.answer(
        again.0,
        Answer {
            free_bytes: 8,
            ..answer(17)
        },
    );
    let Some(FromHost::Answer(got)) = next(&mut one).await else {
        panic!("no answer")
    };
    assert_eq!(got.free_bytes, 8);
}

#[tokio::test]
async fn a_core_that_takes_no_more_costs_a_refusal() {
    let (listener, url) = listen().await;
    let deliver: Deliver = Box::new(|event| !matches!(event, Event::Request { .. }));
    let _links = Links::start(settings(&[&url], Duration::from_secs(3600)), deliver).unwrap();
    let mut socket = accept(&listener).await;
    ask(&mut socket, 5).await;
    let Some(FromHost::Answer(got)) = next(&mut socket).await else {
        panic!("no answer")
    };
    assert_eq!(got.request_id, 5);
    assert!(
        matches!(&got.outcome, Outcome::Refused(refusal) if refusal.retry_in_ms.is_some()),
        "{got:?}"
    );
}

#[tokio::test]
async fn more_requests_than_may_wait_are_refused() {
    let (listener, url) = listen().await;
    let (_links, _events) = start(settings(&[&url], Duration::from_secs(3600)));
    let mut socket = accept(&listener).await;
    for request_id in 0..=REQUESTS_AT_ONCE as u64 {
        ask(&mut socket, request_id).await;
    }
    let Some(FromHost::Answer(got)) = next(&mut socket).await else {
        panic!("no answer")
    };
    assert_eq!(got.request_id, REQUESTS_AT_ONCE as u64);
}

#[tokio::test]
async fn what_ends_or_falls_silent_is_connected_to_anew() {
    let (listener, url) = listen().await;
    let every = Duration::from_millis(300);
    let (links, events) = start(settings(&[&url], every));
    links.announce(announcement(1));
    let mut socket = accept(&listener).await;
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Event::Linked(true));
    assert_eq!(quota_of(next(&mut socket).await), 1);
    // Ended.
    drop(socket);
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Event::Linked(false));
    let socket = accept(&listener).await;
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Event::Linked(true));
    // Silent: it is not read from, so that pings go unanswered.
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Event::Linked(false));
    let mut again = accept(&listener).await;
    assert_eq!(quota_of(next(&mut again).await), 1);
    drop(socket);
    // Mad.
    again.send(Message::Text("{".into())).await.unwrap();
    let mut again = accept(&listener).await;
    // Of a later version: passed over.
    again
        .send(Message::Text("{\"type\":\"fanfare\"}".into()))
        .await
        .unwrap();
    ask(&mut again, 3).await;
    assert_eq!(next_request(&events).1, 3);
    // Refused.
    let refused = ToHost::Refused(Refusal {
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
    let (links, _events) = start(settings(&[&url], Duration::from_secs(3600)));
    links.announce(announcement(1));
    let mut socket = accept(&listener).await;
    assert_eq!(quota_of(next(&mut socket).await), 1);
    let end = std::thread::spawn(move || {
        links.announce(announcement(0));
        drop(links);
    });
    assert_eq!(quota_of(next(&mut socket).await), 0);
    while next(&mut socket).await.is_some() {}
    drop(socket);
    end.join().unwrap();

    // Nobody there: nothing is waited for.
    drop(listener);
    let (links, _events) = start(settings(&[&url], Duration::from_secs(3600)));
    let begin = Instant::now();
    drop(links);
    assert!(begin.elapsed() < PATIENCE / 2);
}

/// Certificates of a deployment: an authority, a recruiter's and a host's.
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
        revoked: None,
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
    let server = ServerTrust::load(&server).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(server.config());
    let (listener, url) = listen().await;
    let url = url.replace("http://", "https://");

    let refused = Links::start(settings(&[&url], PATIENCE), Box::new(|_| true));
    assert!(matches!(refused.err(), Some(LinkError::Certificate(_))));

    let trust = ClientTrust::load(&client).unwrap();
    assert_eq!(host_id(Some(&trust)).as_deref(), Some(HOST_ID));
    let (links, events) = start(Settings {
        trust: Some(trust),
        ..settings(&[&url], Duration::from_secs(3600))
    });
    links.announce(announcement(9));
    let mut shown = Vec::new();
    for _ in 0..2 {
        let (stream, _) = tokio::time::timeout(PATIENCE, listener.accept())
            .await
            .unwrap()
            .unwrap();
        let stream = acceptor.accept(stream).await.unwrap();
        shown.push(stream.get_ref().1.peer_certificates().unwrap()[0].clone());
        let mut path = String::new();
        #[allow(clippy::result_large_err)] // the library's
        let look = |asking: &Asking, response: Response| -> Result<Response, ErrorResponse> {
            path = asking.uri().path().to_owned();
            Ok(response)
        };
        let mut socket = accept_hdr_async(stream, look).await.unwrap();
        assert_eq!(path, format!("/v1/hosts/{HOST_ID}/link"));
        assert_eq!(quota_of(next(&mut socket).await), 9);
        // Renewed: the next connection shows the new one.
        issue_host(&authority, &client);
    }
    assert_ne!(shown[0], shown[1]);
    drop(links);
    let told: Vec<Event> = events.iter().collect();
    assert_eq!(told.first(), Some(&Event::Linked(true)));

    // Under a name that its certificate does not have it is not spoken to.
    let url = url.replace("127.0.0.1", "localhost");
    let (_links, events) = start(Settings {
        trust: Some(ClientTrust::load(&client).unwrap()),
        ..settings(&[&url], Duration::from_secs(3600))
    });
    let (stream, _) = tokio::time::timeout(PATIENCE, listener.accept())
        .await
        .unwrap()
        .unwrap();
    assert!(acceptor.accept(stream).await.is_err());
    assert!(events.try_recv().is_err());
}
