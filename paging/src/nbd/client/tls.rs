//! TLS towards a server.

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::sync::Arc;

/// Identity that a server has to show.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Certificates shown and trusted.
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate must have: a host id, of a lease.
    pub name: ServerName<'static>,
}
