//! Links with recruiters made by the tests.

mod announcements;
mod certificates;
mod connections;
mod requests;
mod revocations;

use super::*;
use crate::core::{CoreMessage, Links};
use futures_util::{SinkExt, StreamExt};
use gleaner_paging::store::{Options, Store};
use gleaner_schemas::lending::{
    Announcement, Answer, GrantRequest, HostMessage, HostQuota, Lease, Outcome, RecruiterMessage,
    Request, RequestKind, SLAB_BYTES, VERSION,
};
use std::path::Path;
use std::time::Instant;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};

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
