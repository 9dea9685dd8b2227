//! A clerk between memory servers and a program that uses its device. `gleaner-clerk run` borrows from a
//! recruiter over TLS, with a client certificate and a copy of the pages on disk.

use super::cluster::CAP_BYTES;
use super::partition::{Host, PORT, RECRUITER, Recruiter};
use crate::delivery::network::entering;
use crate::delivery::partitions::pki;
use crate::delivery::running::{Random, Running, wait_for};
use gleaner_harness::succeed;
use gleaner_tests::program;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
/// Name of the device's socket, in the folder of [`Lenders`].
pub(super) const DEVICE: &str = "clerk.sock";
const DEVICE_BYTES: u64 = 64 * MIB;
const LEASE_BYTES: u64 = 8 * MIB;
/// Number of bytes that are written before the owner returns, and read afterwards.
const IMAGE_BYTES: u64 = 24 * MIB;
/// Term of the leases that a clerk requests.
const TERM_MS: i64 = 35_000;

/// Two hosts that lend, and the recruiter to which they announce themselves.
pub(super) struct Lenders {
    // Hosts are dropped before the recruiter, since their cables end in the recruiter's namespace.
    pub(super) hosts: [Host; 2],
    pub(super) recruiter: Recruiter,
    folder: TempDir,
}

impl Lenders {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        pki(path, &["init", "--name", "collector.example"]);
        let recruiter = Recruiter::start(path);
        let hosts = [0, 1].map(|n| Host::start(path, n, &recruiter.namespace));
        wait_for("both hosts' quota", || {
            hosts.iter().all(|host| {
                let told = recruiter.host(&host.id);
                told.is_some_and(|told| told["quota"]["unleased_bytes"] == CAP_BYTES)
            })
        });
        Self {
            hosts,
            recruiter,
            folder,
        }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a configuration for a clerk: the recruiter, the certificate, and the lines `more`.
    pub(super) fn configure(&self, more: &str) -> PathBuf {
        let text = format!(
            "recruiters = [\"https://{}:{PORT}\"]\ncertificate = {:?}\nkey = {:?}\nauthority = {:?}\n\
             lease_size = \"{LEASE_BYTES}B\"\ndisk_folder = {:?}\n{more}\n",
            RECRUITER[0],
            self.file("client.crt"),
            self.file("client.key"),
            self.file("pki/authority.crt"),
            self.file("disk"),
        );
        let path = self.file("clerk.toml");
        fs::write(&path, text).unwrap();
        path
    }

    /// Command that runs `gleaner-clerk` in the recruiter's namespace.
    pub(super) fn clerk(&self) -> Command {
        let namespace = self.recruiter.namespace.path();
        entering(&namespace, program("gleaner-clerk").unwrap())
    }

    /// Number of leases on each host.
    pub(super) fn leases(&self) -> [usize; 2] {
        [0, 1].map(|n: usize| self.hosts[n].lending().leases.len())
    }
}

/// Status of the clerk whose status socket is `socket`.
pub(super) fn status(socket: &Path) -> Value {
    let mut command = Command::new(program("gleaner-clerk").unwrap());
    let said = succeed(
        command
            .args(["status", "--json", "--status-socket"])
            .arg(socket),
    );
    serde_json::from_str(&said).unwrap()
}

/// A running clerk and its device.
pub(super) struct Clerk<'a> {
    lenders: &'a Lenders,
    running: Running,
    url: String,
}

impl<'a> Clerk<'a> {
    fn start(lenders: &'a Lenders) -> Self {
        Self::start_with(lenders, "")
    }

    /// Starts a clerk with additional lines of configuration.
    pub(super) fn start_with(lenders: &'a Lenders, more: &str) -> Self {
        let more = format!("size = \"{DEVICE_BYTES}B\"\nlock_memory = false\n{more}");
        let config = lenders.configure(&more);
        let device = lenders.file(DEVICE);
        let mut command = lenders.clerk();
        command.args(["run", "--config"]).arg(config);
        command.arg("--listen").arg(&device);
        command
            .arg("--status-socket")
            .arg(lenders.file("clerk-status.sock"));
        let clerk = Self {
            lenders,
            running: Running::start(&mut command),
            url: format!("nbd+unix:///?socket={}", device.display()),
        };
        wait_for("the clerk", || lenders.file("clerk-status.sock").exists());
        clerk
    }

    pub(super) fn status(&self) -> Value {
        status(&self.lenders.file("clerk-status.sock"))
    }

    /// Command that runs a client program with these arguments.
    fn client(program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null());
        command
    }

    /// Writes the image to the device, and reads it until all its pages are on servers. Leases arrive during
    /// the writing. Pages that were written before are on disk, and move to servers when they are read.
    #[track_caller]
    fn fills(&self, image: &Path) {
        let image = image.to_str().unwrap();
        succeed(&mut Self::client("nbdcopy", &[image, &self.url]));
        wait_for("leases for what was written", || {
            succeed(&mut Self::client("nbdcopy", &[&self.url, "null:"]));
            let status = self.status();
            let servers = status["servers"].as_array().unwrap();
            let used = servers.iter().filter_map(|s| s["used_bytes"].as_u64());
            used.sum::<u64>() >= IMAGE_BYTES
        });
    }

    #[track_caller]
    fn holds(&self, image: &[u8]) {
        let copy = self.lenders.file("copy");
        succeed(&mut Self::client(
            "nbdcopy",
            &[&self.url, copy.to_str().unwrap()],
        ));
        let copy = fs::read(copy).unwrap();
        assert!(
            copy[..image.len()] == *image,
            "other bytes than were written"
        );
    }
}

