//! Memory servers that a program names itself: NBD's own URLs, of this machine.

use crate::RegionError;
use gleaner_paging::nbd::client::{Server, Source};

/// Parses the URL of a server; its host is the URL itself.
///
/// # Errors
/// [`RegionError::Settings`]: also for other machines, to whom nothing is sent in the clear.
pub(crate) fn parse(url: &str) -> Result<Source, RegionError> {
    let wrong = |what: &str| RegionError::Settings {
        what: format!("{url:?} {what}"),
    };
    let no_url = || wrong("is no server: nbd://127.0.0.1:10809 or nbd+unix:///?socket=PATH");
    let (server, export) = if let Some(rest) = url.strip_prefix("nbd+unix:///") {
        let (export, path) = rest.split_once("?socket=").ok_or_else(no_url)?;
        (Server::Unix(path.into()), export)
    } else {
        let rest = url.strip_prefix("nbd://").ok_or_else(no_url)?;
        let (at, export) = rest.split_once('/').unwrap_or((rest, ""));
        (Server::Tcp(at.to_owned()), export)
    };
    if !server.is_this_machine() {
        return Err(wrong(
            "is no port of this machine's, such as 127.0.0.1:10809; others' memory is leased, by TLS",
        ));
    }
    Ok(Source {
        host: url.to_owned(),
        server,
        export: export.to_owned(),
        tls: None,
        lease: None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn this_machines_servers_are_spoken_to_in_the_clear_and_no_others() {
        let tcp = parse("nbd://127.0.0.1:10809/x@1").unwrap();
        assert_eq!(tcp.server, Server::Tcp("127.0.0.1:10809".to_owned()));
        assert_eq!(tcp.export, "x@1");
        let unix = parse("nbd+unix:///?socket=/run/pages.sock").unwrap();
        assert_eq!(unix.server, Server::Unix("/run/pages.sock".into()));
        for url in [
            "nbd://192.0.2.1:1",
            "nbd://localhost:1", // a name may lead anywhere
            "nbd://127.0.0.1",
            "nbd+unix:///x",
            "http://127.0.0.1:1",
            "",
        ] {
            assert!(parse(url).is_err(), "{url}");
        }
    }
}
