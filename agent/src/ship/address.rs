//! Where the collector is, and whether it may be spoken to as it is named.

use crate::Error;
use std::fmt;
use std::net::IpAddr;
use ureq::http::Uri;

/// A collector's address: `https://HOST:PORT`, or `http://` on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    text: String,
    is_secret: bool,
}

impl Address {
    /// # Errors
    /// [`Error::Collector`] when it is no address, or plain HTTP to another machine.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |what: &str| Error::Collector {
            what: format!("{text:?} {what}"),
        };
        let text = text.trim().trim_end_matches('/');
        let no_address = || refuse("is no address: write it like https://collector.example:7443");
        let uri: Uri = text.parse().map_err(|_| no_address())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(no_address());
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() || text.contains('@') {
            return Err(refuse(
                "is more than an address: leave out all after the port",
            ));
        }
        let is_secret = match scheme {
            "https" => true,
            "http" if is_this_machine(authority.host()) => false,
            "http" => {
                return Err(refuse(
                    "would send the trace in the clear to another machine: use https://",
                ));
            }
            _ => return Err(no_address()),
        };
        Ok(Self {
            text: text.to_owned(),
            is_secret,
        })
    }

    /// Whether it is spoken to through TLS.
    pub(crate) const fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// The address of `path` there.
    pub(crate) fn of(&self, path: &str) -> String {
        format!("{}{path}", self.text)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_never_leaves_this_machine() {
        for (text, is_secret) in [
            ("https://collector.example:7443", true),
            ("https://192.0.2.7", true),
            ("https://[2001:db8::1]:7443/", true),
            ("http://127.0.0.1:7443", false),
            ("http://127.9.9.9:1", false),
            ("http://[::1]:7443/", false),
            ("http://localhost:7443", false),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.is_secret(), is_secret, "{text}");
            assert_eq!(
                address.of("/v1/mark"),
                format!("{}/v1/mark", text.trim_end_matches('/'))
            );
        }
        for text in [
            "http://collector.example:7443",
            "http://192.0.2.7:7443",
            "http://localhost.example:7443",
            "http://127.0.0.1.example:7443",
            "http://[2001:db8::1]:7443",
            "http://[::ffff:192.0.2.7]",
        ] {
            let message = Address::parse(text).unwrap_err().to_string();
            assert!(message.contains("in the clear"), "{text}: {message}");
        }
        for text in [
            "",
            "collector",
            "collector:7443",
            "ftp://127.0.0.1",
            "https://",
            "https://x/y",
            "https://x?y",
            "https://me@x",
            "https:// x",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
