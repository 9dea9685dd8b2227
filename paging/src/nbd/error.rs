//! Failures of the handshake, from the server's side.

use super::export::ExportRefusal;
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
    /// The server refused `EXPORT_NAME`, to which closing is the only refusal.
    #[error("export {name:?}: {source}")]
    Refused {
        /// Name of the requested export.
        name: String,
        /// Reason of the refusal.
        source: ExportRefusal,
    },
}
