//! Where a recruiter is, and whether it may be spoken to as it is named.

use super::LinkError;
use std::fmt;
use std::net::IpAddr;
use tokio_tungstenite::tungstenite::http::Uri;

const PORT_OF_HTTPS: u16 = 443;
const PORT_OF_HTTP: u16 = 80;

/// A recruiter's address: `https://HOST:PORT`, or `http://` on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    text: String,
    /// Without the brackets of IPv6.
    host: String,
    port: u16,
    is_secret: bool,
}

impl Address {
    /// # Errors
    /// [`LinkError::Address`] when it is no address, or plain HTTP to another machine.
    pub(crate) fn parse(text: &str) -> Result<Self, LinkError> {
        let refuse = |what: &'static str| LinkError::Address {
            text: text.to_owned(),
            what,
        };
        let no_address = || refuse("is no address: write it like https://recruiter.example:7444");
        let text = text.trim().trim_end_matches('/');
        let uri: Uri = text.parse().map_err(|_| no_address())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(no_address());
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() || text.contains('@') {
            return Err(refuse(
                "is more than an address: leave out all after the port",
            ));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let is_here =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let is_secret = match scheme {
            "https" => true,
            "http" if is_here => false,
            "http" => return Err(refuse("is plain HTTP to another machine: use https://")),
            _ => return Err(no_address()),
        };
        let usual = if is_secret {
            PORT_OF_HTTPS
        } else {
            PORT_OF_HTTP
        };
        Ok(Self {
            text: text.to_owned(),
            host,
            port: authority.port_u16().unwrap_or(usual),
            is_secret,
        })
    }

    /// Whether it is spoken to through TLS.
    pub(super) const fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// To connect to.
    pub(super) fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The WebSocket's address of `path` there; whether through TLS is no matter of this one.
    pub(super) fn socket(&self, path: &str) -> String {
        let authority = self.text.split_once("://").map_or("", |(_, rest)| rest);
        format!("ws://{authority}{path}")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_never_leaves_this_machine() {
        for (text, host, port, is_secret) in [
            (
                "https://recruiter.example:7444",
                "recruiter.example",
                7444,
                true,
            ),
            ("https://[2001:db8::1]:7444/", "2001:db8::1", 7444, true),
            ("https://192.0.2.7", "192.0.2.7", 443, true),
            ("http://127.9.9.9:1", "127.9.9.9", 1, false),
            ("http://[::1]", "::1", 80, false),
            ("http://localhost:7444", "localhost", 7444, false),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.host_and_port(), (host, port), "{text}");
            assert_eq!(address.is_secret(), is_secret, "{text}");
        }
        for text in [
            "http://recruiter.example:7444",
            "http://192.0.2.7",
            "http://localhost.example",
            "http://127.0.0.1.example",
            "http://[::ffff:192.0.2.7]",
        ] {
            let message = Address::parse(text).unwrap_err().to_string();
            assert!(message.contains("use https://"), "{text}: {message}");
        }
        for text in [
            "",
            "recruiter",
            "recruiter:7444",
            "ws://127.0.0.1",
            "https://x/y",
            "https://me@x",
            "https:// x",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
        let address = Address::parse("https://[2001:db8::1]:7444/").unwrap();
        assert_eq!(address.socket("/v1"), "ws://[2001:db8::1]:7444/v1");
    }
}
