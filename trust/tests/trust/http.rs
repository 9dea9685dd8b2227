//! Enrolment of a new host over HTTPS, with the agent's HTTP client.

use crate::deployment::{Deployment, HOST, collector};
use gleaner_trust::http::{HttpClient, Limits};
use gleaner_trust::{ClientPaths, ClientTrust, Credentials, KeyAndRequest, Peer, ServerTrust};
use rustls::{ServerConnection, StreamOwned};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// Starts a server that answers every GET with the caller's identity, one connection per request. It runs
/// until the test ends.
fn serve(trust: Arc<ServerTrust>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let connection = ServerConnection::new(trust.config()).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, socket.unwrap()));
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|n| n > 2) {
                line.clear(); // reads up to the empty line after the head
            }
            let stream = stream.get_mut();
            let who = match stream.conn.peer_certificates() {
                Some([first, ..]) => Peer::of(first).unwrap().to_string(),
                _ => "nobody".to_owned(),
            };
            let length = who.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close");
            let _ = stream.write_all(format!("{head}\r\n\r\n{who}").as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    address
}

/// HTTP client as the agent's shipper makes it.
fn agent(credentials: &Credentials) -> ureq::Agent {
    let limits = Limits {
        whole: Some(Duration::from_secs(60)),
        ..Limits::default()
    };
    let client = HttpClient::with_credentials("test", credentials, limits).unwrap();
    client.agent().clone()
}

#[test]
fn from_token_to_host_over_https() {
    let deployment = Deployment::new();
    let authority = &deployment.authority;
    deployment.issue("collector", &collector());
    let paths = deployment.server_paths("collector");
    let server = ServerTrust::load_allowing_anonymous(&paths).unwrap();
    let url = format!("https://{}/", serve(server.clone()));
    let ask = |credentials: &Credentials| -> Result<String, ureq::Error> {
        agent(credentials)
            .get(&url)
            .call()?
            .body_mut()
            .read_to_string()
    };

    let token = authority.new_token(Duration::from_secs(60), None).unwrap();
    let new = Credentials::for_enrolment(authority.certificate_pem(), &token).unwrap();
    assert_eq!(ask(&new).unwrap(), "nobody");

    let own = KeyAndRequest::new().unwrap();
    let now = std::time::SystemTime::now();
    let pem = authority.enroll(&token, HOST, &own.request_pem, 90, now);
    fs::write(deployment.path("host.key"), &own.key_pem).unwrap();
    fs::write(deployment.path("host.crt"), pem.unwrap()).unwrap();
    let client = ClientTrust::load(&deployment.client_paths("host")).unwrap();
    assert_eq!(ask(&client.credentials()).unwrap(), format!("host {HOST}"));

    authority.revoke(HOST).unwrap();
    assert!(server.reload_if_changed().unwrap());
    let refused = ask(&client.credentials()).unwrap_err().to_string();
    assert!(refused.contains("CertificateRevoked"), "{refused}");
}

#[test]
fn a_key_of_another_certificate_is_an_error_before_ureq_would_panic() {
    let deployment = Deployment::new();
    deployment.issue("host", &crate::deployment::host(HOST));
    deployment.issue("other", &crate::deployment::host(HOST));
    let mixed = ClientPaths {
        key: deployment.path("other.key"),
        ..deployment.client_paths("host")
    };
    let refused = ClientTrust::load(&mixed).err().unwrap();
    assert!(
        matches!(refused, gleaner_trust::TrustError::Mismatch { .. }),
        "{refused}"
    );
}
