//! Link to one recruiter: connects, and connects again after failures.

use super::connect::connect;
use super::identity::Identity;
use super::timed_announcement::TimedAnnouncement;
use super::{FAREWELL, LinkError, PageAddress, REQUESTS_AT_ONCE};
use crate::core::{CoreMessage, LinkEnd};
use crate::entrance::Entrance;
use futures_util::{SinkExt, StreamExt};
use gleaner_paging::websocket::{PeerCertificates, RecruiterConnection, Socket};
use gleaner_schemas::lending::{
    Answer, HostMessage, Outcome, RecruiterMessage, Refusal, RefusalKind, Request,
};
use gleaner_trust::{Address, Backoff};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{Error, Message};

/// Timeout of sending a message: the buffers towards a recruiter that has stopped reading fill up.
const LONGEST_SEND: Duration = Duration::from_secs(5);
/// Time after which a link counts as good. A failure after this time counts as a first failure.
const GOOD: Duration = Duration::from_secs(5);
/// Maximum wait after the first failure.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Maximum wait after many failures.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Maximum wait that a recruiter may request.
const LONGEST_ASKED_MS: i64 = 60_000;
/// Maximum length of a recruiter's text in the log.
const MOST_SAID_CHARS: usize = 300;
/// Time after which to repeat a request that was refused because too many requests were waiting.
const BUSY_MS: i64 = 1000;

/// Link to one recruiter.
pub(super) struct Link {
    pub(super) address: Address,
    pub(super) host_id: String,
    pub(super) identity: Arc<Identity>,
    pub(super) entrance: Arc<Entrance>,
    /// Reason, as logged last, why revocation lists were rejected.
    pub(super) rejected: Option<String>,
    pub(super) announce_every: Duration,
    pub(super) pages: Option<PageAddress>,
    pub(super) pages_socket: Option<String>,
    pub(super) end: LinkEnd,
    /// Last announcement of the core; `None` before the first.
    pub(super) latest: Option<TimedAnnouncement>,
    /// For each unanswered request, the number of the connection by which it came. The core answers in the
    /// same order. Request ids would not identify requests, as each connection has its own ids.
    pub(super) waiting: VecDeque<u64>,
    /// Number of the present connection.
    pub(super) connection: u64,
}

/// A connection of a link.
struct Connection {
    socket: Socket,
    /// Address that this host has on the connection.
    here: IpAddr,
    shown: Option<PeerCertificates>,
    heard_at: Instant,
    pinged_at: Instant,
}

/// Shows that the core has ended.
struct End;

impl Link {
    /// Keeps the link until the core ends.
    pub(super) async fn keep(mut self) {
        // A wait never exceeds the time between two announcements. So a restarted recruiter learns of every
        // host within that time.
        let mut backoff = Backoff::new(FIRST_WAIT, self.announce_every.min(LONGEST_WAIT));
        let mut said = None;
        loop {
            let begin = Instant::now();
            let failure = match self.connect_and_talk(&mut said).await {
                Ok(End) => return,
                Err(failure) => failure,
            };
            if begin.elapsed() >= GOOD {
                backoff.reset();
            }
            let asked_ms = match &failure {
                LinkError::Refused(refusal) => refusal.retry_in_ms,
                _ => None,
            };
            let asked_ms = asked_ms.map(|ms| ms.clamp(0, LONGEST_ASKED_MS).unsigned_abs());
            let wait = backoff.next(asked_ms.map(Duration::from_millis));
            let words = one_line(&failure.to_string());
            if said.as_ref() != Some(&words) {
                eprintln!(
                    "gleaner-memoryd: recruiter {}: {words}; trying again",
                    self.address
                );
                said = Some(words);
            }
            tokio::select! {
                () = sleep(wait) => (),
                End = wait_for_core_end(&mut self.end, &mut self.latest) => return,
            }
        }
    }

