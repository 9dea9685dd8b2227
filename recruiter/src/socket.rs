//! Sockets of links (WebSocket, RFC 6455): bounds of messages, and sending with a timeout.

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use gleaner_daemon::listen::Caller;
use gleaner_schemas::lending::{Refusal, RefusalKind};
use serde::Serialize;
use std::time::Duration;
use tokio::time::timeout;

/// Timeout of the first message, which should arrive immediately.
pub(crate) const FIRST: Duration = Duration::from_secs(10);
/// Timeout of sending a message. A peer that reads nothing is disconnected after it.
const SEND: Duration = Duration::from_secs(10);
/// Size of a connection's buffers. There may be ten thousand connections, and an announcement of one lease
/// fits.
const BUFFER_BYTES: usize = 2 << 10;
/// Maximum length of a peer's text that is quoted back to it.
const MOST_SAID_CHARS: usize = 300;

/// Maximum lengths of a link's messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Maximum length of a message from the peer.
    pub(crate) received_bytes: usize,
    /// Maximum length of a message to the peer.
    pub(crate) sent_bytes: usize,
}

impl Bounds {
    /// Limits what a peer may send. The buffers are small enough for many peers.
    pub(crate) fn apply(self, upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
        upgrade
            .read_buffer_size(BUFFER_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(self.sent_bytes)
            .max_message_size(self.received_bytes)
            .max_frame_size(self.received_bytes)
    }
}

/// Event of a socket.
pub(crate) enum SocketEvent {
    /// Text that the peer has sent.
    Text(Utf8Bytes),
    /// Message without content, such as a ping.
    Empty,
    /// End of the connection by the peer.
    Closed,
}

impl SocketEvent {
    /// Interprets a result of [`WebSocket::recv`].
    ///
    /// # Errors
    /// The peer breaks the protocol. Over a broken connection, the refusal cannot be sent.
    pub(crate) fn of(heard: Option<Result<Message, axum::Error>>) -> Result<Self, Refusal> {
        match heard {
            Some(Ok(Message::Text(text))) => Ok(Self::Text(text)),
            Some(Ok(Message::Binary(_))) => {
                Err(malformed("messages of the link are JSON text".to_owned()))
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(Self::Empty),
            Some(Ok(Message::Close(_))) | None => Ok(Self::Closed),
            Some(Err(error)) => Err(malformed(format!("the link broke: {error}"))),
        }
    }
}

/// Checks that the caller's certificate is still valid. Certificates may be revoked or expire while a
/// connection is open.
pub(crate) fn check_caller(caller: &Caller) -> Result<(), Refusal> {
    match caller.who() {
        Ok(_) => Ok(()),
        Err(error) => Err(Refusal {
            kind: RefusalKind::Other,
            detail: error.to_string(),
            retry_in_ms: None,
        }),
    }
}

/// Sends a message as JSON text.
pub(crate) async fn send(socket: &mut WebSocket, message: &impl Serialize) -> Result<(), Refusal> {
    let text = serde_json::to_string(message).map_err(|e| malformed(e.to_string()))?;
    send_text(socket, text.into()).await
}

/// Sends a message that is already encoded.
pub(crate) async fn send_text(socket: &mut WebSocket, text: Utf8Bytes) -> Result<(), Refusal> {
    let unreachable = |why: String| Refusal {
        kind: RefusalKind::Unreachable,
        detail: format!("a message could not be sent: {why}"),
        retry_in_ms: Some(1000),
    };
    match timeout(SEND, socket.send(Message::Text(text))).await {
        Ok(sent) => sent.map_err(|e| unreachable(e.to_string())),
        Err(_) => Err(unreachable(
            "the host does not read its messages".to_owned(),
        )),
    }
}

/// Closes the connection.
pub(crate) async fn close(socket: &mut WebSocket) {
    let _ = timeout(SEND, socket.send(Message::Close(None))).await; // the peer may be gone
}

/// Refusal of a message that does not follow the protocol.
pub(crate) fn malformed(detail: String) -> Refusal {
    Refusal {
        kind: RefusalKind::Malformed,
        // A parser's error quotes the whole faulty text, so the message is cut.
        detail: detail.chars().take(MOST_SAID_CHARS).collect(),
        retry_in_ms: None,
    }
}
