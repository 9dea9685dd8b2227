//! Our certificates checked by OpenSSL's verifier.

use crate::deployment::{Deployment, HOST, collector, host, reader};
use std::path::Path;
use std::process::Command;

fn verify(deployment: &Deployment, purpose: &str, certificate: &Path) -> (bool, String) {
    let output = Command::new("openssl")
        .args(["verify", "-x509_strict", "-crl_check", "-purpose", purpose])
        .arg("-CAfile")
        .arg(deployment.authority.certificate_path())
        .arg("-CRLfile")
        .arg(deployment.authority.revoked_path())
        .arg(certificate)
        .output()
        .expect("this test needs the openssl program (Debian: apt install openssl)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[test]
fn openssl_agrees() {
    let deployment = Deployment::new();
    deployment.issue("collector", &collector());
    deployment.issue("host", &host(HOST));
    let (collector, host) = (
        deployment.path("collector.crt"),
        deployment.path("host.crt"),
    );
    deployment.issue("reader", &reader("ada"));
    let reader = deployment.path("reader.crt");
    // A host is checked as a server too, since it serves lent memory.
    for (purpose, certificate) in [
        ("sslserver", &collector),
        ("sslclient", &host),
        ("sslserver", &host),
        ("sslclient", &reader),
    ] {
        let (good, text) = verify(&deployment, purpose, certificate);
        assert!(good, "{text}");
    }
    for (purpose, certificate) in [("sslserver", &reader), ("sslclient", &collector)] {
        let (good, text) = verify(&deployment, purpose, certificate);
        assert!(!good && text.contains("purpose"), "{text}");
    }
    deployment.authority.revoke(HOST).unwrap();
    let (good, text) = verify(&deployment, "sslclient", &host);
    assert!(!good && text.contains("revoked"), "{text}");
    let (good, text) = verify(&deployment, "sslserver", &collector);
    assert!(good, "{text}");
}

#[test]
fn openssl_reads_the_same_fingerprint() {
    let deployment = Deployment::new();
    let output = Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(deployment.authority.certificate_path())
        .output()
        .expect("this test needs the openssl program (Debian: apt install openssl)");
    let text = String::from_utf8(output.stdout).unwrap();
    let theirs = text.trim().split('=').nth(1).unwrap().replace(':', "");
    assert_eq!(
        theirs.to_lowercase(),
        deployment.authority.fingerprint().unwrap()
    );
}