    async fn connect_and_talk(&mut self, said: &mut Option<String>) -> Result<End, LinkError> {
        let connecting = connect(&self.address, &self.host_id, &self.identity, &self.entrance);
        let RecruiterConnection {
            socket,
            here,
            shown,
        } = tokio::select! {
            connected = connecting => connected?,
            End = wait_for_core_end(&mut self.end, &mut self.latest) => return Ok(End),
        };
        if said.take().is_some() {
            eprintln!("gleaner-memoryd: linked with recruiter {}", self.address);
        }
        self.connection += 1;
        self.set_up(true);
        let now = Instant::now();
        let mut connection = Connection {
            socket,
            here,
            shown,
            heard_at: now,
            pinged_at: now,
        };
        let end = self.talk(&mut connection).await;
        self.set_up(false);
        if matches!(end, Ok(End)) {
            let farewell = async {
                self.announce(&mut connection).await?;
                connection.close().await
            };
            let _ = timeout(FAREWELL, farewell).await;
        }
        end
    }

    fn set_up(&self, is_up: bool) {
        let link = self.end.link;
        self.end.core.tell(CoreMessage::Linked { link, is_up });
    }

    async fn talk(&mut self, connection: &mut Connection) -> Result<End, LinkError> {
        // A network partition causes no error. So a recruiter that answers no ping counts as disconnected.
        let silence = self.announce_every * 2;
        let mut lists = self.entrance.changes();
        self.recheck(connection)?; // lists may have arrived since the handshake
        self.look();
        self.announce(connection).await?;
        loop {
            let ping_at = connection.pinged_at + self.announce_every;
            let silent_at = connection.heard_at + silence;
            tokio::select! {
                changed = self.end.announcements.changed() => {
                    self.look();
                    if changed.is_err() {
                        return Ok(End);
                    }
                    self.announce(connection).await?;
                }
                Some(answer) = self.end.answers.recv() => {
                    if self.waiting.pop_front() == Some(self.connection) {
                        connection.say(&HostMessage::Answer(Box::new(answer))).await?;
                    }
                }
                heard = connection.socket.next() => {
                    connection.heard_at = Instant::now();
                    let heard = heard.ok_or(LinkError::Ended)?.map_err(failure)?;
                    if self.handle_message(connection, heard).await?.is_some() {
                        return Ok(End);
                    }
                }
                // This cannot fail: the sender lives as long as the link.
                _ = lists.changed() => self.recheck(connection)?,
                () = sleep_until(ping_at.into()) => {
                    self.entrance.check_in_time();
                    connection.pinged_at = Instant::now();
                    connection.send(Message::Ping(Vec::new().into())).await?;
                }
                () = sleep_until(silent_at.into()) => return Err(LinkError::Silent(silence)),
            }
        }
    }

    /// Takes the core's latest announcement.
    fn look(&mut self) {
        look(&mut self.end, &mut self.latest);
    }

    async fn announce(&self, connection: &mut Connection) -> Result<(), LinkError> {
        let Some(latest) = &self.latest else {
            return Ok(());
        };
        let mut announcement = latest.adjusted_to(Instant::now());
        announcement.address = self.pages.as_ref().map(|at| match at {
            PageAddress::Named(address) => address.clone(),
            PageAddress::Port(port) => SocketAddr::new(connection.here, *port).to_string(),
        });
        announcement.pages_socket.clone_from(&self.pages_socket);
        connection
            .say(&HostMessage::Announcement(Box::new(announcement)))
            .await
    }

    async fn handle_message(
        &mut self,
        connection: &mut Connection,
        message: Message,
    ) -> Result<Option<End>, LinkError> {
        let text = match &message {
            Message::Text(text) => text,
            Message::Close(_) => return Err(LinkError::Ended),
            _ => return Ok(None), // the library answers pings
        };
        match serde_json::from_str(text).map_err(LinkError::Message)? {
            RecruiterMessage::Request(request) => self.ask(connection, request).await,
            RecruiterMessage::Revocations(lists) => {
                self.accept_revocations(&lists.pem);
                Ok(None)
            }
            RecruiterMessage::Refused(refusal) => Err(LinkError::Refused(refusal)),
            RecruiterMessage::Other => Ok(None),
        }
    }

