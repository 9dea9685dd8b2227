//! Addresses of Gleaner's own servers (collector, recruiter). Plain HTTP is allowed only to an address of
//! this machine.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use ureq::http::Uri;

const PORT_OF_HTTPS: u16 = 443;
const PORT_OF_HTTP: u16 = 80;

/// Address of a server: `https://HOST:PORT`, or `http://HOST:PORT` for a server on this machine. The default
/// port is that of the scheme: 443 or 80.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Scheme, host and port, as given but without a final `/`.
    text: String,
    /// Host, without the brackets of IPv6.
    host: String,
    port: u16,
    is_secret: bool,
}

/// Reason why a text is not the address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The scheme is neither `http` nor `https`, the host is missing, or the port is no number.
    #[error("{0:?} is no address: write it like https://server.example:7443")]
    Malformed(String),
    /// The text has a user, a path or a query in addition to host and port.
    #[error("{0:?} has more than host and port: leave out the rest")]
    TooLong(String),
    /// Plain HTTP to another machine is not allowed.
    #[error("{0:?} would be an unencrypted connection to another machine: use https://")]
    Clear(String),
}

impl Address {
    /// # Errors
    /// [`AddressError`] with a text for display.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let malformed = || AddressError::Malformed(text.to_owned());
        let trimmed = text.trim().trim_end_matches('/');
        let uri: Uri = trimmed.parse().map_err(|_| malformed())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(malformed());
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() || trimmed.contains(['@', '#'])
        {
            return Err(AddressError::TooLong(text.to_owned()));
        }
        let is_secret = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(malformed()),
        };
        let host = authority.host();
        let port = match authority.as_str().strip_prefix(host) {
            Some("") if is_secret => PORT_OF_HTTPS,
            Some("") => PORT_OF_HTTP,
            Some(rest) => rest
                .strip_prefix(':')
                .and_then(|port| port.parse().ok())
                .ok_or_else(malformed)?,
            None => return Err(malformed()),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(malformed());
        }
        let address = Self {
            text: format!("{scheme}://{authority}"),
            host: host.to_owned(),
            port,
            is_secret,
        };
        if !is_secret && !address.is_here() {
            return Err(AddressError::Clear(text.to_owned()));
        }
        Ok(address)
    }

    /// Returns true if connections use TLS.
    #[must_use]
    pub const fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// Returns true if the address is this machine's: `localhost`, or a loopback address.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Host name or IP address, without the brackets of IPv6.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port to connect to.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as in a URL: IPv6 in brackets, the port only if one was given.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.text.split_once("://").map_or("", |(_, rest)| rest)
    }

    /// URL of `path` on this server; `path` begins with `/`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.text)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, host, port, is_secret) in [
            (
                "https://recruiter.example:7444",
                "recruiter.example",
                7444,
                true,
            ),
            ("https://[2001:db8::1]:7444/", "2001:db8::1", 7444, true),
            (" https://192.0.2.7 ", "192.0.2.7", 443, true),
            ("HTTPS://c", "c", 443, true),
            ("http://127.9.9.9:1", "127.9.9.9", 1, false),
            ("http://[::1]", "::1", 80, false),
            ("http://localhost:7444", "localhost", 7444, false),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.host(), address.port()), (host, port), "{text}");
            assert_eq!(address.is_secret(), is_secret, "{text}");
        }
        let address = Address::parse("https://[2001:db8::1]:7444/").unwrap();
        assert_eq!(address.authority(), "[2001:db8::1]:7444");
        assert_eq!(
            address.url("/v1/mark"),
            "https://[2001:db8::1]:7444/v1/mark"
        );
        assert_eq!(address.to_string(), "https://[2001:db8::1]:7444");
        assert!(!address.is_here());
    }

    #[test]
    fn plain_http_never_leaves_this_machine() {
        for text in [
            "http://collector.example:7443",
            "http://192.0.2.7",
            "http://localhost.example",
            "http://127.0.0.1.example:7443",
            "http://[2001:db8::1]:7443",
            "http://[::ffff:192.0.2.7]",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert_eq!(error, AddressError::Clear(text.to_owned()), "{text}");
        }
    }

    #[test]
    fn whatever_is_no_host_and_port_is_refused() {
        for text in [
            "",
            "collector",
            "collector:7443",
            "ftp://127.0.0.1",
            "ws://127.0.0.1",
            "https://",
            "https://:7443",
            "https://[]:7443",
            "https://[::1",
            "https://c:x",
            "https://c:",
            "https://c:65536",
            "https:// x",
            "https://a b",
            "https://x/y",
            "https://c/x:1",
            "https://x?y",
            "https://x#y",
            "https://me@x",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange(text in "(https?://)?\\PC{0,40}") {
            if let Ok(address) = Address::parse(&text) {
                assert_eq!(Address::parse(&address.to_string()).as_ref(), Ok(&address));
            }
        }
    }
}