/// Writes a file of incompressible bytes.
fn image(path: &Path) -> Vec<u8> {
    let mut random = Random::new();
    let words = (0..IMAGE_BYTES / 8).flat_map(|_| random.below(u64::MAX).to_le_bytes());
    let bytes: Vec<u8> = words.collect();
    fs::write(path, &bytes).unwrap();
    bytes
}

#[test]
fn leases_come_and_go_with_what_is_stored_and_no_page_is_lost_to_an_owner() {
    let lenders = Lenders::start();
    let clerk = Clerk::start(&lenders);
    let image = image(&lenders.file("image"));
    clerk.fills(&lenders.file("image"));
    let [first, second] = lenders.leases();
    let filled = first + second;
    assert!(filled as u64 >= IMAGE_BYTES / LEASE_BYTES, "{filled}");
    assert!(filled as u64 <= IMAGE_BYTES / LEASE_BYTES + 2, "{filled}");
    let status = clerk.status();
    let hosts = status["servers"].as_array().unwrap().iter();
    let mut hosts: Vec<&str> = hosts.filter_map(|s| s["host"].as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    assert!(!hosts.is_empty() && status["has_disk"] == true, "{status}");

    // Another program writes to the other half of the device and verifies what it wrote. Meanwhile, the owner
    // of the host with more leases returns.
    let verifying = Clerk::client(
        "fio",
        &[
            "--name=verify",
            "--ioengine=nbd",
            "--rw=randwrite",
            "--bsrange=4k-64k",
            "--offset=32M",
            "--size=24M",
            "--io_size=96M",
            "--norandommap",
            "--iodepth=8",
            "--verify=crc32c",
            "--verify_backlog=64",
            "--verify_fatal=1",
            "--verify_state_save=0",
            &format!("--uri={}", clerk.url),
        ],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("fio; `make setup` installs it");
    let written = |status: &Value| status["counters"]["writes_count"].as_u64().unwrap();
    let before = written(&status);
    wait_for("fio to write", || written(&clerk.status()) > before + 256);
    let [first, second] = lenders.leases();
    let returns = usize::from(second > first);
    lenders.hosts[returns].agent.owner_returns();
    wait_for("the owner's memory", || lenders.leases()[returns] == 0);
    assert_eq!(lenders.hosts[returns].lending().resident_bytes, 0);
    clerk.holds(&image);
    let done = verifying.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success() && said.contains("err= 0"), "{said}");
    clerk.holds(&image);
    let status = clerk.status();
    let counters = &status["counters"];
    for none in [
        "failed_requests_count",
        "lost_pages_count",
        "corrupt_pages_count",
    ] {
        assert_eq!(counters[none], 0, "{none}: {status}");
    }
    // A lease is released once no page refers to it.
    wait_for("the clerk to leave the owner's host", || {
        let status = clerk.status();
        let mut servers = status["servers"].as_array().unwrap().iter();
        servers.all(|server| server["host"] != *lenders.hosts[returns].id)
    });
    // While the owner is present, no memory of this host is leased.
    assert_eq!(lenders.leases()[returns], 0);
    assert!(lenders.leases()[1 - returns] > 0);

    // The clerk releases memory that it no longer needs, except for a small reserve.
    succeed(&mut Clerk::client(
        "qemu-io",
        &[
            "-f",
            "raw",
            "-c",
            &format!("discard 0 {DEVICE_BYTES}"),
            &clerk.url,
        ],
    ));
    wait_for("leases to go back", || {
        let held: usize = lenders.leases().iter().sum();
        (1..=3).contains(&held)
    });
    assert_eq!(clerk.status()["stored_bytes"], 0);
    // If the clerk is stopped as systemd stops a service (SIGTERM), it releases all leases immediately.
    assert_eq!(clerk.running.end().0, Some(0));
    assert_eq!(lenders.leases(), [0, 0]);
}

#[test]
fn the_leases_of_a_clerk_that_was_killed_end_by_themselves() {
    let lenders = Lenders::start();
    let clerk = Clerk::start(&lenders);
    image(&lenders.file("image"));
    clerk.fills(&lenders.file("image"));
    clerk.running.kill();
    let left_ms = || {
        let leases = lenders.hosts.iter().flat_map(|host| host.lending().leases);
        leases.map(|lease| lease.expires_in_ms).max()
    };
    // The hosts still have the leases, with remaining terms. That a lease ends after its term is tested
    // elsewhere, without a clerk.
    let longest_ms = left_ms().unwrap();
    assert!(longest_ms <= TERM_MS, "{longest_ms}");
    let held: usize = lenders.leases().iter().sum();
    assert!(held as u64 >= IMAGE_BYTES / LEASE_BYTES, "{held}");
    // Nobody renews the leases of the killed clerk: their remaining terms fall.
    wait_for("the term to run out", || {
        left_ms().is_none_or(|left_ms| left_ms <= longest_ms - 1000)
    });
}
