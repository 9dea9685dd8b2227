//! URLs of files below a source's URL.

use std::fmt::Write;
use ureq::http::Uri;

/// Reason why a text is not the URL of a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no URL of a source: {reason}; write it like https://files.example/tools")]
pub struct UrlError {
    text: String,
    reason: &'static str,
}

/// URL of the sealed folder, without a final `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base(String);

impl Base {
    pub(super) fn parse(text: &str) -> Result<Self, UrlError> {
        let wrong = |reason| UrlError {
            text: text.to_owned(),
            reason,
        };
        let uri: Uri = text.parse().map_err(|_| wrong("it is malformed"))?;
        if !matches!(uri.scheme_str(), Some("https" | "http")) {
            return Err(wrong("its scheme is neither https nor http"));
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(wrong("it has no host"));
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(wrong("it has a query or a fragment"));
        }
        if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return Err(wrong(
                "it has a user name, which would be visible in lists of processes",
            ));
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }

    /// URL of the file at a path of the catalog.
    pub(super) fn join(&self, path: &[u8]) -> String {
        let mut url = String::with_capacity(self.0.len() + path.len() + 1);
        url.push_str(&self.0);
        url.push('/');
        for byte in path {
            match byte {
                // Characters that a URL's path may have unescaped (RFC 3986, 2.3), and the slash.
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                    url.push(char::from(*byte));
                }
                other => {
                    let _ = write!(url, "%{other:02X}"); // writing to a String cannot fail
                }
            }
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_byte_by_byte() {
        for (base, path, url) in [
            ("https://files.example", "a/b", "https://files.example/a/b"),
            ("https://files.example/", "a", "https://files.example/a"),
            (
                "http://[::1]:8080/tools/",
                "lib/a b+c%20#?é",
                "http://[::1]:8080/tools/lib/a%20b%2Bc%2520%23%3F%C3%A9",
            ),
        ] {
            assert_eq!(Base::parse(base).unwrap().join(path.as_bytes()), url);
        }
        let base = Base::parse("https://x").unwrap();
        assert_eq!(base.join(b"\xff\n"), "https://x/%FF%0A");
    }

    #[test]
    fn other_urls_are_rejected() {
        for text in [
            "ftp://files.example",
            "https://",
            "https:///a",
            "https://files.example/a?b",
            "https://files.example/a#b",
            "https://me@files.example/a",
            "https://a b",
        ] {
            assert!(Base::parse(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_path_is_recovered_from_its_url(path in proptest::collection::vec(1_u8.., 1..60)) {
            let url = Base::parse("https://x/y").unwrap().join(&path);
            let uri: Uri = url.parse().unwrap();
            let mut found = Vec::new();
            let mut rest = uri.path().strip_prefix("/y/").unwrap().bytes();
            while let Some(byte) = rest.next() {
                if byte == b'%' {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    let digits = std::str::from_utf8(&digits).unwrap();
                    found.push(u8::from_str_radix(digits, 16).unwrap());
                } else {
                    found.push(byte);
                }
            }
            proptest::prop_assert_eq!(found, path);
        }
    }
}
