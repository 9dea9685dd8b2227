//! Failures of the server's side of the handshake.

use super::export::ExportRefusal;
use std::io;

/// Error that ends a handshake before transmission.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NegotiationError {
    /// The connection broke, or the client was too slow.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    /// The client does not speak NBD.
    #[error("the client does not speak NBD: {0}")]
    Foreign(&'static str),
    /// The TLS handshake failed.
    #[error("TLS: {0}")]
    Tls(io::Error),
    /// The server refused `EXPORT_NAME`, for which it can only close the connection.
    #[error("export {name:?}: {source}")]
    Refused {
        /// Name of the requested export.
        name: String,
        /// Reason of the refusal.
        source: ExportRefusal,
    },
}
