//! Link with one recruiter: connects, and connects again after failures.

use super::RecruiterLinks;
use super::fault::LinkFault;
use futures_util::{SinkExt, StreamExt};
use gleaner_paging::websocket::{self, Bounds, RecruiterConnection, Socket};
use gleaner_schemas::commons::{
    CommonsMessage, Hello, MOST_RECRUITER_MESSAGE_BYTES, MemberMessage, SILENCE_MS, VERSION,
};
use gleaner_trust::{Address, Backoff};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{interval, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

/// Maximum lengths of the link's messages.
const BOUNDS: Bounds = Bounds {
    received_bytes: MOST_RECRUITER_MESSAGE_BYTES,
    waiting_bytes: 1 << 20,
};
/// Interval of checks whether this host's state has changed.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Interval of states and pings without a change.
const HELLO_EVERY: Duration = Duration::from_secs(10);
/// Time without messages after which a recruiter counts as gone.
const SILENCE: Duration = Duration::from_millis(SILENCE_MS.unsigned_abs());
/// Timeout of sending a message.
const LONGEST_SEND: Duration = Duration::from_secs(5);
/// Time after which a failure of a link counts as a first failure.
const GOOD: Duration = Duration::from_secs(5);
/// Maximum wait after the first failure, and after many.
const WAITS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];
/// Maximum wait that a recruiter may request.
const LONGEST_ASKED_MS: i64 = 60_000;
/// Maximum length of a recruiter's text in the log.
const MOST_SAID_CHARS: usize = 300;

/// Link with the recruiter of this number.
pub(super) struct RecruiterLink {
    pub(super) links: Arc<RecruiterLinks>,
    pub(super) number: usize,
    pub(super) address: Address,
}

/// An open connection.
struct OpenLink {
    socket: Socket,
    /// Address that this host has on the connection.
    here: IpAddr,
    heard: Instant,
    said: Instant,
    /// Frames in the last state that was sent.
    frames: u32,
}

impl RecruiterLink {
    /// Keeps the link until the program ends.
    pub(super) async fn keep(self) {
        let mut backoff = Backoff::new(WAITS[0], WAITS[1]);
        loop {
            let begin = Instant::now();
            let fault = self.connect_and_talk().await;
            if begin.elapsed() >= GOOD {
                backoff.reset();
            }
            let asked_ms = match &fault {
                LinkFault::Refused(refusal) => refusal.retry_in_ms,
                _ => None,
            };
            let asked_ms = asked_ms.map(|ms| ms.clamp(0, LONGEST_ASKED_MS).unsigned_abs());
            self.links
                .unlinked(self.number, one_line(&fault.to_string()));
            sleep(backoff.next(asked_ms.map(Duration::from_millis))).await;
        }
    }

    async fn connect_and_talk(&self) -> LinkFault {
        let mut open = match self.connect().await {
            Ok(open) => open,
            Err(fault) => return fault,
        };
        self.links.linked(self.number);
        match self.talk(&mut open).await {
            Ok(()) => LinkFault::Ended,
            Err(fault) => fault,
        }
    }

    async fn connect(&self) -> Result<OpenLink, LinkFault> {
        let links = &self.links;
        let mut path = format!("/v1/commons/{}/link", links.settings.commons);
        let tls = if self.address.is_secret() {
            Some(links.trust.credentials().config())
        } else {
            path.push_str(&format!("?host_id={}", links.settings.host_id));
            None
        };
        let connected = websocket::connect(&self.address, &path, tls, BOUNDS).await?;
        let RecruiterConnection { socket, here, .. } = connected;
        let now = Instant::now();
        Ok(OpenLink {
            socket,
            here,
            heard: now,
            said: now,
            frames: 0,
        })
    }

    async fn talk(&self, open: &mut OpenLink) -> Result<(), LinkFault> {
        let memory = self.links.exchange.memory();
        let mut ended = memory.posts().ended_epochs();
        let mut look = interval(LOOK_EVERY);
        self.hello(open).await?;
        loop {
            tokio::select! {
                heard = open.socket.next() => {
                    open.heard = Instant::now();
                    match heard {
                        None | Some(Ok(Message::Close(_))) => return Ok(()),
                        Some(Ok(Message::Text(text))) => self.hear(open, &text).await?,
                        Some(Ok(_)) => {} // the library answers pings
                        Some(Err(error)) => return Err(error.into()),
                    }
                }
                changed = ended.changed() => {
                    let epoch = *ended.borrow_and_update();
                    if changed.is_ok() {
                        open.say(&MemberMessage::Ended { epoch }).await?;
                    }
                }
                _ = look.tick() => {
                    if open.heard.elapsed() >= SILENCE {
                        return Err(LinkFault::Silent(SILENCE));
                    }
                    if open.said.elapsed() >= HELLO_EVERY {
                        open.send(Message::Ping(Vec::new().into())).await?;
                        self.hello(open).await?;
                    } else if open.frames != memory.announced_frames() {
                        self.hello(open).await?;
                    }
                }
            }
        }
    }

    async fn hear(&self, open: &mut OpenLink, text: &str) -> Result<(), LinkFault> {
        let exchange = &self.links.exchange;
        match serde_json::from_str(text).map_err(LinkFault::Message)? {
            CommonsMessage::ReportPlease(request) => {
                match exchange.memory().report(request.epoch, request.initiator) {
                    Some(summary) => open.say(&MemberMessage::Summary(summary)).await,
                    None => self.hello(open).await,
                }
            }
            CommonsMessage::Weights(weights) => {
                exchange.accept(&weights);
                Ok(())
            }
            CommonsMessage::Members(change) => {
                self.links.members(self.number, change);
                Ok(())
            }
            CommonsMessage::Refused(refusal) => Err(LinkFault::Refused(refusal)),
            CommonsMessage::Other => Ok(()), // a message of a later version
        }
    }

    async fn hello(&self, open: &mut OpenLink) -> Result<(), LinkFault> {
        let links = &self.links;
        let memory = links.exchange.memory();
        let (epoch, initiator) = memory.reported_epoch();
        let here = || SocketAddr::new(open.here, links.settings.port).to_string();
        let hello = Hello {
            version: VERSION,
            generation: memory.identity().1,
            address: links.settings.address.clone().unwrap_or_else(here),
            frames: memory.announced_frames(),
            epoch,
            initiator,
        };
        open.frames = hello.frames;
        open.said = Instant::now();
        open.say(&MemberMessage::Hello(hello)).await
    }
}

impl OpenLink {
    async fn say(&mut self, message: &MemberMessage) -> Result<(), LinkFault> {
        let text = serde_json::to_string(message).map_err(LinkFault::Message)?;
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), LinkFault> {
        let sent = timeout(LONGEST_SEND, self.socket.send(message)).await;
        sent.map_err(|_| LinkFault::Stuck)?.map_err(LinkFault::from)
    }
}

/// Shortens a text, which may quote a recruiter, to one log line.
fn one_line(words: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    words.chars().take(MOST_SAID_CHARS).map(plain).collect()
}
