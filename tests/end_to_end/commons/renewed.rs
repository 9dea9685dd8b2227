//! Certificates that are renewed while the service runs without privileges. This test runs as root.

use super::fleet::{Site, host_id, member};
use super::hostile::HostileMember;
use super::privileges::{Scene, USER, assert_unprivileged, set_mode};
use gleaner_harness::{unused_address, wait_for};
use gleaner_trust::{ClientPaths, ClientTrust, IssuedCertificate};
use rustls::ClientConnection;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, chown};

/// This host among the members.
const OWN: usize = 0;
/// Other member, whose requests and answers are the test's.
const OTHER: usize = 1;
/// File whose blocks have both members as homes.
const LARGE: &str = "lib/deep/er/large";

fn der(issued: &IssuedCertificate) -> Vec<u8> {
    let pem = issued.certificate_pem.as_bytes();
    CertificateDer::from_pem_slice(pem).unwrap().to_vec()
}

/// Certificate that the service shows to another member; `None` if it cannot be reached.
fn shown(service: SocketAddr, other: &ClientTrust) -> Option<Vec<u8>> {
    let name = ServerName::try_from(host_id(OWN)).unwrap();
    let mut connection = ClientConnection::new(other.credentials().config(), name).unwrap();
    let mut stream = TcpStream::connect(service).ok()?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).ok()?;
    }
    let first = connection.peer_certificates()?.first()?;
    Some(first.to_vec())
}

/// The key lies as packages have it: root's, in a folder with the setgid bit, readable by the service's group.
#[test]
fn a_service_without_privileges_uses_renewed_certificates() {
    let (scene, site) = (Scene::new(), Site::new());
    let keys = scene.folder.path().join("keys");
    fs::create_dir(&keys).unwrap();
    chown(&keys, Some(0), Some(USER)).unwrap();
    set_mode(&keys, 0o2750);
    let [certificate, key, authority] = ["crt", "key", "authority"].map(|name| keys.join(name));
    let first = site.issue(OWN);
    first.write_for(&certificate, &key, Some(USER)).unwrap();
    let paths = site.certify(OTHER);
    fs::copy(&paths.authority, &authority).unwrap();
    set_mode(&authority, 0o644);

    let other = HostileMember::start(&paths);
    let client = ClientTrust::load(&ClientPaths {
        certificate: paths.certificate.clone(),
        key: paths.key.clone(),
        authority: paths.authority.clone(),
    });
    let client = client.unwrap();
    let service = unused_address();
    let members = [member(OWN, service), member(OTHER, other.address)];
    // With room for one block, each read of the file asks the other member again.
    let running = scene.start_with(&format!(
        "host_id = {:?}\nlisten = \"{service}\"\nmembers = {members:?}\n\
         certificate = {certificate:?}\nkey = {key:?}\nauthority = {authority:?}\n\
         kernel_cache = false\nlocal = \"64KiB\"\npeer_timeout = \"60s\"\nfetch_wait = \"60s\"\n",
        host_id(OWN),
    ));
    assert_unprivileged(running.id());
    let asks_with = |certificate: &[u8]| {
        fs::read(scene.point.join(LARGE)).unwrap();
        other.has_seen(certificate)
    };
    wait_for("a request with the first certificate", || {
        asks_with(&der(&first))
    });
    assert_eq!(shown(service, &client), Some(der(&first)));

    let renewed = site.issue(OWN);
    renewed.write(&certificate, &key).unwrap();
    let written = fs::metadata(&key).unwrap();
    assert_eq!((written.gid(), written.mode() & 0o777), (USER, 0o640));
    wait_for("an answer with the renewed certificate", || {
        shown(service, &client) == Some(der(&renewed))
    });
    wait_for("a request with the renewed certificate", || {
        asks_with(&der(&renewed))
    });
    let (code, said) = running.end();
    assert_eq!(code, Some(0), "{said:?}");
}
