//! Services of one commons, for tests: real daemons with certificates, on loopback addresses.

use super::stage::{Stage, commons, unmount};
use gleaner_harness::{Running, succeed};
use gleaner_trust::{Authority, IssuedCertificate, Role, ServerPaths};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

/// Id of a host. One of digits alone would be no name of a server.
pub(super) fn host_id(number: usize) -> String {
    format!("a{number:07x}{number:024x}")
}

/// Entry of the key `members` for a host that is reached at `address`.
pub(super) fn member(number: usize, address: SocketAddr) -> String {
    format!("{}@{address}", host_id(number))
}

/// Authority, certificates and configurations of all hosts.
pub(super) struct Site {
    folder: TempDir,
    authority: Authority,
}

impl Site {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::init(&folder.path().join("pki"), "test", 10).unwrap();
        Self { folder, authority }
    }

    fn path(&self, number: usize, end: &str) -> PathBuf {
        self.folder.path().join(format!("host-{number}.{end}"))
    }

    /// Issues a certificate of a host.
    pub(super) fn issue(&self, number: usize) -> IssuedCertificate {
        let host_id = host_id(number);
        self.authority.issue(&Role::Host { host_id }, 10).unwrap()
    }

    /// Issues a host's certificate, and writes it to the site's folder.
    pub(super) fn certify(&self, number: usize) -> ServerPaths {
        let issued = self.issue(number);
        let (certificate, key) = (self.path(number, "crt"), self.path(number, "key"));
        fs::write(&certificate, issued.certificate_pem).unwrap();
        fs::write(&key, issued.key_pem).unwrap();
        ServerPaths {
            certificate,
            key,
            authority: self.folder.path().join("pki/authority.crt"),
            revocation_list: None,
        }
    }
}

/// Settings of a host's service.
pub(super) struct HostSettings<'a> {
    pub(super) number: usize,
    /// Address for the other members.
    pub(super) listen: SocketAddr,
    /// All members, at the addresses where this host reaches them.
    pub(super) members: Vec<String>,
    /// Address of the source.
    pub(super) source: &'a str,
    /// Folders to mount at, each with the same catalog.
    pub(super) points: Vec<PathBuf>,
    /// Further lines of the configuration.
    pub(super) keys: &'a str,
}

/// A service; its mounts are removed when the value is dropped.
pub(super) struct Host {
    pub(super) running: Option<Running>,
    pub(super) points: Vec<PathBuf>,
    socket: PathBuf,
    config: PathBuf,
}

impl Host {
    pub(super) fn start(stage: &Stage, site: &Site, settings: HostSettings<'_>) -> Self {
        let HostSettings { number, keys, .. } = settings;
        let paths = site.certify(number);
        let (socket, config) = (site.path(number, "sock"), site.path(number, "toml"));
        let mut text = format!(
            "name = \"test\"\nhost_id = {:?}\nlisten = \"{}\"\nmembers = {:?}\n\
             certificate = {:?}\nkey = {:?}\nauthority = {:?}\nsocket = {socket:?}\n\
             local_listen = \"127.0.0.1:0\"\nkernel_cache = false\n{keys}",
            host_id(number),
            settings.listen,
            settings.members,
            paths.certificate,
            paths.key,
            paths.authority,
        );
        for point in &settings.points {
            text.push_str(&format!(
                "[[mounts]]\ncatalog = \"{}{}\"\nfolder = {point:?}\nsource = \"{}\"\n",
                stage.catalog().display(),
                stage.pin,
                settings.source,
            ));
        }
        fs::write(&config, text).unwrap();
        Self {
            running: Some(run(&config, settings.points.len())),
            points: settings.points,
            socket,
            config,
        }
    }

    /// Kills the service, if it runs, and starts it with the same configuration.
    pub(super) fn restart(&mut self) {
        self.kill();
        self.running = Some(run(&self.config, self.points.len()));
    }

    /// Kills the service, and removes the mounts that it leaves.
    fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
        for point in &self.points {
            unmount(point);
        }
    }

    pub(super) fn status(&self) -> Value {
        let mut command = commons();
        command.args(["status", "--json", "--socket"]);
        serde_json::from_str(&succeed(command.arg(&self.socket))).unwrap()
    }

    pub(super) fn figure(&self, key: &str) -> u64 {
        let status = self.status();
        let figure = status[key].as_u64();
        figure.unwrap_or_else(|| panic!("no {key} in {status}"))
    }

    pub(super) fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }
}

/// Runs a service until it has mounted its folders.
fn run(config: &Path, mounts_count: usize) -> Running {
    let mut command = commons();
    command.arg("run").arg("--config").arg(config);
    let running = Running::start(command.stdout(Stdio::piped()));
    for _ in 0..mounts_count {
        assert!(running.printed().starts_with("mounted "));
    }
    running
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill();
    }
}
