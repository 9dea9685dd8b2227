//! Tests the permissions of callers, over real TLS.

use crate::made::{body, id, sequences};
use crate::running::{Answer, Collector, try_get, try_post, wait_for};
use gleaner_trust::{
    AUTHORITY_DAYS, Authority, ClientPaths, ClientTrust, Credentials, IssuedCertificate,
    KeyAndRequest, Role,
};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use ureq::Agent;

/// A collector's authority, and clients with certificates of this authority.
pub(crate) struct Deployment {
    folder: tempfile::TempDir,
    pub(crate) authority: Authority,
}

impl Deployment {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::init(&folder.path().join("pki"), "test", AUTHORITY_DAYS);
        let deployment = Self {
            authority: authority.unwrap(),
            folder,
        };
        deployment.renew_collector();
        deployment
    }

    fn renew_collector(&self) {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let issued = self
            .authority
            .issue(&Role::Collector { names }, 365)
            .unwrap();
        self.write("pki/collector", &issued);
    }

    fn write(&self, name: &str, issued: &IssuedCertificate) {
        // The key is written first, since a key and a certificate that do not match are not loaded.
        fs::write(self.path(&format!("{name}.key")), &issued.key_pem).unwrap();
        fs::write(self.path(&format!("{name}.crt")), &issued.certificate_pem).unwrap();
    }

    pub(crate) fn pki(&self) -> PathBuf {
        self.path("pki")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn start(&self, more: &str) -> Collector {
        let pki = self.path("pki");
        let more = format!("listen = \"127.0.0.1:0\"\npki = {pki:?}\n{more}");
        Collector::start(self.folder.path(), &more)
    }

    pub(crate) fn host(&self, host_id: &str) -> Agent {
        let host_id = host_id.to_owned();
        self.client(&self.authority, &Role::Host { host_id })
    }

    pub(crate) fn reader(&self) -> Agent {
        let name = "analyst".to_owned();
        self.client(&self.authority, &Role::Reader { name })
    }

    /// Makes a client that has a certificate of `issuer` and trusts the collector.
    fn client(&self, issuer: &Authority, role: &Role) -> Agent {
        let name = role.name();
        self.write(&name, &issuer.issue(role, 90).unwrap());
        self.client_of_files(&name)
    }

    fn client_of_files(&self, name: &str) -> Agent {
        let paths = ClientPaths {
            certificate: self.path(&format!("{name}.crt")),
            key: self.path(&format!("{name}.key")),
            authority: self.path("pki/authority.crt"),
        };
        agent(&ClientTrust::load(&paths).unwrap().credentials())
    }

    pub(crate) fn stranger(&self) -> Agent {
        let token = self.authority.new_token(Duration::from_secs(60), None);
        let pem = self.authority.certificate_pem();
        agent(&Credentials::for_enrolment(pem, &token.unwrap()).unwrap())
    }
}

/// Opens a connection as a client without a certificate.
pub(crate) fn strangers_connection(
    deployment: &Deployment,
    url: &str,
) -> rustls::StreamOwned<rustls::ClientConnection, std::net::TcpStream> {
    let token = deployment
        .authority
        .new_token(Duration::from_secs(60), None)
        .unwrap();
    let pem = deployment.authority.certificate_pem();
    let config = Credentials::for_enrolment(pem, &token).unwrap().config();
    let socket = std::net::TcpStream::connect(url.trim_start_matches("https://")).unwrap();
    let connection = rustls::ClientConnection::new(config, "localhost".try_into().unwrap());
    rustls::StreamOwned::new(connection.unwrap(), socket)
}

fn agent(credentials: &Credentials) -> Agent {
    Agent::config_builder()
        .tls_config(gleaner_trust::http::tls(credentials).unwrap())
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(90)))
        .build()
        .into()
}

fn send(collector: &Collector, agent: &Agent, body: &[u8]) -> Result<Answer, ureq::Error> {
    let url = collector.tls_url.as_deref().unwrap();
    try_post(agent, &format!("{url}/v1/batches"), body)
}

fn get(collector: &Collector, agent: &Agent, path: &str) -> Answer {
    let url = collector.tls_url.as_deref().unwrap();
    try_get(agent, &format!("{url}{path}")).unwrap()
}

