//! Failures of a link to a recruiter.

use gleaner_paging::websocket::WebSocketError;
use gleaner_schemas::lending::Refusal;
use std::time::Duration;

/// Reason why a link to a recruiter failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LinkError {
    /// The address is malformed.
    #[error("recruiter {0}")]
    Address(#[from] gleaner_trust::AddressError),
    /// This host has no id, so recruiters could not distinguish its announcements from those of other hosts.
    #[error(
        "this host has no /etc/machine-id: set host_id in the configuration of gleaner-memoryd"
    )]
    Nameless,
    /// Missing or unusable certificates.
    #[error(
        "no certificate for it: {0}; `gleaner-agent enroll` gets this host one, which is then used"
    )]
    Trust(#[from] gleaner_trust::TrustError),
    /// The recruiter's certificate was revoked or has ended since the link began.
    #[error("it is no longer trusted: {0}")]
    Distrusted(gleaner_trust::TrustError),
    /// The thread cannot be started.
    #[error("cannot start the thread of the links: {0}")]
    Start(std::io::Error),
    /// The recruiter is unreachable, or does not accept this host.
    #[error(transparent)]
    Connect(#[from] WebSocketError),
    /// The recruiter ends the link with a reason.
    #[error("refused: {}", .0.detail)]
    Refused(Refusal),
    /// The recruiter breaks the WebSocket protocol.
    #[error("{0}")]
    Socket(#[from] Box<tokio_tungstenite::tungstenite::Error>),
    /// The recruiter's message is not of the protocol.
    #[error("it sent an invalid message: {0}")]
    Message(serde_json::Error),
    /// The recruiter closed the connection.
    #[error("it closed the connection")]
    Ended,
    /// The recruiter sent nothing for this time.
    #[error("it sent nothing for {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// The recruiter does not read its messages.
    #[error("it does not read its messages")]
    Stuck,
}
