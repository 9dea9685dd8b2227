//! One link, kept up.

use super::announced::Announced;
use super::backoff::Backoff;
use super::connect::{Socket, connect};
use super::{Address, FAREWELL, LinkError, REQUESTS_AT_ONCE, State};
use futures_util::{SinkExt, StreamExt};
use gleaner_policy::lending::Event;
use gleaner_schemas::lending::{Answer, FromHost, Outcome, Refusal, RefusalKind, Request, ToHost};
use gleaner_trust::ClientTrust;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{Error, Message};

/// A message may take so long to be taken in by the system; a recruiter that is stopped fills its buffers.
const LONGEST_SEND: Duration = Duration::from_secs(5);
/// A link that held for so long was a good one: the next failure is the first.
const GOOD: Duration = Duration::from_secs(5);
/// When a request that found the core busy may come again.
const BUSY_MS: i64 = 1000;

/// One recruiter's.
pub(super) struct Link {
    pub(super) slot: usize,
    /// How many links there are: the number of a connection is `slot`, and so many more for each one after it.
    pub(super) slots: usize,
    pub(super) address: Address,
    pub(super) host_id: String,
    pub(super) trust: Option<Arc<ClientTrust>>,
    pub(super) announce_every: Duration,
    pub(super) announced: watch::Receiver<Option<Announced>>,
    pub(super) answers: mpsc::Receiver<(usize, Answer)>,
    pub(super) state: Arc<State>,
}

/// A connection of a link.
struct Connection {
    /// Never used for another one.
    number: usize,
    socket: Socket,
    unanswered: usize,
    heard_at: Instant,
    told_at: Instant,
}

/// The links have been dropped.
struct End;

impl Link {
    /// Until the links are dropped.
    pub(super) async fn keep(mut self) {
        let mut backoff = Backoff::default();
        let mut number = self.slot;
        let mut said = None;
        loop {
            let begin = Instant::now();
            let failure = match self.connect_and_talk(number, &mut said).await {
                Ok(End) => return,
                Err(failure) => failure,
            };
            number = number.wrapping_add(self.slots);
            if begin.elapsed() >= GOOD {
                backoff = Backoff::default();
            }
            let mut wait = backoff.next();
            if let LinkError::Refused(Refusal {
                retry_in_ms: Some(ms),
                ..
            }) = &failure
            {
                wait = wait.max(Duration::from_millis(
                    u64::try_from(*ms).unwrap_or(0).min(60_000),
                ));
            }
            let words = failure.to_string();
            if said.as_ref() != Some(&words) {
                eprintln!(
                    "gleaner-memoryd: recruiter {}: {words}; trying again",
                    self.address
                );
                said = Some(words);
            }
            tokio::select! {
                () = sleep(wait) => (),
                () = dropped(&mut self.announced) => return,
            }
        }
    }

    async fn connect_and_talk(
        &mut self,
        number: usize,
        said: &mut Option<String>,
    ) -> Result<End, LinkError> {
        let trust = self.trust.as_deref();
        let socket = tokio::select! {
            socket = connect(&self.address, &self.host_id, trust) => socket?,
            () = dropped(&mut self.announced) => return Ok(End),
        };
        if said.take().is_some() {
            eprintln!("gleaner-memoryd: linked with recruiter {}", self.address);
        }
        while self.answers.try_recv().is_ok() {} // to requests of a connection that is gone
        self.state.set_linked(self.slot, true);
        let now = Instant::now();
        let mut connection = Connection {
            number,
            socket,
            unanswered: 0,
            heard_at: now,
            told_at: now,
        };
        let end = self.talk(&mut connection).await;
        self.state.set_linked(self.slot, false);
        if matches!(end, Ok(End)) {
            let farewell = async {
                self.announce(&mut connection).await?;
                close(&mut connection.socket).await
            };
            let _ = timeout(FAREWELL, farewell).await;
        }
        end
    }