#[test]
fn a_host_writes_its_own_rows_and_nobody_elses() {
    let deployment = Deployment::new();
    let collector = deployment.start("");
    let (own, other) = (id(1), id(7));
    let host = deployment.host(&own);
    assert_eq!(
        send(&collector, &host, &body(&own, &id(2), 1..=3))
            .unwrap()
            .0,
        200
    );
    let (status, answer) = send(&collector, &host, &body(&other, &id(2), 1..=3)).unwrap();
    assert_eq!(status, 403, "{answer}");
    assert!(
        answer["error"].as_str().unwrap().contains(&other),
        "{answer}"
    );
    assert_eq!(answer["retry"], false);
    let mark = |host_id: &str| format!("/v1/mark?host={host_id}&database={}", id(2));
    assert_eq!(
        get(&collector, &host, &mark(&own)).1["acknowledged_sequence"],
        3
    );
    assert_eq!(get(&collector, &host, &mark(&other)).0, 403);
    assert_eq!(get(&collector, &host, "/v1/status").0, 403);
    collector.hear("refused");
    // The other clients can still send.
    let honest = deployment.host(&other);
    assert_eq!(
        send(&collector, &honest, &body(&other, &id(3), 1..=1))
            .unwrap()
            .0,
        200
    );
    collector.seal();
    assert_eq!(sequences(&collector.dataset(), &own), [1, 2, 3]);
    assert_eq!(sequences(&collector.dataset(), &other), [1]);
}

#[test]
fn readers_read_and_strangers_do_neither() {
    let deployment = Deployment::new();
    let collector = deployment.start("");
    let reader = deployment.reader();
    let batch = body(&id(1), &id(2), 1..=1);
    assert_eq!(send(&collector, &reader, &batch).unwrap().0, 403);
    assert_eq!(get(&collector, &reader, "/v1/status").0, 200);
    let name = || "grace".to_owned();
    let admin = deployment.client(&deployment.authority, &Role::Admin { name: name() });
    assert_eq!(send(&collector, &admin, &batch).unwrap().0, 403);
    assert_eq!(get(&collector, &admin, "/v1/status").0, 200);
    let client = deployment.client(&deployment.authority, &Role::Client { name: name() });
    let (status, answer) = send(&collector, &client, &batch).unwrap();
    assert_eq!(status, 403);
    let why = answer["error"].as_str().unwrap();
    assert!(
        why.contains("client grace") && why.contains("recruiter"),
        "{why}"
    );
    assert_eq!(get(&collector, &client, "/v1/status").0, 403);
    assert_eq!(get(&collector, &client, "/v1/tables").0, 403);
    let stranger = deployment.stranger();
    let (status, answer) = send(&collector, &stranger, &batch).unwrap();
    assert_eq!(status, 401);
    assert!(
        answer["error"].as_str().unwrap().contains("enroll"),
        "{answer}"
    );
    assert_eq!(get(&collector, &stranger, "/v1/status").0, 401);
    assert_eq!(get(&collector, &stranger, "/metrics").0, 401);

    let foreign = tempfile::tempdir().unwrap();
    let foreign = Authority::init(&foreign.path().join("pki"), "other", 10).unwrap();
    let impostor = deployment.client(&foreign, &Role::Host { host_id: id(1) });
    let refused = send(&collector, &impostor, &batch).unwrap_err().to_string();
    assert!(
        refused.contains("UnknownCA") || refused.contains("unknown"),
        "{refused}"
    );
    collector.hear("refused 127.0.0.1");
}

#[test]
fn a_revoked_host_is_refused_on_the_connection_that_it_has() {
    let deployment = Deployment::new();
    let collector = deployment.start("");
    let (bad, good) = (id(1), id(2));
    let (revoked, kept) = (deployment.host(&bad), deployment.host(&good));
    for (agent, host) in [(&revoked, &bad), (&kept, &good)] {
        assert_eq!(
            send(&collector, agent, &body(host, &id(9), 1..=1))
                .unwrap()
                .0,
            200
        );
    }
    deployment.authority.revoke(&bad).unwrap();
    wait_for("the revocation to be taken up", || {
        match send(&collector, &revoked, &body(&bad, &id(9), 2..=2)) {
            Ok((status, answer)) => {
                assert!([200, 401].contains(&status), "{answer}");
                status == 401
            }
            Err(_) => true, // new connections are refused in the handshake
        }
    });
    assert_eq!(
        send(&collector, &kept, &body(&good, &id(9), 2..=2))
            .unwrap()
            .0,
        200
    );
}

