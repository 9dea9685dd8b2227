//! Serves the pages of leases to their clients, beside the core, which waits for none of it.

use crate::config::Serving;
use crate::link::PagesAt;
use anyhow::Context;
use gleaner_paging::nbd::{Address, Door, Leases, Listener, Load, Shares};
use gleaner_paging::store::Store;
use gleaner_trust::{ClientPaths, ServerPaths, ServerTrust};
use rustls::ServerConfig;
use std::net::SocketAddr;
use std::sync::{Arc, Once, OnceLock};

/// Listens and serves; where clients are to come. Nothing of it where no address is configured.
///
/// By TLS as this host, to the clients of its leases. Without TLS only at a loopback address, where recruiters are of this machine.
///
/// # Errors
/// When nothing can listen there.
pub(crate) fn start(
    serving: &Serving,
    certificates: &ClientPaths,
    store: Arc<Store>,
    load: Arc<Load>,
) -> anyhow::Result<Option<PagesAt>> {
    let Some(listen) = serving.listen else {
        return Ok(None);
    };
    let door = if listen.ip().is_loopback() && !serving.has_certificates {
        Door::Open
    } else {
        by_tls(certificates)
    };
    let exports = Arc::new(Leases {
        store,
        default: None,
        shares: Arc::new(Shares::of(serving.most_connections)),
    });
    let listener = Listener::open(&Address::Tcp(listen))
        .with_context(|| format!("listen at {listen} for leases' clients"))?;
    let bound = listener.tcp_address()?.unwrap_or(listen);
    listener.serve(exports, door, load, serving.most_connections)?;
    Ok(Some(match &serving.address {
        Some(address) => PagesAt::Named(address.clone()),
        None if bound.ip().is_unspecified() => PagesAt::Port(bound.port()),
        None => PagesAt::Named(SocketAddr::to_string(&bound)),
    }))
}

/// A host may be enrolled long after its memory server has started, and its certificate is renewed.
fn by_tls(certificates: &ClientPaths) -> Door {
    let paths = ServerPaths {
        certificate: certificates.certificate.clone(),
        key: certificates.key.clone(),
        authority: certificates.authority.clone(),
        // Whom the authority has revoked the recruiter gives no lease, and renews none.
        revoked: None,
    };
    let loaded = OnceLock::<Arc<ServerTrust>>::new();
    // Anybody may come and ask: a line for each would fill the log.
    let told = Once::new();
    let now = move || -> Result<Arc<ServerConfig>, String> {
        if let Some(trust) = loaded.get() {
            // Of no use, those from before are gone on with.
            let _ = trust.reload_if_changed();
            return Ok(trust.config());
        }
        let trust = ServerTrust::load(&paths).map_err(|e| {
            told.call_once(|| eprintln!("gleaner-memoryd: no TLS for leases' clients yet: {e}"));
            "this host is not enrolled (gleaner-agent enroll): it has no certificate".to_owned()
        })?;
        Ok(loaded.get_or_init(|| trust).config())
    };
    Door::Tls(Arc::new(now))
}
