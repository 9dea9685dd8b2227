//! Delivery over a bad network between two namespaces, over TLS with the deployment's own certificates.

use super::network::{CABLE, COLLECTOR, Network, entering};
use super::running::{Collector, Host, Running, wait_for};
use gleaner_harness::succeed;
use gleaner_tests::program;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PORT: u16 = 7443;

/// A collector, a host that enrolled with a token, and a cable between them.
struct Deployment {
    host: Host,
    collector: Collector,
    network: Network,
    _folder: TempDir,
}

/// Runs `gleaner pki` with these arguments for the authority in `folder/pki`; returns its output.
pub(crate) fn pki(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new(program("gleaner").unwrap());
    succeed(
        command
            .arg("pki")
            .args(words)
            .env("GLEANER_PKI", folder.join("pki")),
    )
}

impl Deployment {
    /// Creates a deployment whose host has `samples` samples to send.
    fn new(samples: i64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let network = Network::new();
        pki(folder.path(), &["init", "--name", COLLECTOR]);
        let keys = format!(
            "disk_reserve = \"1MiB\"\nlisten = \"{COLLECTOR}:{PORT}\"\npki = {:?}",
            folder.path().join("pki")
        );
        let program = program("gleaner-collector").unwrap();
        let start = entering(&network.collector.path(), program);
        let collector = Collector::start_as(folder.path(), &keys, start, Some(&network.collector));
        let host = Host::traced(folder.path(), "host", "3").moved_to(&network.host);
        host.lengthen(samples);

        let address = format!("https://{COLLECTOR}:{PORT}");
        let made = pki(folder.path(), &["token", "--json", "--collector", &address]);
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        let token = made["token"].as_str().unwrap();
        succeed(host.agent().args(["enroll", &address, token]));
        Self {
            host,
            collector,
            network,
            _folder: folder,
        }
    }

    /// Starts the shipper with this timeout for answers.
    fn ship(&self, timeout: &str) -> Running {
        let keys = format!("timeout = \"{timeout}\"");
        Running::start(&mut self.host.shipping(&keys))
    }

    /// Waits until a part of the backlog has arrived; returns the sequence up to which the collector has it.
    #[track_caller]
    fn is_in_the_middle(&self) -> i64 {
        let first = self.collector.mark(&self.host);
        let mut mark = first;
        wait_for("the backlog to move", || {
            mark = self.collector.mark(&self.host);
            mark > first
        });
        assert!(
            mark < self.host.last_sequence(),
            "all was there before anything was done to it"
        );
        mark
    }

    /// Waits until everything has arrived, compares all rows, and returns how long it waited.
    #[track_caller]
    fn arrives(self, shipper: Running) -> Duration {
        let begin = Instant::now();
        self.host.is_shipped();
        let passed = begin.elapsed();
        assert_eq!(shipper.end().0, Some(0));
        let rows = self.collector.holds(&[&self.host]);
        let status = self.collector.status();
        println!(
            "{rows} rows, {} bytes in {} batches, {} repeated, arrived after {passed:?}",
            status["hosts"][0]["received_bytes"],
            status["hosts"][0]["batches_count"],
            status["seal"]["repeated_rows_count"]
        );
        passed
    }
}

#[test]
fn a_link_that_is_down_for_a_while_only_delays() {
    let deployment = Deployment::new(2000);
    deployment.network.limit("2mbit");
    let shipper = deployment.ship("2s");
    deployment.is_in_the_middle();
    deployment
        .network
        .host
        .run("ip", &format!("link set {CABLE} down"));
    shipper.hear("no answer from the collector");
    let mark = deployment.collector.mark(&deployment.host);
    assert!(mark < deployment.host.last_sequence());
    deployment
        .network
        .host
        .run("ip", &format!("link set {CABLE} up"));
    shipper.hear("shipping again");
    deployment.arrives(shipper);
}

#[test]
fn a_partition_that_says_nothing_is_got_over_by_both_sides() {
    let deployment = Deployment::new(2000);
    deployment.network.limit("2mbit");
    let shipper = deployment.ship("2s");
    deployment.is_in_the_middle();
    deployment.network.drop_at_both("");
    shipper.hear("no answer from the collector");
    let mark = deployment.collector.mark(&deployment.host);
    assert!(mark < deployment.host.last_sequence());
    deployment.network.heal();
    shipper.hear("shipping again");
    // Both sides, the collector and the shipper, close the connections that hung during the partition.
    wait_for("dead connections to be given up", || {
        deployment.collector.status()["connections_count"].as_i64() <= Some(2)
    });
    deployment.arrives(shipper);
}

/// On the way back only packets with data are dropped. So a batch arrives, but its acknowledgement is lost.
#[test]
fn answers_that_are_lost_cost_nothing() {
    let deployment = Deployment::new(2000);
    deployment.network.limit("2mbit");
    let shipper = deployment.ship("2s");
    deployment.is_in_the_middle();
    let (host, collector) = (&deployment.host, &deployment.collector);
    loop {
        let last = host.last_sequence();
        assert!(collector.mark(host) < last, "no answer to a batch was lost");
        let rule = format!("-A INPUT -i {CABLE} -m length --length 100: -j DROP");
        deployment.network.host.run("iptables", &rule);
        shipper.hear("no answer from the collector");
        // The lost answer may have been another one: the answer to the shipper's request for the mark.
        if collector.mark(host) > host.acknowledged() {
            break;
        }
        deployment.network.heal();
        let acknowledged = host.acknowledged();
        wait_for("it to go on", || host.acknowledged() > acknowledged);
    }
    deployment.network.heal();
    deployment.arrives(shipper);
}

/// The link carries 112 KB in the 3.5 s that a batch may take here. A batch of 512 events is larger, so the
/// shipper must send smaller batches.
#[test]
fn a_slow_link_gets_batches_that_it_can_carry() {
    let deployment = Deployment::new(600);
    deployment.network.limit("256kbit");
    let (host, collector) = (&deployment.host, &deployment.collector);
    let shipper = deployment.ship("700ms");
    let (mut before, mut most) = (collector.mark(host), 0);
    wait_for("the backlog", || {
        let mark = collector.mark(host);
        most = most.max(mark - before);
        before = mark;
        mark == host.last_sequence()
    });
    assert!(most <= 512, "{most} records at once");
    let batches = collector.status()["hosts"][0]["batches_count"].as_i64();
    assert!(
        batches > Some(host.last_sequence() / 512 + 1),
        "{batches:?}: none was cut"
    );
    deployment.arrives(shipper);
}

#[test]
fn a_tenth_of_the_packets_lost_only_delays() {
    let deployment = Deployment::new(2000);
    deployment
        .network
        .drop_at_both("-m statistic --mode random --probability 0.1 ");
    let shipper = deployment.ship("5s");
    deployment.arrives(shipper);
}