    /// Accepts revocation lists. A wrong list does not end the link: the recruiter's other messages may be right.
    fn accept_revocations(&mut self, pem: &str) {
        let rejected = self.entrance.receive(pem).err();
        let rejected = rejected.map(|error| one_line(&error.to_string()));
        if let Some(why) = &rejected
            && self.rejected != rejected
        {
            eprintln!("gleaner-memoryd: recruiter {}: {why}", self.address);
        }
        self.rejected = rejected;
    }

    /// Checks the recruiter's certificate again with the lists in force.
    fn recheck(&self, connection: &Connection) -> Result<(), LinkError> {
        let Some(shown) = &connection.shown else {
            return Ok(());
        };
        self.identity.recheck(shown, &self.entrance)
    }

    /// Passes a request on to the core; if too many wait, refuses it here.
    async fn ask(
        &mut self,
        connection: &mut Connection,
        request: Request,
    ) -> Result<Option<End>, LinkError> {
        if self.waiting.len() >= REQUESTS_AT_ONCE {
            let answer = too_many(request.request_id);
            connection
                .say(&HostMessage::Answer(Box::new(answer)))
                .await?;
            return Ok(None);
        }
        let link = self.end.link;
        if !self.end.core.tell(CoreMessage::Request { link, request }) {
            return Ok(Some(End));
        }
        self.waiting.push_back(self.connection);
        Ok(None)
    }
}

impl Connection {
    async fn say(&mut self, message: &HostMessage) -> Result<(), LinkError> {
        let text = serde_json::to_string(message).map_err(LinkError::Message)?;
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), LinkError> {
        let sent = timeout(LONGEST_SEND, self.socket.send(message)).await;
        sent.map_err(|_| LinkError::Stuck)?.map_err(failure)
    }

    async fn close(&mut self) -> Result<(), LinkError> {
        self.socket.close(None).await.map_err(failure)?;
        while let Some(Ok(_)) = self.socket.next().await {}
        Ok(())
    }
}

fn failure(error: Error) -> LinkError {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => LinkError::Ended,
        error => Box::new(error).into(),
    }
}

fn too_many(request_id: u64) -> Answer {
    Answer {
        request_id,
        outcome: Outcome::Refused(Refusal {
            kind: RefusalKind::Busy,
            detail: "the memory server has too many requests waiting".to_owned(),
            retry_in_ms: Some(BUSY_MS),
        }),
        unleased_bytes: 0,
        requests_per_s: 0.0,
    }
}

/// Shortens a text to one log line. The text may quote a recruiter: a decoder's error quotes the whole faulty
/// text.
fn one_line(words: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    words.chars().take(MOST_SAID_CHARS).map(plain).collect()
}

/// Takes the core's latest announcement, if there is a new one.
fn look(end: &mut LinkEnd, latest: &mut Option<TimedAnnouncement>) {
    let announcement = end.announcements.borrow_and_update().clone();
    if announcement.version > 0 {
        *latest = Some(TimedAnnouncement::now(announcement));
    }
}

/// Waits for the end of the core; keeps its announcements until then.
async fn wait_for_core_end(end: &mut LinkEnd, latest: &mut Option<TimedAnnouncement>) -> End {
    loop {
        let changed = end.announcements.changed().await;
        look(end, latest);
        if changed.is_err() {
            return End;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recruiters_words_are_one_short_line() {
        assert_eq!(one_line("no\nlink\u{1b}[2J"), "no\u{fffd}link\u{fffd}[2J");
        let long = format!("\"{}\"", "x".repeat(60_000));
        let error = serde_json::from_str::<Request>(&long).unwrap_err();
        let line = one_line(&LinkError::Message(error).to_string());
        assert_eq!(line.chars().count(), MOST_SAID_CHARS);
    }
}
