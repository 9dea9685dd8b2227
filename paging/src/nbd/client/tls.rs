//! TLS towards a server.

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::sync::Arc;

/// By which a server shows that it is the one that is meant.
#[derive(Clone, Debug)]
pub struct Tls {
    /// What is shown and trusted.
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate must have: a host id, of a lease.
    pub name: ServerName<'static>,
}
