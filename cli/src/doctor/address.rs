//! Where a server is: `https://HOST:PORT`, or `http://` on this machine.

use std::net::IpAddr;

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// Without the brackets of IPv6.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_secret: bool,
}

impl Address {
    /// What is wrong with it, for people.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let wrong =
            || format!("{url:?} is no address: write it like https://collector.example:7443");
        let (scheme, rest) = url
            .trim()
            .trim_end_matches('/')
            .split_once("://")
            .ok_or_else(wrong)?;
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
                (host, port.strip_prefix(':'))
            }
            None => rest
                .split_once(':')
                .map_or((rest, None), |(host, port)| (host, Some(port))),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-:%".contains(c);
        if host.is_empty() || !host.chars().all(is_name) {
            return Err(wrong());
        }
        let is_secret = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(wrong()),
        };
        let port = match port {
            Some(port) => port.parse().map_err(|_| wrong())?,
            None if is_secret => 443,
            None => 80,
        };
        let address = Self {
            host: host.to_owned(),
            port,
            is_secret,
        };
        match is_secret || address.is_here() {
            true => Ok(address),
            false => Err(format!(
                "{url} would go in the clear to another machine: use https://"
            )),
        }
    }

    /// Whether the server is on this machine.
    pub(super) fn is_here(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let parsed = |url| Address::parse(url).map(|a| (a.host, a.port, a.is_secret));
        assert_eq!(
            parsed("https://c.example:7443/"),
            Ok(("c.example".to_owned(), 7443, true))
        );
        assert_eq!(
            parsed("https://[2001:db8::1]:7"),
            Ok(("2001:db8::1".to_owned(), 7, true))
        );
        assert_eq!(parsed("https://c"), Ok(("c".to_owned(), 443, true)));
        assert_eq!(
            parsed("http://127.0.0.1:1"),
            Ok(("127.0.0.1".to_owned(), 1, false))
        );
        for wrong in [
            "",
            "c:7443",
            "https://",
            "https://[::1",
            "ftp://c",
            "https://c:x",
            "https://c/x:1",
            "http://c:1",
            "https://a b",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_address_is_too_strange(text in "(https?://)?\\PC{0,40}") {
            let _ = Address::parse(&text);
        }
    }
}
