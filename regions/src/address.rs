//! Memory servers on this machine that the program itself names, by their NBD URLs.

use crate::RegionError;
use gleaner_paging::nbd::client::Source;

/// Parses the URL of a server. The `host` of the result is the URL itself.
///
/// # Errors
/// [`RegionError::Settings`], also if the URL names another machine: nothing is sent there unencrypted.
pub(crate) fn parse(url: &str) -> Result<Source, RegionError> {
    let wrong = |what| RegionError::Settings { what };
    let source = Source::from_url(url).map_err(|e| wrong(e.to_string()))?;
    if !source.server.is_this_machine() {
        return Err(wrong(format!(
            "{url:?} is no port of this machine's, such as 127.0.0.1:10809; others' memory is leased, by TLS"
        )));
    }
    Ok(source)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use gleaner_paging::nbd::client::Server;

    #[test]
    fn this_machines_servers_are_spoken_to_in_the_clear_and_no_others() {
        let tcp = parse("nbd://127.0.0.1:10809/x@1").unwrap();
        assert_eq!(tcp.server, Server::Tcp("127.0.0.1:10809".to_owned()));
        assert_eq!(tcp.export, "x@1");
        let port = parse("nbd://127.0.0.1").unwrap();
        assert_eq!(port.server, Server::Tcp("127.0.0.1:10809".to_owned()));
        let unix = parse("nbd+unix:///?socket=/run/pages.sock").unwrap();
        assert_eq!(unix.server, Server::Unix("/run/pages.sock".into()));
        for url in [
            "nbd://192.0.2.1:1",
            "nbd://localhost:1", // a name may stand for any machine
            "nbd://",
            "nbd+unix:///x",
            "http://127.0.0.1:1",
            "",
        ] {
            assert!(parse(url).is_err(), "{url}");
        }
    }
}
