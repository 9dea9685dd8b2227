//! Connecting to servers, each attempt on a thread of its own, again and again while there is hope.

use super::{Handle, Message};
use crate::nbd::client::{Server, Tls, connect};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// One attempt.
const PATIENCE: Duration = Duration::from_secs(3);
/// Until the next attempt, at first and at most.
const LEAST_PAUSE_US: i64 = 100_000;
const MOST_PAUSE_US: i64 = 5_000_000;

/// A memory server, and what to ask it for.
#[derive(Clone, Debug)]
pub struct Source {
    /// Which host: copies are on different ones.
    pub host: String,
    /// Where.
    pub server: Server,
    /// What it calls the pages: [`crate::nbd::export_name`] of a lease.
    pub export: String,
    /// How it shows that it is the one.
    pub tls: Option<Tls>,
    /// The lease; `None`: it was given by hand, and stays.
    pub lease: Option<String>,
}

/// Why an address is none.
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

/// When to connect.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    is_under_way: bool,
    pause_us: i64,
    not_before_us: i64,
}

impl Attempts {
    /// Begins one, unless it is too early.
    pub(super) fn begin(&mut self, number: u32, source: &Source, handle: &Handle, now_us: i64) {
        if self.is_under_way || now_us < self.not_before_us {
            return;
        }
        let (source, handle) = (source.clone(), handle.clone());
        let attempt = move || {
            let made = connect(
                &source.server,
                &source.export,
                source.tls.as_ref(),
                PATIENCE,
            );
            handle.tell(Message::Connected(number, made));
        };
        self.is_under_way = thread::Builder::new()
            .name("connect".to_owned())
            .spawn(attempt)
            .is_ok();
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Not before the refraction period is over.
    pub(super) fn refrain(&mut self, now_us: i64, refraction_us: i64) {
        self.not_before_us = now_us.saturating_add(refraction_us);
    }

    pub(super) fn failed(&mut self, now_us: i64) {
        self.is_under_way = false;
        self.pause_us = (self.pause_us * 2).clamp(LEAST_PAUSE_US, MOST_PAUSE_US);
        self.not_before_us = now_us + self.pause_us;
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
