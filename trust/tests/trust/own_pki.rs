//! Tests with a foreign PKI. It is made with OpenSSL, and has RSA keys, an intermediate authority, and names
//! that are not Gleaner's.

use crate::deployment::{ConnectionViews, connect};
use gleaner_trust::{ClientPaths, ClientTrust, Peer, ServerPaths, ServerTrust};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CONFIGURATION: &str = "
[req]
distinguished_name = name
prompt = no
[name]
CN = Example
[root]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[intermediate]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[server]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:collector.example
[client]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = clientAuth
subjectAltName = DNS:PC7.lab.example
[other]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = clientAuth
[ca]
default_ca = lists
[lists]
database = index
default_md = sha256
default_crl_days = 30
crlnumber = number
";

struct OwnPki {
    folder: tempfile::TempDir,
}

impl OwnPki {
    fn new() -> Self {
        let pki = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::write(pki.path("cnf"), CONFIGURATION).unwrap();
        fs::write(pki.path("index"), "").unwrap();
        fs::write(pki.path("number"), "01\n").unwrap();
        pki.openssl("req -x509 -config cnf -extensions root -subj /CN=Root -newkey rsa:2048 -nodes -keyout root.key -out root.crt -days 30");
        pki.certify("intermediate", "root", "/CN=Intermediate");
        pki.certify("server", "intermediate", "/CN=server");
        pki.certify("client", "intermediate", "/CN=client");
        pki.certify("other", "intermediate", "/CN=Other PC");
        pki.list();
        let (root, intermediate) = (pki.read("root.crt"), pki.read("intermediate.crt"));
        fs::write(pki.path("authorities.crt"), intermediate + &root).unwrap();
        pki
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split(' ').map(|a| a.replace('_', " ")))
            .current_dir(self.folder.path())
            .output()
            .expect("this test needs the openssl program (Debian: apt install openssl)");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {said}");
    }

    /// Makes `NAME.key` and `NAME.crt`. The certificate of the intermediate authority follows in `NAME.crt`.
    fn certify(&self, name: &str, issuer: &str, subject: &str) {
        let subject = subject.replace(' ', "_");
        self.openssl(&format!(
            "req -new -config cnf -subj {subject} -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr"
        ));
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA {issuer}.crt -CAkey {issuer}.key -CAcreateserial -extfile cnf -extensions {name} -days 30 -out {name}.crt"
        ));
        if issuer == "intermediate" {
            let chain = self.read(&format!("{name}.crt")) + &self.read("intermediate.crt");
            fs::write(self.path(&format!("{name}.crt")), chain).unwrap();
        }
    }

    /// Makes the revocation list of the intermediate authority.
    fn list(&self) {
        self.openssl(
            "ca -config cnf -gencrl -keyfile intermediate.key -cert intermediate.crt -out new.crl",
        );
        fs::rename(self.path("new.crl"), self.path("revoked.crl")).unwrap();
    }

    fn meet(&self, server: &ServerTrust, client: &str) -> ConnectionViews {
        let paths = ClientPaths {
            certificate: self.path(&format!("{client}.crt")),
            key: self.path(&format!("{client}.key")),
            authority: self.path("root.crt"),
        };
        let client = ClientTrust::load(&paths).unwrap();
        connect(server.config(), client.credentials().config())
    }

    fn server_paths(&self, authority: &str, revocation_list: Option<&Path>) -> ServerPaths {
        ServerPaths {
            certificate: self.path("server.crt"),
            key: self.path("server.key"),
            authority: self.path(authority),
            revocation_list: revocation_list.map(Path::to_owned),
        }
    }
}

#[test]
fn somebody_elses_certificates_serve_as_well() {
    let pki = OwnPki::new();
    let list = pki.path("revoked.crl");
    let paths = pki.server_paths("authorities.crt", Some(&list));
    let server = ServerTrust::load(&paths).unwrap();
    let named = |met: &ConnectionViews| Peer::of(&met.by_server.as_ref().unwrap()[0]).unwrap();
    let met = pki.meet(&server, "client");
    assert_eq!(named(&met), Peer::Named("pc7.lab.example".to_owned()));
    let met = pki.meet(&server, "other");
    assert_eq!(named(&met), Peer::Named("Other PC".to_owned()));

    pki.openssl(
        "ca -config cnf -keyfile intermediate.key -cert intermediate.crt -revoke client.crt",
    );
    pki.list();
    assert!(server.reload_if_changed().unwrap());
    let refused = pki.meet(&server, "client").by_server.unwrap_err();
    assert!(refused.contains("Revoked"), "{refused}");
    assert!(pki.meet(&server, "other").by_client.is_ok());

    // Without revocation lists, the server needs only the root's certificate, and no certificate counts as
    // revoked.
    let server = ServerTrust::load(&pki.server_paths("root.crt", None)).unwrap();
    assert!(pki.meet(&server, "client").by_client.is_ok());
    // A list is an error if its signer is not among the authorities: it would make the server reject every
    // client.
    let foreign = ServerTrust::load(&pki.server_paths("root.crt", Some(&list)));
    let told = foreign.err().unwrap().to_string();
    assert!(told.contains("add the authority that signed it"), "{told}");
}
