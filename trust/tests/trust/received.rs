//! Tests of revocation lists that are received over the network.

use crate::deployment::{Deployment, HOST, OTHER_HOST, collector, connect, host, reader};
use gleaner_trust::{ClientTrust, MOST_RECEIVED_BYTES, Role, ServerTrust, TrustError};
use rustls::pki_types::ServerName;
use std::fs;
use std::sync::Arc;
use std::time::SystemTime;

/// Server settings like those of a memory server, with revocation lists only from the network. (The
/// certificate is a collector's.)
fn memory_server(deployment: &Deployment) -> Arc<ServerTrust> {
    deployment.issue("collector", &collector());
    ServerTrust::load_receiving(&deployment.server_paths("collector")).unwrap()
}

fn list(deployment: &Deployment) -> String {
    fs::read_to_string(deployment.authority.revoked_path()).unwrap()
}

#[track_caller]
fn rejected(server: &ServerTrust, pem: &str) -> String {
    let generation = server.generation();
    let error = server.receive(pem).unwrap_err();
    assert!(matches!(error, TrustError::ReceivedList(_)), "{error}");
    assert_eq!(server.generation(), generation);
    error.to_string()
}

#[test]
fn a_newer_list_holds_at_once_and_an_older_one_changes_nothing() {
    let deployment = Deployment::new();
    let (server, first) = (memory_server(&deployment), list(&deployment));
    let (one, other) = (
        deployment.client(&reader("ada")),
        deployment.client(&host(HOST)),
    );
    let shown = connect(server.config(), one.clone()).by_server.unwrap();
    assert_eq!(server.revocation_summary(), None);
    deployment.authority.revoke("ada").unwrap();
    let second = list(&deployment);
    assert!(server.receive(&second).unwrap());
    assert_eq!(server.revocation_summary().unwrap().certificates_count, 1);
    let refused = connect(server.config(), one.clone()).by_server.unwrap_err();
    assert!(refused.contains("Revoked"), "{refused}");
    let refused = server.recheck(&shown, SystemTime::now()).unwrap_err();
    assert!(refused.is_revocation(), "{refused}");
    assert!(connect(server.config(), other.clone()).by_server.is_ok());

    for old in [&first, &second] {
        assert!(!server.receive(old).unwrap());
        assert!(connect(server.config(), one.clone()).by_server.is_err());
    }
    deployment.authority.revoke(HOST).unwrap();
    // A newer list is accepted if the same text also contains an older one. After that, the second text
    // contains nothing newer.
    assert!(
        server
            .receive(&format!("{}{second}", list(&deployment)))
            .unwrap()
    );
    assert!(
        !server
            .receive(&format!("{first}{}", list(&deployment)))
            .unwrap()
    );
    assert!(connect(server.config(), other).by_server.is_err());
    // The lists still apply after the server's own certificate was renewed.
    deployment.issue("collector", &collector());
    assert!(server.reload_if_changed().unwrap());
    assert!(connect(server.config(), one).by_server.is_err());
}

#[test]
fn forged_damaged_and_giant_lists_change_nothing() {
    let (ours, theirs) = (Deployment::new(), Deployment::new());
    let server = memory_server(&ours);
    let client = ours.client(&host(HOST));
    theirs.issue("host", &host(HOST));
    theirs.authority.revoke(HOST).unwrap();
    assert!(rejected(&server, &list(&theirs)).contains("signed"));
    ours.authority.revoke(HOST).unwrap();
    let good = list(&ours);
    // The list names our authority, but the signature is not ours: a list counts only after its signature is
    // verified.
    let der = |pem: &str| {
        use rustls::pki_types::{CertificateRevocationListDer, pem::PemObject};
        CertificateRevocationListDer::from_pem_slice(pem.as_bytes())
            .unwrap()
            .to_vec()
    };
    let (good_der, foreign) = (der(&good), der(&list(&theirs)));
    let mut spoilt = good_der.clone();
    let tail = spoilt.len() - 16;
    spoilt[tail..].copy_from_slice(&foreign[foreign.len() - 16..]);
    rejected(&server, &pem(&spoilt));
    for at in 0..good_der.len() {
        let mut flipped = good_der.clone();
        flipped[at] ^= 1;
        // Every flipped bit is an error, also in the encoding around the list's content, such as lengths and
        // the name.
        assert!(server.receive(&pem(&flipped)).is_err(), "byte {at}");
    }
    let half = good.len() / 2;
    for text in ["", "nonsense", &good[..half]] {
        rejected(&server, text);
    }
    let giant = good.repeat(MOST_RECEIVED_BYTES / good.len() + 1);
    assert!(rejected(&server, &giant).contains("bytes"));
    assert!(connect(server.config(), client.clone()).by_server.is_ok());
    assert_eq!(server.revocation_summary(), None);
    assert!(server.receive(&good).unwrap());
    assert!(connect(server.config(), client).by_server.is_err());
}

