//! Link of a member of a commons: its connection, from the first `hello` to the end.

use crate::commons::{MemberLink, MemberMemory};
use crate::registry::{HostId, replaced};
use crate::socket::{self, Bounds, FIRST, SocketEvent, malformed};
use crate::state::RecruiterState;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use gleaner_daemon::listen::Caller;
use gleaner_schemas::commons::{
    CommonsMessage, MOST_MEMBER_MESSAGE_BYTES, MOST_RECRUITER_MESSAGE_BYTES, MemberMessage,
    SILENCE_MS,
};
use gleaner_schemas::lending::{Refusal, RefusalKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Maximum lengths of the link's messages.
pub(crate) const BOUNDS: Bounds = Bounds {
    received_bytes: MOST_MEMBER_MESSAGE_BYTES,
    sent_bytes: MOST_RECRUITER_MESSAGE_BYTES,
};
/// Time without messages after which a member is gone.
const SILENCE: Duration = Duration::from_millis(SILENCE_MS.unsigned_abs());

/// Talks to a member until either side ends the connection.
pub(crate) async fn converse(
    state: Arc<RecruiterState>,
    (name, host_id): (String, HostId),
    caller: Caller,
    mut socket: WebSocket,
) {
    let link = MemberLink {
        number: state.links.next_number(),
        name,
        host_id,
    };
    let mut conversation = MemberConversation {
        state: &state,
        link: &link,
        caller: &caller,
        messages: None,
        heard: Instant::now(),
    };
    let ended = conversation.run(&mut socket).await;
    drop(conversation);
    state.commons().leave(&link);
    if let Err(refusal) = ended {
        let sender = format!("host {} in commons {}", link.host_id, link.name);
        state.complain(&sender, &refusal.detail);
        state.metrics.refused(refusal.kind);
        let _ = socket::send(&mut socket, &CommonsMessage::Refused(refusal)).await; // the host may be gone
    }
    socket::close(&mut socket).await;
}

struct MemberConversation<'a> {
    state: &'a RecruiterState,
    link: &'a MemberLink,
    caller: &'a Caller,
    /// Messages to send; `None` until the member has said hello.
    messages: Option<mpsc::Receiver<Utf8Bytes>>,
    heard: Instant,
}

enum MemberEvent {
    Heard(Option<Result<Message, axum::Error>>),
    Message(Option<Utf8Bytes>),
    Silence,
}

impl MemberConversation<'_> {
    /// Runs the conversation until the member disconnects (`Ok`) or is rejected.
    async fn run(&mut self, socket: &mut WebSocket) -> Result<(), Refusal> {
        loop {
            match self.next(socket).await {
                MemberEvent::Heard(heard) => match SocketEvent::of(heard)? {
                    SocketEvent::Text(text) => self.process_text(&text)?,
                    SocketEvent::Empty => {}
                    SocketEvent::Closed => return Ok(()),
                },
                MemberEvent::Message(Some(text)) => socket::send_text(socket, text).await?,
                // A later connection of the host has replaced this one, or its queue was full.
                MemberEvent::Message(None) => return Err(replaced(1000)),
                MemberEvent::Silence => {
                    return Err(Refusal {
                        kind: RefusalKind::Unreachable,
                        detail: "the member sent nothing in time".to_owned(),
                        retry_in_ms: Some(1000),
                    });
                }
            }
        }
    }

    async fn next(&mut self, socket: &mut WebSocket) -> MemberEvent {
        let silence = match &self.messages {
            Some(_) => SILENCE,
            None => FIRST,
        };
        let messages = &mut self.messages;
        let message = async {
            match messages {
                Some(messages) => messages.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            heard = socket.recv() => MemberEvent::Heard(heard),
            message = message => MemberEvent::Message(message),
            () = sleep_until(self.heard + silence) => MemberEvent::Silence,
        }
    }

    fn process_text(&mut self, text: &str) -> Result<(), Refusal> {
        socket::check_caller(self.caller)?;
        let said: MemberMessage = serde_json::from_str(text)
            .map_err(|e| malformed(format!("a message of the link cannot be read: {e}")))?;
        self.heard = Instant::now();
        let (state, link) = (self.state, self.link);
        let now = state.moment();
        match said {
            MemberMessage::Hello(said) => {
                let memory = self.memory();
                if let Some(messages) = state.commons().hello(link, &said, memory, now)? {
                    self.messages = Some(messages);
                }
            }
            MemberMessage::Summary(said) => {
                let memory = self.memory();
                state.commons().summary(link, &said, memory, now)?;
            }
            MemberMessage::Ended { epoch } => state.commons().ended(link, epoch, now)?,
            MemberMessage::Other => {} // a message of a later version
        }
        Ok(())
    }

    /// Memory of the member's host. It is looked up before the commons is locked.
    fn memory(&self) -> MemberMemory {
        MemberMemory {
            own: self.state.registry().own_memory(&self.link.host_id),
            limit_bytes: self.state.member_limit_bytes(),
        }
    }
}
