//! The client's TLS settings.

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::sync::Arc;

/// TLS settings for the connection to one server.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Own certificate, and trusted authorities.
    pub config: Arc<ClientConfig>,
    /// Name that the server's certificate must have: for a lease, the host id.
    pub name: ServerName<'static>,
}
