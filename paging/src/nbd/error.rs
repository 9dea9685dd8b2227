//! Failures of the handshake, from the server's side.

use super::export::Refused;
use std::io;

/// Error that ends a handshake before transmission.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NegotiationError {
    /// The connection broke, or the client was too slow.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    /// Something else than this protocol.
    #[error("the client does not speak NBD: {0}")]
    Foreign(&'static str),
    /// No TLS came about.
    #[error("TLS: {0}")]
    Tls(io::Error),
    /// By `EXPORT_NAME`, which has no other refusal than the end.
    #[error("export {name:?}: {source}")]
    Refused {
        /// Asked for.
        name: String,
        /// Reason of the refusal.
        source: Refused,
    },
}
