//! The certificate of a client is revoked while its pages are on a memory server. The connections use TLS
//! between network namespaces.

use super::client::{CLIENT, LEASE_BYTES};
use super::pages::{credentials, qemu_io};
use super::partition::{HOST, Host, LONG_TERM_MS, Lease, PAGES_PORT, Recruiter, client};
use crate::delivery::network::{Namespace, entering};
use crate::delivery::partitions::pki;
use crate::delivery::running::wait_for;
use gleaner_harness::Running;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

const MIB: u64 = 1 << 20;

/// A client that has a lease.
struct Borrower<'a> {
    namespace: &'a Namespace,
    credentials: PathBuf,
    image: String,
}

impl<'a> Borrower<'a> {
    fn new(
        folder: &Path,
        name: &str,
        lease: &Lease,
        host: &Host,
        namespace: &'a Namespace,
    ) -> Self {
        Self {
            namespace,
            credentials: credentials(folder, name),
            image: format!(
                "driver=nbd,host={},port={PAGES_PORT},export={}@{},tls-creds=tls,tls-hostname={}",
                HOST[0], lease.id, lease.generation, host.id
            ),
        }
    }

    fn command(&self) -> Command {
        let mut command = entering(&self.namespace.path(), "qemu-io");
        let folder = self.credentials.display();
        let object = format!("tls-creds-x509,id=tls,endpoint=client,dir={folder}");
        command.args(["--object", &object]);
        command
    }

    /// Runs `commands` over a new connection. Returns true if all succeeded, and the output.
    fn once(&self, commands: &[&str]) -> (bool, String) {
        qemu_io(self.command(), &self.image, commands)
    }

    /// Opens a connection for several commands.
    fn connect(&self) -> Connection {
        let mut command = self.command();
        command.args(["--image-opts", &self.image]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Running::start(&mut command);
        Connection {
            input: running.input().unwrap(),
            running,
        }
    }
}

/// A running qemu client. It executes commands one after another over the same connection.
struct Connection {
    input: ChildStdin,
    running: Running,
}

impl Connection {
    /// Executes a command; returns qemu's line with the result.
    #[track_caller]
    fn ask(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}").unwrap();
        loop {
            let line = self.running.printed();
            if ["wrote ", "read ", "failed", "error"]
                .iter()
                .any(|word| line.contains(word))
            {
                return line;
            }
        }
    }
}

#[test]
fn a_revoked_client_loses_its_connection_and_its_lease_and_another_keeps_both() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pki(folder, &["init", "--name", "collector.example"]);
    let recruiter = Recruiter::start(folder);
    let name = folder.join("other");
    pki(
        folder,
        &["issue", "--client", "other", "-o", name.to_str().unwrap()],
    );
    let host = Host::start(folder, 0, &recruiter.namespace);
    let lease = recruiter.grant("pages", LONG_TERM_MS);
    let of_other = recruiter.grant_to(&client(folder, "other"), "pages", LONG_TERM_MS);
    let namespace = &recruiter.namespace;
    let revoked = Borrower::new(folder, "client", &lease, &host, namespace);
    let other = Borrower::new(folder, "other", &of_other, &host, namespace);
    let (mut theirs, mut others) = (revoked.connect(), other.connect());
    for (connection, pattern) in [(&mut theirs, 7), (&mut others, 9)] {
        let said = connection.ask(&format!("write -P {pattern} 0 4M"));
        assert!(
            said.starts_with("qemu-io> wrote 4194304") || said.starts_with("wrote 4194304"),
            "{said}"
        );
    }
    // When the host connects to the recruiter, it receives the first revocation list, which is empty.
    wait_for("a revocation list", || host.lending().revocations.is_some());
    let before = host.lending();
    assert_eq!(before.revocations.unwrap().certificates_count, 0);
    assert_eq!(
        (before.leases.len(), before.pages.unwrap().connections_count),
        (2, 2)
    );
    assert!(before.resident_bytes >= 8 * MIB);

    pki(folder, &["revoke", CLIENT]);
    wait_for("the lease to end", || host.lending().leases.len() == 1);
    wait_for("the connection to end", || {
        host.lending().pages.unwrap().connections_count == 1
    });
    let after = host.lending();
    assert_eq!(after.leases[0].lease_id, of_other.id);
    assert_eq!(after.revocations.unwrap().certificates_count, 1);
    assert!(after.resident_bytes + 4 * MIB <= before.resident_bytes);
    let log = host.log();
    let last = log.last().unwrap();
    assert_eq!(
        (last.cause.as_str(), last.remaining_lent_bytes),
        ("revoked", LEASE_BYTES)
    );
    assert!(last.bytes >= 4 * MIB, "{last:?}");
    // The memory of the ended lease can be leased again.
    assert_eq!(
        after.quota.unleased_bytes,
        before.quota.unleased_bytes + LEASE_BYTES
    );

    let said = theirs.ask("read -P 7 0 4096");
    assert!(said.contains("failed") || said.contains("error"), "{said}");
    let (is_done, said) = revoked.once(&["read 0 4096"]);
    // The new connection fails in TLS, and not because there is no such lease.
    assert!(!is_done && !said.contains("ask the recruiter"), "{said}");
    host.hear("invalid peer certificate: Revoked");

    let said = others.ask("read -P 9 0 4M");
    assert!(said.contains("read 4194304"), "{said}");
    let (is_done, said) =
        other.once(&["read -P 9 0 4M", "write -P 3 4M 4096", "read -P 3 4M 4096"]);
    assert!(is_done, "{said}");
}
