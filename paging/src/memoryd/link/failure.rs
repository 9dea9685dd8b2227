//! Why there is no link.

use gleaner_schemas::lending::Refusal;
use std::time::Duration;

/// Why a recruiter cannot be linked with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LinkError {
    /// As it is named.
    #[error("recruiter {0}")]
    Address(#[from] gleaner_trust::AddressError),
    /// Without a name nothing can be told apart from others'.
    #[error(
        "this host has no /etc/machine-id: set host_id in the configuration of gleaner-memoryd"
    )]
    Nameless,
    /// Certificates that are not there, or of no use.
    #[error(
        "no certificate to show it: {0}; `gleaner-agent enroll` gets this host one, and it is taken up then"
    )]
    Trust(#[from] gleaner_trust::TrustError),
    /// The recruiter's certificate was revoked or has ended since the link began.
    #[error("it is no longer trusted: {0}")]
    Distrusted(gleaner_trust::TrustError),
    /// No thread.
    #[error("cannot start the thread of the links: {0}")]
    Start(std::io::Error),
    /// It is not there, or not for us.
    #[error("cannot connect: {0}")]
    Connect(std::io::Error),
    /// It answers, and refuses the link.
    #[error("it answers {status}: {said}")]
    Answered {
        /// HTTP's.
        status: u16,
        /// The first of what it says.
        said: String,
    },
    /// It says why it ends the link.
    #[error("refused: {}", .0.detail)]
    Refused(Refusal),
    /// It does not speak as it should.
    #[error("{0}")]
    Socket(#[from] Box<tokio_tungstenite::tungstenite::Error>),
    /// It said something else than the protocol has.
    #[error("it says what is no message: {0}")]
    Message(serde_json::Error),
    /// It has ended the connection.
    #[error("it has ended the connection")]
    Ended,
    /// Nothing was heard.
    #[error("nothing was heard of it for {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// It takes nothing in.
    #[error("it takes nothing in")]
    Stuck,
}