fn pem(der: &[u8]) -> String {
    use base64::Engine;
    let coded = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN X509 CRL-----\n{coded}\n-----END X509 CRL-----\n")
}

#[test]
fn an_authority_without_a_list_has_revoked_nobody_and_one_unknown_here_is_left_out() {
    let (old, new) = (Deployment::new(), Deployment::new());
    let server = memory_server(&old);
    let both = [&old, &new].map(|of| of.authority.certificate_pem().to_owned());
    let clients = [&old, &new].map(|of| of.client_paths("host"));
    for (deployment, id) in [(&old, HOST), (&new, OTHER_HOST)] {
        deployment.issue("host", &host(id));
    }
    old.authority.revoke(HOST).unwrap();
    new.authority.revoke(OTHER_HOST).unwrap();
    let lists = format!("{}{}", list(&new), list(&old));
    assert!(server.receive(&lists).unwrap());
    // From now on the server also trusts the new authority, whose list it skipped before.
    fs::write(old.path("both.crt"), both.concat()).unwrap();
    fs::rename(old.path("both.crt"), old.authority.certificate_path()).unwrap();
    assert!(server.reload_if_changed().unwrap());
    let is_let_in = |server: &ServerTrust| {
        clients.clone().map(|mut paths| {
            paths.authority = old.authority.certificate_path();
            let client = ClientTrust::load(&paths).unwrap().credentials().config();
            connect(server.config(), client).by_server.is_ok()
        })
    };
    assert_eq!(is_let_in(&server), [false, true]);
    assert!(server.receive(&lists).unwrap());
    assert_eq!(is_let_in(&server), [false, false]);
    assert_eq!(server.revocation_summary().unwrap().certificates_count, 2);
    // A server that has just started has no lists: it accepts both clients, until it receives the lists that
    // the other server has stored.
    let again = ServerTrust::load_receiving(&old.server_paths("collector")).unwrap();
    assert_eq!(is_let_in(&again), [true, true]);
    assert!(again.receive(&server.revocations_pem()).unwrap());
    assert_eq!(is_let_in(&again), [false, false]);
}

#[test]
fn a_server_is_refused_that_the_list_revokes() {
    let deployment = Deployment::new();
    let server = memory_server(&deployment);
    deployment.issue("host", &host(HOST));
    let client = ClientTrust::load(&deployment.client_paths("host")).unwrap();
    let credentials = client.credentials();
    let by_lists = || credentials.config_by_lists(server.revocations()).unwrap();
    let shown = connect(server.config(), by_lists()).by_client.unwrap();
    let names = vec!["collector.example".to_owned()];
    deployment.issue("other", &Role::Recruiter { names });
    let certificate = deployment.path("collector.crt");
    let revoked = deployment.authority.revoke(certificate.to_str().unwrap());
    assert_eq!(revoked.unwrap().len(), 1);
    assert!(server.receive(&list(&deployment)).unwrap());
    let refused = connect(server.config(), by_lists()).by_client.unwrap_err();
    assert!(refused.contains("Revoked"), "{refused}");
    let name = ServerName::try_from("collector.example").unwrap();
    let now = SystemTime::now();
    let recheck = |shown: &[_]| credentials.recheck_server(shown, &name, server.revocations(), now);
    assert!(recheck(&shown).unwrap_err().is_revocation());
    let paths = deployment.server_paths("other");
    let other = ServerTrust::load(&paths).unwrap();
    let shown = connect(other.config(), by_lists()).by_client.unwrap();
    recheck(&shown).unwrap();
}

#[test]
fn what_is_passed_on_is_the_lists_alone() {
    let deployment = Deployment::new();
    deployment.issue("collector", &collector());
    let paths = deployment.server_paths("collector");
    let mut with_key = fs::read_to_string(&paths.key).unwrap();
    with_key.push_str(&list(&deployment));
    fs::write(deployment.path("all.pem"), with_key).unwrap();
    let revocation_list = Some(deployment.path("all.pem"));
    let server = ServerTrust::load(&gleaner_trust::ServerPaths {
        revocation_list,
        ..paths
    })
    .unwrap();
    let passed_on = server.revocations_pem();
    assert!(!passed_on.contains("KEY"), "{passed_on}");
    let words = |pem: &str| pem.split_whitespace().collect::<String>();
    assert_eq!(words(&passed_on), words(&list(&deployment)));
}

#[test]
fn the_fuzzers_seed_is_a_list_of_its_authority() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/certificate");
    let [list, authority] = ["revoked", "authority"]
        .map(|name| fs::read_to_string(format!("{corpus}/{name}")).unwrap());
    assert_eq!(
        gleaner_trust::count_signed_lists(&list, &authority).unwrap(),
        1
    );
}
