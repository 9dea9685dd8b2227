//! An authority with certificates in files, and connections over loopback between holders of the
//! certificates.

use gleaner_trust::{
    AUTHORITY_DAYS, Authority, ClientPaths, ClientTrust, IssuedCertificate, Role, ServerPaths,
    ServerTrust,
};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const HOST: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const OTHER_HOST: &str = "fedcba9876543210fedcba9876543210";

/// Time limit of connections. It is long enough for a machine that compiles at the same time.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Deployment {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) authority: Authority,
}

pub(crate) fn host(host_id: &str) -> Role {
    Role::Host {
        host_id: host_id.to_owned(),
    }
}

pub(crate) fn reader(name: &str) -> Role {
    Role::Reader {
        name: name.to_owned(),
    }
}

pub(crate) fn collector() -> Role {
    Role::Collector {
        names: vec!["collector.example".to_owned(), "127.0.0.1".to_owned()],
    }
}

impl Deployment {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::init(&folder.path().join("pki"), "test", AUTHORITY_DAYS);
        Self {
            authority: authority.unwrap(),
            folder,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a certificate to `NAME.crt` and its key to `NAME.key`.
    pub(crate) fn write(&self, name: &str, issued: &IssuedCertificate) {
        replace(&self.path(&format!("{name}.key")), &issued.key_pem);
        replace(&self.path(&format!("{name}.crt")), &issued.certificate_pem);
    }

    pub(crate) fn issue(&self, name: &str, role: &Role) {
        self.write(name, &self.authority.issue(role, 90).unwrap());
    }

    pub(crate) fn server_paths(&self, name: &str) -> ServerPaths {
        ServerPaths {
            certificate: self.path(&format!("{name}.crt")),
            key: self.path(&format!("{name}.key")),
            authority: self.authority.certificate_path(),
            revocation_list: Some(self.authority.revoked_path()),
        }
    }

    pub(crate) fn client_paths(&self, name: &str) -> ClientPaths {
        ClientPaths {
            certificate: self.path(&format!("{name}.crt")),
            key: self.path(&format!("{name}.key")),
            authority: self.authority.certificate_path(),
        }
    }

    /// Makes a server with a new collector's certificate.
    pub(crate) fn server(&self) -> Arc<ServerTrust> {
        self.issue("collector", &collector());
        ServerTrust::load(&self.server_paths("collector")).unwrap()
    }

    /// Makes a client with a new certificate.
    pub(crate) fn client(&self, role: &Role) -> Arc<ClientConfig> {
        self.issue(role.kind(), role);
        self.client_of_files(role.kind())
    }

    pub(crate) fn client_of_files(&self, name: &str) -> Arc<ClientConfig> {
        let trust = ClientTrust::load(&self.client_paths(name)).unwrap();
        trust.credentials().config()
    }
}

/// Replaces a file atomically, as all writers of these files should: writes a new file and renames it.
pub(crate) fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

/// Outcome of a connection as each of its two sides saw it.
#[derive(Debug)]
pub(crate) struct ConnectionViews {
    /// The client's certificates, or the server's reason for rejecting it.
    pub(crate) by_server: Result<Vec<CertificateDer<'static>>, String>,
    /// The server's certificates, or the reason why the client did not receive the greeting.
    pub(crate) by_client: Result<Vec<CertificateDer<'static>>, String>,
    /// True if the certificates were checked in a full handshake, false if an earlier session was resumed.
    pub(crate) in_full: bool,
}

/// Connects a client to a server at 127.0.0.1 as `collector.example`. The server sends one greeting,
/// so that the client learns whether its certificate was accepted.
pub(crate) fn connect(server: Arc<ServerConfig>, client: Arc<ClientConfig>) -> ConnectionViews {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let mut stream = StreamOwned::new(
            ServerConnection::new(server).unwrap(),
            patient(listener.accept().unwrap().0),
        );
        let greeted = stream.write_all(b"hello");
        // Read until the client closes the connection. If the server closed it with unread bytes, the
        // connection would be reset, and the client might never receive the greeting.
        let read = greeted.and_then(|()| {
            stream.conn.send_close_notify();
            stream.flush()?;
            stream.read_to_end(&mut Vec::new())
        });
        match read {
            Ok(_) => Ok(owned(stream.conn.peer_certificates())),
            Err(e) => {
                send_alert(&mut stream.conn, &mut stream.sock);
                let _ = stream.sock.shutdown(std::net::Shutdown::Write);
                let _ = stream.sock.read_to_end(&mut Vec::new());
                Err(e.to_string())
            }
        }
    });
    let name = ServerName::try_from("collector.example").unwrap();
    let mut stream = StreamOwned::new(
        ClientConnection::new(client, name).unwrap(),
        patient(TcpStream::connect(address).unwrap()),
    );
    let mut word = Vec::new();
    let by_client = match stream.read_to_end(&mut word) {
        Ok(_) if word == b"hello" => Ok(owned(stream.conn.peer_certificates())),
        Ok(_) => Err(format!("{word:?}")),
        Err(e) => Err(e.to_string()),
    };
    let in_full = stream.conn.handshake_kind() == Some(rustls::HandshakeKind::Full);
    stream.conn.send_close_notify();
    send_alert(&mut stream.conn, &mut stream.sock);
    drop(stream);
    ConnectionViews {
        by_server: serving.join().unwrap(),
        by_client,
        in_full,
    }
}

/// Sends pending alerts, which tell the other side why the handshake failed. Flushing the stream instead
/// would wait for the rest of a handshake that never arrives.
fn send_alert<D>(connection: &mut rustls::ConnectionCommon<D>, socket: &mut TcpStream) {
    while connection.wants_write() && connection.write_tls(socket).is_ok() {}
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn owned(certificates: Option<&[CertificateDer<'static>]>) -> Vec<CertificateDer<'static>> {
    certificates.unwrap_or_default().to_vec()
}
