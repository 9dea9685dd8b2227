//! Faults of a link.

use gleaner_paging::websocket::WebSocketError;
use gleaner_schemas::lending::Refusal;
use std::time::Duration;
use tokio_tungstenite::tungstenite;

/// Reason why a link has ended, or was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum LinkFault {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] WebSocketError),
    /// The recruiter breaks the WebSocket protocol, or the network failed.
    #[error("{0}")]
    Socket(Box<tungstenite::Error>),
    /// A message cannot be read.
    #[error("a message of the link cannot be read: {0}")]
    Message(serde_json::Error),
    /// The recruiter refuses this host.
    #[error("{}", .0.detail)]
    Refused(Refusal),
    /// The recruiter sends nothing.
    #[error("it sent nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// The recruiter reads nothing.
    #[error("it reads nothing")]
    Stuck,
    /// The recruiter has closed the connection.
    #[error("it closed the link")]
    Ended,
}

impl From<tungstenite::Error> for LinkFault {
    fn from(error: tungstenite::Error) -> Self {
        match error {
            tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => Self::Ended,
            error => Self::Socket(Box::new(error)),
        }
    }
}
