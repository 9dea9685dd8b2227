//! Conversation with a host: its connection, from the first announcement to the end.

use crate::links::HostRequest;
use crate::registry::{HostId, check_answer, replaced};
use crate::socket::{self, Bounds, FIRST, SocketEvent, malformed};
use crate::state::RecruiterState;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use gleaner_daemon::listen::Caller;
use gleaner_schemas::lending::{
    Answer, HostMessage, Outcome, RecruiterMessage, Refusal, RefusalKind, Request, RequestKind,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

/// Maximum length of a message. An announcement has some hundred bytes per lease.
const MESSAGE_BYTES: usize = 4 << 20;
/// Maximum lengths of the link's messages.
pub(crate) const BOUNDS: Bounds = Bounds {
    received_bytes: MESSAGE_BYTES,
    sent_bytes: MESSAGE_BYTES,
};
/// Maximum number of unanswered requests to a host. A host that reaches it never answers.
const UNANSWERED: usize = 1024;

/// Talks to the memory server of `host_id` until either side ends the connection.
pub(crate) async fn converse(
    state: Arc<RecruiterState>,
    host_id: HostId,
    caller: Caller,
    mut socket: WebSocket,
) {
    let number = state.links.next_number();
    let mut conversation = Conversation {
        state: &state,
        host_id: &host_id,
        caller: &caller,
        number,
        asks: None,
        accepts_revocation_lists: false,
        revocations: state.revocations.follow(),
        last_id: 0,
        unanswered: HashMap::new(),
        heard: Instant::now(),
    };
    let said = conversation.run(&mut socket).await;
    if conversation.asks.take().is_some() {
        state.links.ended(&host_id, number);
        state.registry().disconnected(&host_id, number);
    }
    drop(conversation);
    if let Err(refusal) = said {
        state.complain(&format!("host {host_id}"), &refusal.detail);
        state.metrics.refused(refusal.kind);
        let _ = socket::send(&mut socket, &RecruiterMessage::Refused(refusal)).await; // the host may be gone
    }
    socket::close(&mut socket).await;
}

struct Conversation<'a> {
    state: &'a Arc<RecruiterState>,
    host_id: &'a HostId,
    caller: &'a Caller,
    number: u64,
    /// Requests to send; `None` until the host has announced itself.
    asks: Option<mpsc::Receiver<HostRequest>>,
    /// True if the host has announced that it accepts revocation lists.
    accepts_revocation_lists: bool,
    /// Message with the revocation lists in force.
    revocations: watch::Receiver<Option<Utf8Bytes>>,
    last_id: u64,
    /// Unanswered requests of this connection, each with the sender of its result.
    unanswered: HashMap<u64, (RequestKind, oneshot::Sender<Outcome>)>,
    heard: Instant,
}

enum ConversationEvent {
    Heard(Option<Result<Message, axum::Error>>),
    Ask(Option<HostRequest>),
    Revocations,
    Silence,
}

impl Conversation<'_> {
    /// Runs the conversation until the host disconnects (`Ok`) or is rejected.
    async fn run(&mut self, socket: &mut WebSocket) -> Result<(), Refusal> {
        loop {
            match self.next(socket).await {
                ConversationEvent::Heard(heard) => match SocketEvent::of(heard)? {
                    SocketEvent::Text(text) => {
                        self.heard = Instant::now();
                        self.process_text(&text)?;
                    }
                    SocketEvent::Empty => {}
                    SocketEvent::Closed => return Ok(()),
                },
                ConversationEvent::Ask(Some(ask)) => self.ask(socket, ask).await?,
                ConversationEvent::Revocations => {
                    let lists = self.revocations.borrow_and_update().clone();
                    if let Some(lists) = lists {
                        socket::send_text(socket, lists).await?;
                    }
                }
                ConversationEvent::Ask(None) => {
                    return Err(replaced(self.state.judging().silence_limit_ms()));
                }
                ConversationEvent::Silence => {
                    return Err(Refusal {
                        kind: RefusalKind::Unreachable,
                        detail: "three announcements were missed".to_owned(),
                        retry_in_ms: Some(1000),
                    });
                }
            }
        }
    }

    async fn next(&mut self, socket: &mut WebSocket) -> ConversationEvent {
        let gone_after = self.state.judging().silence_limit_ms();
        let silence = match &self.asks {
            Some(_) => Duration::from_millis(u64::try_from(gone_after).unwrap_or_default()),
            None => FIRST,
        };
        let asks = &mut self.asks;
        let ask = async {
            match asks {
                Some(asks) => asks.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            heard = socket.recv() => ConversationEvent::Heard(heard),
            ask = ask => ConversationEvent::Ask(ask),
            // The channel cannot close: its sender belongs to the shared state.
            _ = self.revocations.changed(), if self.accepts_revocation_lists => ConversationEvent::Revocations,
            () = sleep_until(self.heard + silence) => ConversationEvent::Silence,
        }
    }

    fn process_text(&mut self, text: &str) -> Result<(), Refusal> {
        socket::check_caller(self.caller)?;
        let said: HostMessage = serde_json::from_str(text)
            .map_err(|e| malformed(format!("a message of the link cannot be read: {e}")))?;
        match said {
            HostMessage::Announcement(said) => {
                let now_ms = self.state.now_ms();
                let accepts_revocation_lists = said.accepts_revocation_lists;
                let mut registry = self.state.registry();
                registry.announced(self.host_id, self.number, *said, now_ms)?;
                if self.asks.is_none() {
                    // The registry is still locked here, so a host found in the registry always has its link.
                    self.asks = Some(self.state.links.take_over(self.host_id, self.number));
                }
                self.accepts_revocation_lists = accepts_revocation_lists;
            }
            HostMessage::Answer(answer) => self.answered(*answer)?,
            HostMessage::Other => {} // a message of a later version
        }
        Ok(())
    }

    /// Passes on the answer to a pending request. An answer to a request that timed out changes nothing here.
    fn answered(&mut self, answer: Answer) -> Result<(), Refusal> {
        if answer.request_id > self.last_id {
            return Err(malformed(format!(
                "the host answered request {}, which was never made",
                answer.request_id
            )));
        }
        let Some((asked, asker)) = self.unanswered.remove(&answer.request_id) else {
            return Ok(());
        };
        check_answer(&asked, &answer.outcome)?;
        let now_ms = self.state.now_ms();
        let mut registry = self.state.registry();
        registry.answered(self.host_id, self.number, &answer, now_ms);
        drop(registry);
        let _ = asker.send(answer.outcome); // the caller may have timed out; it finds the lease by its key
        Ok(())
    }

    async fn ask(&mut self, socket: &mut WebSocket, ask: HostRequest) -> Result<(), Refusal> {
        let HostRequest { asked, answer } = ask;
        if answer.is_closed() && matches!(asked, RequestKind::Grant(_) | RequestKind::Renew { .. })
        {
            return Ok(()); // nobody waits for the answer any more
        }
        if self.unanswered.len() >= UNANSWERED {
            self.unanswered.retain(|_, (_, asker)| !asker.is_closed());
        }
        if self.unanswered.len() >= UNANSWERED {
            return Err(Refusal {
                kind: RefusalKind::Unreachable,
                detail: format!("{UNANSWERED} requests were not answered"),
                retry_in_ms: Some(1000),
            });
        }
        self.last_id += 1;
        let request_id = self.last_id;
        self.unanswered.insert(request_id, (asked.clone(), answer));
        let request = Request { request_id, asked };
        socket::send(socket, &RecruiterMessage::Request(request)).await
    }
}