#[test]
fn the_collectors_certificate_rotates_without_a_restart() {
    let deployment = Deployment::new();
    let collector = deployment.start("");
    let serial = || {
        let host = tls_serial(&deployment, collector.tls_url.as_deref().unwrap());
        assert!(!host.is_empty());
        host
    };
    let before = serial();
    deployment.renew_collector();
    wait_for("the new certificate to be shown", || serial() != before);
    let host = deployment.host(&id(1));
    assert_eq!(
        send(&collector, &host, &body(&id(1), &id(2), 1..=1))
            .unwrap()
            .0,
        200
    );
}

/// Serial number of the certificate that the collector shows, as sent in the handshake.
fn tls_serial(deployment: &Deployment, url: &str) -> Vec<u8> {
    let mut stream = strangers_connection(deployment, url);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).unwrap();
    }
    stream.conn.peer_certificates().unwrap()[0].to_vec()
}

#[test]
fn a_new_host_enrols_with_a_token_once_and_renews_by_itself() {
    let deployment = Deployment::new();
    let collector = deployment.start("");
    let url = collector.tls_url.clone().unwrap();
    let stranger = deployment.stranger();
    let (status, authority) = try_get(&stranger, &format!("{url}/v1/authority")).unwrap();
    assert_eq!(status, 200);
    assert_eq!(
        authority.as_str(),
        Some(deployment.authority.certificate_pem())
    );

    let token = deployment
        .authority
        .new_token(Duration::from_secs(60), None)
        .unwrap();
    let own = KeyAndRequest::new().unwrap();
    let ask = |token: &str, host: &str| {
        let asked = json!({ "token": token, "host_id": host, "request_pem": own.request_pem });
        post_json(&stranger, &format!("{url}/v1/enroll"), &asked)
    };
    assert_eq!(ask("nonsense", &id(1)).0, 403);
    let (status, granted) = ask(&token, &id(1));
    assert_eq!(status, 200, "{granted}");
    assert_eq!(ask(&token, &id(5)).0, 403);

    let certificate_pem = granted["certificate_pem"].as_str().unwrap().to_owned();
    let key_pem = own.key_pem.clone();
    deployment.write(
        "own",
        &IssuedCertificate {
            certificate_pem,
            key_pem,
        },
    );
    let host = deployment.client_of_files("own");
    assert_eq!(
        send(&collector, &host, &body(&id(1), &id(2), 1..=2))
            .unwrap()
            .0,
        200
    );

    let next = KeyAndRequest::new().unwrap();
    let asked = json!({ "request_pem": next.request_pem });
    assert_eq!(
        post_json(&stranger, &format!("{url}/v1/renew"), &asked).0,
        401
    );
    let (status, granted) = post_json(&host, &format!("{url}/v1/renew"), &asked);
    assert_eq!(status, 200, "{granted}");
    let certificate_pem = granted["certificate_pem"].as_str().unwrap().to_owned();
    let key_pem = next.key_pem.clone();
    deployment.write(
        "own",
        &IssuedCertificate {
            certificate_pem,
            key_pem,
        },
    );
    let host = deployment.client_of_files("own");
    assert_eq!(
        send(&collector, &host, &body(&id(1), &id(2), 3..=3))
            .unwrap()
            .0,
        200
    );
}

pub(crate) fn post_json(agent: &Agent, url: &str, asked: &serde_json::Value) -> Answer {
    let mut response = agent
        .post(url)
        .header("Content-Type", "application/json")
        .send(asked.to_string())
        .unwrap();
    let status = response.status().as_u16();
    let text = response.body_mut().read_to_string().unwrap();
    (status, serde_json::from_str(&text).unwrap_or_default())
}
