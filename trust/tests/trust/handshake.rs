//! Checks in real handshakes which peers are accepted and which are rejected.

use crate::deployment::{ConnectionViews, Deployment, HOST, collector, connect, host, reader};
use gleaner_trust::{
    Credentials, IssuedCertificate, Peer, Role, ServerTrust, TrustError, Validity,
};
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);

fn peer(met: &ConnectionViews) -> Peer {
    Peer::of(&met.by_server.as_ref().unwrap()[0]).unwrap()
}

/// Asserts that the server rejected the client for this reason, and that the client received this alert.
#[track_caller]
fn assert_refused(met: &ConnectionViews, reason: &str, alert: &str) {
    let by_server = met.by_server.as_ref().unwrap_err();
    assert!(by_server.contains(reason), "{by_server}");
    let by_client = met.by_client.as_ref().unwrap_err();
    assert!(by_client.contains(alert), "{by_client}");
}

#[test]
fn hosts_and_people_are_let_in_by_role_and_name() {
    let deployment = Deployment::new();
    let server = deployment.server();
    let met = connect(server.config(), deployment.client(&host(HOST)));
    assert_eq!(peer(&met), Peer::Host(HOST.to_owned()));
    assert_eq!(met.by_client.unwrap().len(), 1);
    let met = connect(server.config(), deployment.client(&reader("ada@lab")));
    assert_eq!(peer(&met), Peer::Reader("ada@lab".to_owned()));
    // The same name in certificates of different roles: the certificate says which role its holder has.
    let name = || "ada@lab".to_owned();
    let met = connect(
        server.config(),
        deployment.client(&Role::Client { name: name() }),
    );
    assert_eq!(peer(&met), Peer::Client(name()));
    let met = connect(
        server.config(),
        deployment.client(&Role::Admin { name: name() }),
    );
    assert_eq!(peer(&met), Peer::Admin(name()));
}

#[test]
fn another_authoritys_client_is_refused() {
    let (ours, theirs) = (Deployment::new(), Deployment::new());
    theirs.issue("host", &host(HOST));
    let mut paths = theirs.client_paths("host");
    paths.authority = ours.authority.certificate_path(); // the client trusts the server, but not the reverse
    let client = gleaner_trust::ClientTrust::load(&paths).unwrap();
    let met = connect(ours.server().config(), client.credentials().config());
    assert_refused(&met, "UnknownIssuer", "UnknownCA");
}

#[test]
fn another_authoritys_server_is_refused() {
    let (ours, theirs) = (Deployment::new(), Deployment::new());
    let met = connect(theirs.server().config(), ours.client(&host(HOST)));
    let by_client = met.by_client.unwrap_err();
    assert!(by_client.contains("UnknownIssuer"), "{by_client}");
    assert!(met.by_server.is_err());
}

#[test]
fn expired_and_premature_are_refused() {
    let deployment = Deployment::new();
    let server = deployment.server();
    let now = SystemTime::now();
    for (from, until, reason, alert) in [
        (
            now - 90 * DAY,
            now - DAY,
            "certificate expired",
            "CertificateExpired",
        ),
        (
            now + DAY,
            now + 90 * DAY,
            "not valid yet",
            "CertificateExpired",
        ),
    ] {
        let validity = Validity { from, until };
        let issued = deployment.authority.issue_for(&host(HOST), &validity);
        deployment.write("host", &issued.unwrap());
        let met = connect(server.config(), deployment.client_of_files("host"));
        assert_refused(&met, reason, alert);
    }
}

#[test]
fn revoked_is_refused_and_others_are_not() {
    let deployment = Deployment::new();
    let server = deployment.server();
    let client = deployment.client(&host(HOST));
    let other = deployment.client(&reader("ada"));
    assert!(connect(server.config(), client.clone()).by_client.is_ok());
    deployment.authority.revoke(HOST).unwrap();
    assert!(server.reload_if_changed().unwrap());
    let met = connect(server.config(), client);
    assert_refused(&met, "Revoked", "CertificateRevoked");
    assert!(connect(server.config(), other).by_client.is_ok());
}

#[test]
fn self_signed_is_refused() {
    let deployment = Deployment::new();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let uri = format!("gleaner:host:{HOST}").try_into().unwrap();
    params.subject_alt_names.push(rcgen::SanType::URI(uri));
    let issued = IssuedCertificate {
        certificate_pem: params.self_signed(&key).unwrap().pem(),
        key_pem: key.serialize_pem(),
    };
    deployment.write("host", &issued);
    let client = deployment.client_of_files("host");
    let met = connect(deployment.server().config(), client);
    assert_refused(&met, "UnknownIssuer", "UnknownCA");
}

