//! Tests in which certificate files are replaced while a server or client uses them.

use crate::deployment::{Deployment, HOST, collector, connect, host, replace};
use gleaner_trust::{ClientTrust, ServerTrust, TrustError, fingerprint};
use std::fs;

fn served(deployment: &Deployment, server: &ServerTrust) -> Vec<u8> {
    let client = deployment.client(&host(HOST));
    connect(server.config(), client).by_client.unwrap()[0].to_vec()
}

#[test]
fn the_next_connection_has_the_new_certificate() {
    let deployment = Deployment::new();
    let server = deployment.server();
    let first = served(&deployment, &server);
    assert!(!server.reload_if_changed().unwrap());
    assert_eq!(server.generation(), 1);
    deployment.issue("collector", &collector());
    assert!(server.reload_if_changed().unwrap());
    assert!(!server.reload_if_changed().unwrap());
    assert_eq!(server.generation(), 2);
    assert_ne!(served(&deployment, &server), first);
}

#[test]
fn a_broken_replacement_keeps_the_old_and_is_told_once() {
    let deployment = Deployment::new();
    let server = deployment.server();
    let first = served(&deployment, &server);
    let paths = deployment.server_paths("collector");
    let certificate = fs::read_to_string(&paths.certificate).unwrap();
    let half = &certificate[..certificate.len() / 2];
    for broken in ["", "nonsense", half] {
        replace(&paths.certificate, broken);
        let told = server.reload_if_changed().unwrap_err();
        assert!(matches!(told, TrustError::Content { .. }), "{told}");
        assert!(told.to_string().contains("collector.crt"), "{told}");
        assert!(!server.reload_if_changed().unwrap());
        assert_eq!(served(&deployment, &server), first);
    }
    fs::remove_file(&paths.certificate).unwrap();
    assert!(matches!(
        server.reload_if_changed(),
        Err(TrustError::Io { .. })
    ));
    assert!(!server.reload_if_changed().unwrap());
    assert_eq!(served(&deployment, &server), first);
    assert_eq!(server.generation(), 1);
    // The same bytes are written again. This is a change too, since the file is another one.
    replace(&paths.certificate, &certificate);
    assert!(server.reload_if_changed().unwrap());
    assert_eq!(served(&deployment, &server), first);
}

#[test]
fn a_new_certificate_waits_for_its_key() {
    let deployment = Deployment::new();
    let server = deployment.server();
    let first = served(&deployment, &server);
    let issued = deployment.authority.issue(&collector(), 90).unwrap();
    replace(&deployment.path("collector.crt"), &issued.certificate_pem);
    let told = server.reload_if_changed().unwrap_err();
    assert!(matches!(told, TrustError::Mismatch { .. }), "{told}");
    assert_eq!(served(&deployment, &server), first);
    replace(&deployment.path("collector.key"), &issued.key_pem);
    assert!(server.reload_if_changed().unwrap());
    assert_ne!(served(&deployment, &server), first);
}

#[test]
fn another_authoritys_revocation_list_is_not_taken() {
    let (ours, theirs) = (Deployment::new(), Deployment::new());
    let server = ours.server();
    let list = fs::read_to_string(theirs.authority.revoked_path()).unwrap();
    replace(&ours.authority.revoked_path(), &list);
    let told = server.reload_if_changed().unwrap_err();
    assert!(matches!(told, TrustError::ForeignRevocations(_)), "{told}");
    served(&ours, &server);
    fs::remove_file(ours.authority.revoked_path()).unwrap();
    assert!(ServerTrust::load(&ours.server_paths("collector")).is_err());
}

#[test]
fn a_client_rotates_as_well() {
    let deployment = Deployment::new();
    let server = deployment.server();
    deployment.issue("host", &host(HOST));
    let client = ClientTrust::load(&deployment.client_paths("host")).unwrap();
    let shown = |client: &ClientTrust| {
        let met = connect(server.config(), client.credentials().config());
        met.by_server.unwrap()[0].to_vec()
    };
    let first = shown(&client);
    replace(&deployment.path("host.key"), "torn");
    assert!(client.reload_if_changed().is_err());
    assert!(!client.reload_if_changed().unwrap());
    assert_eq!(shown(&client), first);
    deployment.issue("host", &host(HOST));
    assert!(client.reload_if_changed().unwrap());
    assert_eq!(client.generation(), 2);
    assert_ne!(shown(&client), first);
}

#[test]
fn two_authorities_at_once_carry_a_deployment_over() {
    let (old, new) = (Deployment::new(), Deployment::new());
    old.issue("collector", &collector());
    let both = old.path("both.crt");
    let text = old.authority.certificate_pem().to_owned() + new.authority.certificate_pem();
    replace(&both, &text);
    let lists = old.path("both.crl");
    let read = |d: &Deployment| fs::read_to_string(d.authority.revoked_path()).unwrap();
    replace(&lists, &(read(&old) + &read(&new)));
    let mut paths = old.server_paths("collector");
    paths.authority = both.clone();
    paths.revocation_list = Some(lists);
    let server = ServerTrust::load(&paths).unwrap();
    assert!(
        connect(server.config(), old.client(&host(HOST)))
            .by_client
            .is_ok()
    );
    new.issue("host", &host(HOST));
    let mut paths = new.client_paths("host");
    paths.authority = both;
    let client = ClientTrust::load(&paths).unwrap();
    assert!(
        connect(server.config(), client.credentials().config())
            .by_client
            .is_ok()
    );
    let print = |d: &Deployment| fingerprint(d.authority.certificate_pem()).unwrap();
    assert_ne!(print(&old), print(&new));
}
