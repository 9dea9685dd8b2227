//! Links over TLS, with certificates on both sides.

use super::*;
use gleaner_trust::{Authority, Role, ServerPaths, ServerTrust};
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::handshake::server::{
    ErrorResponse, Request as Asking, Response,
};

/// Certificates of a deployment: an authority's, a recruiter's and a host's.
pub(super) fn certificates(folder: &Path) -> (ServerPaths, ClientPaths, Authority) {
    let pki = folder.join("pki");
    let authority = Authority::init(&pki, "test", 30).unwrap();
    let names = vec!["127.0.0.1".to_owned()];
    let server = authority.issue(&Role::Recruiter { names }, 30).unwrap();
    server
        .write(&folder.join("server.crt"), &folder.join("server.key"))
        .unwrap();
    let paths = ClientPaths {
        certificate: folder.join("host.crt"),
        key: folder.join("host.key"),
        authority: pki.join("authority.crt"),
    };
    issue_host(&authority, &paths);
    let server = ServerPaths {
        certificate: folder.join("server.crt"),
        key: folder.join("server.key"),
        authority: pki.join("authority.crt"),
        revocation_list: None,
    };
    (server, paths, authority)
}

fn issue_host(authority: &Authority, paths: &ClientPaths) {
    let host_id = HOST_ID.to_owned();
    let issued = authority.issue(&Role::Host { host_id }, 30).unwrap();
    issued.write(&paths.certificate, &paths.key).unwrap();
}

#[tokio::test]
async fn through_tls_both_sides_are_who_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client, authority) = certificates(folder.path());
    // The link waits for the enrolment.
    for path in [&client.certificate, &client.key] {
        std::fs::remove_file(path).unwrap();
    }
    let server = ServerTrust::load(&server).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(server.config());
    let (listener, url) = listen().await;
    let url = url.replace("http://", "https://");

    let settings = Settings {
        certificates: client.clone(),
        ..settings(&[&url], HOUR)
    };
    let core = Core::start(&settings);
    core.links.announce(announcement(9));
    issue_host(&authority, &client);
    let mut shown = Vec::new();
    for _ in 0..2 {
        let (stream, _) = tokio::time::timeout(PATIENCE, listener.accept())
            .await
            .unwrap()
            .unwrap();
        let stream = acceptor.accept(stream).await.unwrap();
        shown.push(stream.get_ref().1.peer_certificates().unwrap()[0].clone());
        let mut path = String::new();
        #[allow(clippy::result_large_err)] // the library's type
        let look = |asking: &Asking, response: Response| -> Result<Response, ErrorResponse> {
            path = asking.uri().path().to_owned();
            Ok(response)
        };
        let mut socket = accept_hdr_async(stream, look).await.unwrap();
        assert_eq!(path, format!("/v1/hosts/{HOST_ID}/link"));
        assert_eq!(quota_of(next(&mut socket).await), 9);
        // After a renewal, the next connection shows the new certificate.
        issue_host(&authority, &client);
    }
    assert_ne!(shown[0], shown[1]);
    core.end();

    // The link does not talk to a recruiter whose name is not in its certificate.
    let core = Core::start(&Settings {
        urls: vec![url.replace("127.0.0.1", "localhost")],
        ..settings
    });
    let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
    let (stream, _) = accepted.unwrap().unwrap();
    assert!(acceptor.accept(stream).await.is_err());
    assert!(core.waiting().is_none());
}
