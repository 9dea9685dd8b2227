//! Reloads of the configuration without a restart: lent memory stays lent as far as the new configuration
//! allows.

use crate::host::{Host, MIB, SIZE};
use gleaner_harness::wait_for_some;
use gleaner_schemas::lending::Mode;
use rustix::process::Signal;

/// Settings with which all of [`SIZE`] is given back in one step.
const QUICK: &str = "shrink_step = \"1GiB\"\nshrink_every = \"1ms\"\n";

#[test]
fn sighup_changes_what_is_lent_and_a_broken_file_does_not() {
    let host = Host::new();
    let daemon = host.daemon();
    let mut agent = host.agent();
    let lent = agent.lend(&daemon);
    let generation = lent.leases[0].generation;
    agent.stays();

    let broken = format!("{QUICK}cap = \"16MiB\"\nmode = \"greedy\"");
    host.write_configuration(&broken);
    daemon.running.signal(Signal::HUP);
    daemon.running.hear("continues with its present settings");
    let lending = daemon.status();
    assert_eq!(lending.quota.lent_bytes, SIZE);

    host.write_configuration(&format!("{QUICK}cap = \"16MiB\"\nlock_pages = \"always\""));
    daemon.running.signal(Signal::HUP);
    daemon.running.hear("the configuration was reloaded");
    let lending = wait_for_some("the cap", || {
        let lending = daemon.status();
        (lending.resident_bytes <= 16 * MIB).then_some(lending)
    });
    assert_eq!(lending.quota.lent_bytes, 16 * MIB);
    let lease = &lending.leases[0];
    assert_eq!(
        (lease.remaining_bytes, lease.generation),
        (16 * MIB, generation)
    );
    let log = daemon.log();
    assert_eq!(log.last().unwrap().cause, "quota");

    // The limit is lifted again. Process and lease are still the same.
    host.write_configuration(&format!(
        "{QUICK}lock_pages = \"always\"\nmode = \"spare\"\nhuge_pages = false"
    ));
    daemon.running.signal(Signal::HUP);
    daemon.running.hear("the configuration was reloaded");
    let said = daemon.running.hear("take effect after a restart");
    assert!(
        said.contains("changes of huge_pages, lock_pages take effect"),
        "{said}"
    );
    let lending = daemon.status();
    assert_eq!(lending.leases[0].generation, generation);
    // A measurement keeps its own mode, whatever the file contains.
    assert_eq!(lending.quota.mode, Mode::Paper);
    assert!(lending.quota.quota_bytes > SIZE, "{lending:?}");
    assert_eq!(daemon.running.end().0, Some(0));
}

#[test]
fn a_host_that_is_not_enrolled_starts_and_waits_for_its_certificate() {
    let host = Host::new();
    let [host_pem, authority] = ["host.pem", "authority.crt"].map(|name| host.path(name));
    let config = format!(
        "recruiters = [\"https://127.0.0.1:1\"]\ncertificate = {host_pem:?}\nauthority = {authority:?}\n"
    );
    host.configure(&config);
    let daemon = host.daemon_with(&[]);
    let said = daemon.running.hear("no certificate for it");
    assert!(
        said.contains(authority.to_str().unwrap()) && said.contains("gleaner-agent enroll"),
        "{said}"
    );
    assert!(daemon.status().linked_recruiters.is_empty());
}