#[test]
fn nobody_but_a_collector_serves_as_one() {
    let deployment = Deployment::new();
    let client = deployment.client(&host(HOST));
    let refusals = [
        // A host's certificate is valid for a server of pages, but only under the host's id.
        (host(HOST), "not valid for name"),
        (reader("ada"), "extended key usage for server"),
    ];
    for (role, refusal) in refusals {
        deployment.issue("impostor", &role);
        let server = ServerTrust::load(&deployment.server_paths("impostor")).unwrap();
        let by_client = connect(server.config(), client.clone())
            .by_client
            .unwrap_err();
        assert!(by_client.contains(refusal), "{by_client}");
    }
}

#[test]
fn a_collector_under_another_name_is_refused() {
    let deployment = Deployment::new();
    let names = vec!["elsewhere.example".to_owned()];
    deployment.issue("collector", &gleaner_trust::Role::Collector { names });
    let server = ServerTrust::load(&deployment.server_paths("collector")).unwrap();
    let met = connect(server.config(), deployment.client(&host(HOST)));
    let by_client = met.by_client.unwrap_err();
    assert!(by_client.contains("not valid for name"), "{by_client}");
}

#[test]
fn a_collector_and_a_recruiter_are_no_clients() {
    let deployment = Deployment::new();
    let server = deployment.server();
    let names = vec!["collector.example".to_owned()];
    for role in [collector(), Role::Recruiter { names }] {
        deployment.issue("client", &role);
        let met = connect(server.config(), deployment.client_of_files("client"));
        let by_server = met.by_server.unwrap_err();
        assert!(
            by_server.contains("extended key usage for client"),
            "{role:?}: {by_server}"
        );
    }
}

#[test]
fn without_a_certificate_only_where_allowed() {
    let deployment = Deployment::new();
    let strict = deployment.server();
    let paths = deployment.server_paths("collector");
    let lenient = ServerTrust::load_allowing_anonymous(&paths).unwrap();
    let token = deployment.authority.new_token(DAY, None).unwrap();
    let pem = deployment.authority.certificate_pem();
    let anonymous = Credentials::for_enrolment(pem, &token).unwrap().config();
    let met = connect(strict.config(), anonymous.clone());
    assert_refused(&met, "no certificates", "CertificateRequired");
    let met = connect(lenient.config(), anonymous);
    assert_eq!(met.by_server.unwrap(), []);
    assert!(met.by_client.is_ok());
    // This server also accepts clients without a certificate. Nevertheless, a certificate that is shown must
    // be valid.
    let client = deployment.client(&host(HOST));
    deployment.authority.revoke(HOST).unwrap();
    lenient.reload_if_changed().unwrap();
    let met = connect(lenient.config(), client);
    assert_refused(&met, "Revoked", "CertificateRevoked");
}

#[test]
fn the_wrong_authority_is_not_enrolled_with() {
    let (ours, theirs) = (Deployment::new(), Deployment::new());
    let token = ours.authority.new_token(DAY, None).unwrap();
    let refused = Credentials::for_enrolment(theirs.authority.certificate_pem(), &token);
    assert!(matches!(refused, Err(TrustError::ForeignAuthority)));
}

#[test]
fn tls_1_2_is_spoken_as_well() {
    let deployment = Deployment::new();
    let server = deployment.server();
    let client = deployment.client(&host(HOST));
    let mut roots = rustls::RootCertStore::empty();
    let pem = deployment.authority.certificate_pem();
    let der = rustls::pki_types::pem::PemObject::from_pem_slice(pem.as_bytes()).unwrap();
    roots.add(der).unwrap();
    let old = rustls::ClientConfig::builder_with_provider(gleaner_trust::provider())
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_cert_resolver(client.client_auth_cert_resolver.clone());
    let met = connect(server.config(), old.into());
    assert_eq!(peer(&met), Peer::Host(HOST.to_owned()));
}

#[test]
fn no_connection_stands_on_an_earlier_one() {
    let deployment = Deployment::new();
    let server = deployment.server();
    let client = deployment.client(&host(HOST));
    for _ in 0..3 {
        let met = connect(server.config(), client.clone());
        assert!(met.in_full && met.by_client.is_ok());
    }
}

#[test]
fn a_connection_that_lasts_is_checked_again() {
    let deployment = Deployment::new();
    let server = deployment.server();
    let met = connect(server.config(), deployment.client(&host(HOST)));
    let certificates = met.by_server.unwrap();
    let now = SystemTime::now();
    server.recheck(&certificates, now).unwrap();
    let expired = server.recheck(&certificates, now + 91 * DAY).unwrap_err();
    assert!(expired.to_string().contains("expired"), "{expired}");
    assert!(server.recheck(&[], now).is_err());
    let generation = server.generation();
    deployment.authority.revoke(HOST).unwrap();
    server.recheck(&certificates, now).unwrap(); // this server has not loaded the new list yet
    assert!(server.reload_if_changed().unwrap());
    assert_eq!(server.generation(), generation + 1);
    let revoked = server.recheck(&certificates, now).unwrap_err();
    assert!(revoked.to_string().contains("Revoked"), "{revoked}");
    assert!(revoked.is_refusal());
}
