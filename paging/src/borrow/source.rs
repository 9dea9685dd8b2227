//! The memory server of a lease, as described by the recruiter.

use crate::nbd::client::{Server, Source, Tls};
use crate::nbd::export_name;
use gleaner_schemas::lending::LeaseView;
use gleaner_trust::ClientTrust;
use rustls::pki_types::ServerName;

/// Reason why a granted lease cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableLease {
    /// The host announces no address for its pages.
    #[error("host {host} serves no pages: `listen` in its memoryd.toml does that")]
    NoAddress {
        /// Id of the host.
        host: String,
    },
    /// TLS is required and there is no certificate.
    #[error(
        "host {host} is elsewhere, and there is no certificate: `gleaner pki issue --client` makes one"
    )]
    NoCertificate {
        /// Id of the host.
        host: String,
    },
    /// The host's name is not valid in a certificate.
    #[error("host {host:?}: {source}")]
    Name {
        /// Id of the host.
        host: String,
        /// Fault of the name.
        source: rustls::pki_types::InvalidDnsNameError,
    },
}

/// Returns the server of a lease's pages with its authentication: TLS, or none if the server is on
/// this machine.
///
/// # Errors
/// [`UnusableLease`].
pub fn source(view: LeaseView, trust: Option<&ClientTrust>) -> Result<Source, UnusableLease> {
    let LeaseView {
        lease,
        host_id: host,
        address,
        ..
    } = view;
    let Some(address) = address else {
        return Err(UnusableLease::NoAddress { host });
    };
    let server = Server::of_lease(address);
    let tls = match trust {
        Some(trust) => match ServerName::try_from(host.clone()) {
            Ok(name) => Some(Tls {
                config: trust.credentials().config(),
                name,
            }),
            Err(source) => return Err(UnusableLease::Name { host, source }),
        },
        None if server.is_this_machine() => None,
        None => return Err(UnusableLease::NoCertificate { host }),
    };
    Ok(Source {
        host,
        server,
        export: export_name(&lease.lease_id, lease.generation),
        tls,
        lease: Some(lease.lease_id),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use gleaner_schemas::lending::Lease;

    #[test]
    fn a_lease_is_reached_in_the_clear_on_this_machine_alone() {
        let at = |address: Option<&str>| {
            let view = LeaseView {
                lease: Lease {
                    lease_id: "a".to_owned(),
                    generation: 7,
                    ..Lease::default()
                },
                host_id: "h".to_owned(),
                address: address.map(str::to_owned),
                is_reachable: true,
            };
            source(view, None)
        };
        let here = at(Some("127.0.0.1:10809")).unwrap();
        assert_eq!(here.server, Server::Tcp("127.0.0.1:10809".to_owned()));
        assert_eq!(here.export, export_name("a", 7));
        assert_eq!(
            (here.lease.as_deref(), here.tls.is_none()),
            (Some("a"), true)
        );
        for elsewhere in ["192.0.2.1:10809", "localhost:10809"] {
            let failed = at(Some(elsewhere)).unwrap_err();
            assert!(matches!(failed, UnusableLease::NoCertificate { .. }));
        }
        assert!(matches!(at(None), Err(UnusableLease::NoAddress { .. })));
    }
}
