//! The collector of a lab: its certificate authority, its configuration, and its status of the hosts.

use super::address::{self, COLLECTOR_PORT, LOCAL, Node};
use super::error::{LabError, Result, file};
use super::network;
use super::state::{PKI, State};
use gleaner_trust::{Authority, Role};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::Deserialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Validity of the lab's certificates, in days.
pub(super) const DAYS: u32 = 30;
/// Time after which the collector seals: short, since users look at a lab after seconds.
const SEAL_AFTER: &str = "10s";
/// Disk space that the collector leaves free: little, since a lab may run on a small disk.
const DISK_RESERVE: &str = "64MiB";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Part of the collector's status that the lab uses.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct CollectorSummary {
    pub(super) hosts: Vec<CollectorHost>,
}

/// Status of one host at the collector.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct CollectorHost {
    pub(super) host_id: String,
    pub(super) batches_count: u64,
    pub(super) rows_count: u64,
    pub(super) lag_ms: Option<i64>,
}

/// Creates the certificate authority, and the collector's certificate and configuration.
pub(super) fn prepare(state: &State, node: &Node) -> Result<Authority> {
    let pki = state.folder.join(PKI);
    let authority = Authority::init(&pki, "lab", DAYS)?;
    let names = vec![node.address.to_string()];
    let issued = authority.issue(&Role::Collector { names }, DAYS)?;
    write(&pki.join("collector.crt"), &issued.certificate_pem)?;
    write(&pki.join("collector.key"), &issued.key_pem)?;
    let folder = state.folder_of(&node.namespace);
    let (data, pki) = (text(&folder)?, text(&pki)?);
    let config = format!(
        "data_folder = {data}\nlisten = \"{}:{COLLECTOR_PORT}\"\nlocal_listen = \"{LOCAL}\"\npki = {pki}\nseal_after = \"{SEAL_AFTER}\"\ndisk_reserve = \"{DISK_RESERVE}\"\n",
        node.address
    );
    fs::create_dir_all(&folder).map_err(file("create", &folder))?;
    write(&folder.join("collector.toml"), &config)?;
    Ok(authority)
}

/// Gives a host its machine id and configuration; returns its host id.
pub(super) fn prepare_host(state: &State, node: &Node, interval: Duration) -> Result<String> {
    let source = Path::new("/proc/sys/kernel/random/uuid");
    let uuid = fs::read_to_string(source).map_err(file("read", source))?;
    let machine_id = uuid.trim().replace('-', "");
    network::give_machine_id(&node.namespace, &machine_id)?;
    let host_id = gleaner_trust::host_id(&machine_id);
    let folder = state.folder_of(&node.namespace);
    fs::create_dir_all(&folder).map_err(file("create", &folder))?;
    let interval = gleaner_schemas::interval::format(interval);
    let config = format!(
        "sample_interval = \"{interval}\"
database = {}
socket = {}

[ship]
batch_interval = \"{interval}\"
",
        text(&folder.join("trace.db"))?,
        text(&folder.join("agent.sock"))?,
    );
    write(&folder.join("agent.toml"), &config)?;
    Ok(host_id)
}

/// URL under which hosts reach the collector.
pub(super) fn url() -> String {
    format!("https://{}:{COLLECTOR_PORT}", address::collector().address)
}

/// Requests the collector's status from inside its namespace. Returns the part that the lab uses, and the
/// whole document.
pub(super) fn status() -> Result<(CollectorSummary, serde_json::Value)> {
    let namespace = address::collector().namespace;
    let body = get_inside(&namespace, "the collector", LOCAL, "/v1/status")?;
    let fault = |subject| move |source| LabError::Document { subject, source };
    let value: serde_json::Value =
        serde_json::from_slice(&body).map_err(fault("the collector's status is no JSON"))?;
    let said = CollectorSummary::deserialize(&value).map_err(fault("the collector's status"))?;
    Ok((said, value))
}

/// Requests `path` from a daemon inside `namespace`. A separate thread enters the namespace, because entering
/// changes the whole thread.
pub(super) fn get_inside(
    namespace: &str,
    daemon: &'static str,
    address: &'static str,
    path: &str,
) -> Result<Vec<u8>> {
    let handle = network::handle(namespace);
    let handle = File::open(&handle).map_err(file("open", &handle))?;
    let (path, name) = (path.to_owned(), namespace.to_owned());
    let asking = std::thread::spawn(move || {
        move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
            |e| LabError::Namespace {
                namespace: name,
                source: e.into(),
            },
        )?;
        get(daemon, address, &path)
    });
    asking.join().map_err(|_| LabError::Thread { daemon })?
}

fn get(daemon: &'static str, address: &str, path: &str) -> Result<Vec<u8>> {
    let exchange = || -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    let mut answer = exchange().map_err(|source| LabError::Silent { daemon, source })?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let Some(end) = end.filter(|_| answer.starts_with(b"HTTP/1.1 200 ")) else {
        let line = answer
            .split(|byte| *byte == b'\r')
            .next()
            .unwrap_or_default();
        return Err(LabError::Answer {
            daemon,
            line: String::from_utf8_lossy(line).into_owned(),
        });
    };
    Ok(answer.split_off(end + 4))
}

/// Path as a TOML string; a string in JSON's quoting is valid TOML.
pub(super) fn text(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) => Ok(serde_json::Value::from(text).to_string()),
        None => Err(LabError::Path {
            path: path.to_owned(),
        }),
    }
}

/// Writes a file that only its owner may read, because some of these files hold keys.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(file("write", path))
}
