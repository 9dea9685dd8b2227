//! Memory servers, by address or by lease: where they are and how they show that they are the ones.

use super::connect::Server;
use super::tls::Tls;
use std::path::PathBuf;

/// A memory server, and what to ask it for.
#[derive(Clone, Debug)]
pub struct Source {
    /// Host that holds the pages: copies lie on different ones.
    pub host: String,
    /// Address of the server.
    pub server: Server,
    /// Name of the export: [`crate::nbd::export_name`] of a lease.
    pub export: String,
    /// TLS settings; absent where the connection stays in the clear.
    pub tls: Option<Tls>,
    /// The lease; `None`: it was given by hand, and stays.
    pub lease: Option<String>,
}

/// Error of an address that names no NBD server.
#[derive(Debug, thiserror::Error)]
#[error(
    "{url:?} is no address of an NBD server: nbd://HOST:PORT, nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH"
)]
pub struct AddressError {
    url: String,
}

impl Source {
    /// A server that was given by hand, as libnbd writes its address (doc/uri.md of the NetworkBlockDevice project).
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn from_url(url: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError {
            url: url.to_owned(),
        };
        let (server, export) = if let Some(rest) = url.strip_prefix("nbd+unix:///") {
            let (export, socket) = rest.split_once("?socket=").ok_or_else(wrong)?;
            (Server::Unix(PathBuf::from(socket)), export)
        } else {
            let rest = url.strip_prefix("nbd://").ok_or_else(wrong)?;
            let (address, export) = rest.split_once('/').unwrap_or((rest, ""));
            let has_port = address
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
            let address = match has_port {
                true => address.to_owned(),
                false if address.is_empty() => return Err(wrong()),
                false => format!("{address}:10809"), // IANA's for NBD
            };
            (Server::Tcp(address), export)
        };
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
