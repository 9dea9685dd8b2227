//! Memory servers, given by address or by lease, with the means to authenticate them.

use super::connect::Server;
use super::tls::Tls;

/// A memory server and the export to request from it.
#[derive(Clone, Debug)]
pub struct Source {
    /// Host that holds the pages; copies of a page need different hosts.
    pub host: String,
    /// Address of the server.
    pub server: Server,
    /// Name of the export: [`crate::nbd::export_name`] of a lease.
    pub export: String,
    /// TLS settings; absent for an unencrypted connection.
    pub tls: Option<Tls>,
    /// Id of the lease; `None`: the user named the server, which needs no lease.
    pub lease: Option<String>,
}

/// Error of an address that names no NBD server.
#[derive(Debug, thiserror::Error)]
#[error("{url:?} is no address of an NBD server: {}", Server::URLS)]
pub struct ExportUrlError {
    url: String,
}

impl Source {
    /// Parses the address of a server that the user named, as libnbd writes it (doc/uri.md of the
    /// NetworkBlockDevice project).
    ///
    /// # Errors
    /// [`ExportUrlError`] for a URL of another form.
    pub fn from_url(url: &str) -> Result<Self, ExportUrlError> {
        let (server, export) = Server::of_url(url).ok_or_else(|| ExportUrlError {
            url: url.to_owned(),
        })?;
        Ok(Self {
            host: url.to_owned(),
            server,
            export: export.to_owned(),
            tls: None,
            lease: None,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_libnbd_writes_them() {
        let read = |url| Source::from_url(url).map(|source| (source.server, source.export));
        let tcp = |address: &str| Server::Tcp(address.to_owned());
        let golden = [
            ("nbd://127.0.0.1:4000", tcp("127.0.0.1:4000"), ""),
            ("nbd://host", tcp("host:10809"), ""),
            ("nbd://[::1]:99/a@b", tcp("[::1]:99"), "a@b"),
            (
                "nbd+unix:///?socket=/run/x",
                Server::Unix("/run/x".into()),
                "",
            ),
        ];
        for (url, server, export) in golden {
            assert_eq!(read(url).unwrap(), (server, export.to_owned()), "{url}");
        }
        for url in ["", "nbd://", "nbd+unix:///", "http://host", "host:10809"] {
            assert!(read(url).is_err(), "{url}");
        }
    }
}