    async fn talk(&mut self, connection: &mut Connection) -> Result<End, LinkError> {
        // A partition says nothing: what answers no ping is gone.
        let silence = self.announce_every * 2;
        self.announced.mark_unchanged();
        self.announce(connection).await?;
        loop {
            let due = connection.told_at + self.announce_every;
            let silent_at = connection.heard_at + silence;
            tokio::select! {
                changed = self.announced.changed() => {
                    if changed.is_err() {
                        return Ok(End);
                    }
                    self.announce(connection).await?;
                }
                Some((number, answer)) = self.answers.recv() => {
                    if number == connection.number {
                        connection.unanswered = connection.unanswered.saturating_sub(1);
                        connection.say(&FromHost::Answer(Box::new(answer))).await?;
                    }
                }
                heard = connection.socket.next() => {
                    connection.heard_at = Instant::now();
                    let heard = heard.ok_or(LinkError::Ended)?;
                    self.hear(connection, heard.map_err(failure)?).await?;
                }
                () = sleep_until(due.into()) => {
                    self.state.tell_again(self.slot);
                    self.announce(connection).await?;
                    connection.send(Message::Ping(Vec::new().into())).await?;
                }
                () = sleep_until(silent_at.into()) => return Err(LinkError::Silent(silence)),
            }
        }
    }

    async fn announce(&mut self, connection: &mut Connection) -> Result<(), LinkError> {
        connection.told_at = Instant::now();
        let announced = self.announced.borrow_and_update().clone();
        let Some(announced) = announced else {
            return Ok(()); // nothing was seen of this host so far
        };
        let announcement = announced.told_at(connection.told_at);
        connection
            .say(&FromHost::Announcement(Box::new(announcement)))
            .await
    }

    async fn hear(&self, connection: &mut Connection, message: Message) -> Result<(), LinkError> {
        let text = match &message {
            Message::Text(text) => text,
            Message::Close(_) => return Err(LinkError::Ended),
            // Pings are answered by the library.
            _ => return Ok(()),
        };
        match serde_json::from_str(text).map_err(LinkError::Message)? {
            ToHost::Request(request) => self.ask(connection, request).await,
            ToHost::Refused(refusal) => Err(LinkError::Refused(refusal)),
            ToHost::Other => Ok(()),
        }
    }

    /// Passes a request on to the core; where that cannot be, the answer is given here.
    async fn ask(&self, connection: &mut Connection, request: Request) -> Result<(), LinkError> {
        let request_id = request.request_id;
        let is_taken = connection.unanswered < REQUESTS_AT_ONCE
            && random::<16>().is_some_and(|bytes| {
                (self.state.deliver)(Event::Request {
                    link: connection.number,
                    request,
                    fresh_id: hex(&bytes),
                })
            });
        if is_taken {
            connection.unanswered += 1;
            return Ok(());
        }
        let answer = Answer {
            request_id,
            outcome: Outcome::Refused(Refusal {
                kind: RefusalKind::Unreachable,
                detail: "the memory server has too much to do".to_owned(),
                retry_in_ms: Some(BUSY_MS),
            }),
            free_bytes: 0,
            requests_per_s: 0.0,
        };
        connection.say(&FromHost::Answer(Box::new(answer))).await
    }
}

impl Connection {
    async fn say(&mut self, message: &FromHost) -> Result<(), LinkError> {
        let text = serde_json::to_string(message).map_err(LinkError::Message)?;
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), LinkError> {
        let sent = timeout(LONGEST_SEND, self.socket.send(message)).await;
        sent.map_err(|_| LinkError::Stuck)?.map_err(failure)
    }
}

async fn close(socket: &mut Socket) -> Result<(), LinkError> {
    socket.close(None).await.map_err(failure)?;
    while let Some(Ok(_)) = socket.next().await {}
    Ok(())
}

fn failure(error: Error) -> LinkError {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => LinkError::Ended,
        error => Box::new(error).into(),
    }
}

/// Waits for the end; announcements are passed over.
async fn dropped(announced: &mut watch::Receiver<Option<Announced>>) {
    while announced.changed().await.is_ok() {}
}

/// `N` bytes that nobody can guess; `None` where the system has none.
pub(super) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let filled = gleaner_trust::provider().secure_random.fill(&mut bytes);
    filled.is_ok().then_some(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
