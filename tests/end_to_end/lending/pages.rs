//! Data that clients store in leased memory. The client is qemu's NBD client, on a lease from the recruiter.

use super::client::{LEASE_BYTES, lease_request};
use super::cluster::Cluster;
use super::partition::{HOST, Host, LONG_TERM_MS, PAGES_PORT, Recruiter};
use crate::delivery::network::entering;
use crate::delivery::partitions::pki;
use crate::delivery::running::wait_for;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MIB: u64 = 1 << 20;

/// Name of a lease's NBD export.
fn export(lease: &Value) -> String {
    format!(
        "{}@{}",
        lease["lease_id"].as_str().unwrap(),
        lease["generation"]
    )
}

/// Runs `commands` of qemu-io on an export. Returns true if all succeeded, and the output.
pub(super) fn qemu_io(mut command: Command, image: &str, commands: &[&str]) -> (bool, String) {
    command.args(["--image-opts", image]);
    for one in commands {
        command.args(["-c", one]);
    }
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("qemu-io; `make setup` installs it");
    let said = [stdout, stderr].concat();
    (
        status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn what_is_stored_in_a_lease_is_read_again_until_the_owner_returns_and_never_after() {
    let cluster = Cluster::start(1, 1);
    let (host, recruiter) = (&cluster.hosts[0], &cluster.recruiters[0]);
    let mut granted = Value::Null;
    wait_for("a lease", || {
        let request = lease_request("pages", LONG_TERM_MS);
        let (status, answer) = recruiter.ask("POST", "/v1/leases", Some(&request)).unwrap();
        granted = answer;
        status == 201
    });
    let lease = &granted["leases"][0];
    let (at, port) = lease["address"].as_str().unwrap().rsplit_once(':').unwrap();
    let image = format!("driver=nbd,host={at},port={port},export={}", export(lease));
    let qemu = |commands: &[&str]| qemu_io(Command::new("qemu-io"), &image, commands);
    let last = format!("write -P 9 {} 4096", LEASE_BYTES - 4096);
    let (is_done, said) = qemu(&["write -P 7 0 4M", &last, "flush"]);
    assert!(is_done, "{said}");
    let (is_done, said) = qemu(&[
        "read -P 7 0 4M",
        "read -P 0 4M 4096",
        &last.replace("write", "read"),
    ]);
    assert!(is_done, "{said}");
    let lending = host.lending();
    assert!(lending.resident_bytes >= 4 * MIB);
    let served = lending.pages.unwrap();
    // Two clients wrote, flushed and read. Each request is counted in exactly one class of latency.
    assert!(served.requests_count >= 6 && served.failed_count == 0);
    let classes = served.latency.iter().map(|class| class.requests_count);
    assert_eq!(classes.sum::<u64>(), served.requests_count);
    wait_for("the load", || {
        let (_, hosts) = recruiter.ask("GET", "/v1/hosts", None).unwrap();
        let is_busy = hosts["hosts"][0]["requests_per_s"].as_f64() > Some(0.0);
        is_busy || !qemu(&["read 0 4096"]).0
    });
    let another = image.replace("export=", "export=x");
    let (is_done, said) = qemu_io(Command::new("qemu-io"), &another, &["read 0 4096"]);
    assert!(!is_done && said.contains("ask the recruiter"), "{said}");

    host.agent.owner_returns();
    wait_for("the owner's memory", || host.lending().leases.is_empty());
    let (is_done, said) = qemu(&["read 0 4096"]);
    assert!(!is_done && said.contains("ask the recruiter"), "{said}");
    let log = host.log();
    assert!(log[0].bytes >= 4 * MIB, "{log:?}");
}

/// Copies certificates and key to a folder with the names that qemu expects; returns the folder.
pub(super) fn credentials(folder: &Path, client: &str) -> PathBuf {
    let made = folder.join(format!("{client}.qemu"));
    fs::create_dir(&made).unwrap();
    for (from, to) in [
        ("pki/authority.crt", "ca-cert.pem"),
        ("crt", "client-cert.pem"),
        ("key", "client-key.pem"),
    ] {
        let from = if from.contains('/') {
            from.to_owned()
        } else {
            format!("{client}.{from}")
        };
        fs::copy(folder.join(from), made.join(to)).unwrap();
    }
    made
}

#[test]
fn by_tls_a_host_is_who_it_says_and_a_lease_is_its_clients_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pki(folder, &["init", "--name", "collector.example"]);
    let recruiter = Recruiter::start(folder);
    let other = folder.join("other");
    pki(
        folder,
        &["issue", "--client", "other", "-o", other.to_str().unwrap()],
    );
    let host = Host::start(folder, 0, &recruiter.namespace);
    let granted = recruiter.grant("pages", LONG_TERM_MS);
    let (_, lease) = recruiter.get(&format!("/v1/leases/{}", granted.id));
    let lease = if lease["leases"].is_array() {
        &lease["leases"][0]
    } else {
        &lease
    };
    assert_eq!(lease["address"], format!("{}:{PAGES_PORT}", HOST[0]));

    let image = format!(
        "driver=nbd,host={},port={PAGES_PORT},export={}",
        HOST[0],
        export(lease)
    );
    let qemu = |client: Option<&str>, more: &str| {
        let mut command = entering(&recruiter.namespace.path(), "qemu-io");
        if let Some(client) = client {
            let made = folder.join(format!("{client}.qemu"));
            let made = if made.exists() {
                made
            } else {
                credentials(folder, client)
            };
            command.args([
                "--object",
                &format!(
                    "tls-creds-x509,id=tls,endpoint=client,dir={}",
                    made.display()
                ),
            ]);
        }
        qemu_io(
            command,
            &format!("{image}{more}"),
            &["write -P 7 0 1M", "read -P 7 0 1M", "read -P 0 1M 4096"],
        )
    };
    let as_host = format!(",tls-creds=tls,tls-hostname={}", host.id);
    let (is_done, said) = qemu(Some("client"), &as_host);
    assert!(is_done, "{said}");
    for (client, more, why) in [
        (Some("other"), as_host.clone(), "ask the recruiter"),
        (
            Some("client"),
            format!(",tls-creds=tls,tls-hostname={:032x}", 99),
            "does not match",
        ),
        (None, String::new(), "TLS"),
    ] {
        let (is_done, said) = qemu(client, &more);
        assert!(!is_done && said.contains(why), "{client:?}{more}: {said}");
    }
    host.agent.owner_returns();
    wait_for("the owner's memory", || host.lending().leases.is_empty());
    assert!(!qemu(Some("client"), &as_host).0);
}
