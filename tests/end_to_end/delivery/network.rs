//! Network namespaces with cables (veth pairs) between them. They exist only as long as the test.
//!
//! The namespaces have no names. Each lives as long as a process that holds it. This process exits when the
//! test closes its side of a pipe, and therefore also when the test dies.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// IP address of the collector's end of the cable.
pub(super) const COLLECTOR: &str = "10.77.0.1";
const HOST: &str = "10.77.0.2";
/// Name of the interface at both ends.
pub(super) const CABLE: &str = "cable";

/// A namespace and the process that holds it.
pub(crate) struct Namespace(Child);

impl Namespace {
    pub(crate) fn new() -> Self {
        let mut hold = Command::new("unshare");
        let hold = hold.args(["--net", "cat"]).stdin(Stdio::piped());
        let namespace = Self(hold.spawn().unwrap());
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        super::running::wait_for("a network namespace", || {
            fs::read_link(namespace.path()).is_ok_and(|held| held != own)
        });
        namespace.run("ip", "link set lo up");
        namespace
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.0.id()))
    }

    /// Runs `program` in the namespace; its arguments are the words of `words`, separated by blanks.
    #[track_caller]
    pub(crate) fn run(&self, program: &str, words: &str) {
        let mut command = entering(&self.path(), program);
        let done = command.args(words.split(' ')).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{program} {words}: {said}");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Connects two namespaces with a cable. Both ends are interfaces with the name `name` and have these
/// addresses.
pub(crate) fn connect(name: &str, ends: [(&Namespace, &str); 2]) {
    let [(near, _), (far, _)] = ends;
    let peer = far.0.id();
    near.run(
        "ip",
        &format!("link add {name} type veth peer name {name} netns {peer}"),
    );
    for (end, address) in ends {
        end.run("ip", &format!("address add {address}/24 dev {name}"));
        end.run("ip", &format!("link set {name} up"));
    }
}

/// Command that runs `program` in a namespace.
pub(crate) fn entering(namespace: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net={}", namespace.display()))
        .arg(program);
    command
}

/// Runs `work` on a thread in the namespace. Sockets that `work` opens stay in the namespace.
pub(crate) fn within<T: Send>(namespace: &Path, work: impl FnOnce() -> T + Send) -> T {
    let namespace = File::open(namespace).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

/// A cable with a namespace at each end: the collector's and the host's.
pub(super) struct Network {
    pub(super) collector: Namespace,
    pub(super) host: Namespace,
}

impl Network {
    pub(super) fn new() -> Self {
        let (collector, host) = (Namespace::new(), Namespace::new());
        connect(CABLE, [(&collector, COLLECTOR), (&host, HOST)]);
        Self { collector, host }
    }

    /// Limits the rate of the cable in both directions, for instance to `256kbit`.
    pub(super) fn limit(&self, rate: &str) {
        for end in [&self.collector, &self.host] {
            end.run(
                "tc",
                &format!("qdisc replace dev {CABLE} root tbf rate {rate} burst 16kb latency 400ms"),
            );
        }
    }

    /// At both ends, drops packets that arrive over the cable and match this iptables rule.
    pub(super) fn drop_at_both(&self, rule: &str) {
        for end in [&self.collector, &self.host] {
            end.run("iptables", &format!("-A INPUT -i {CABLE} {rule}-j DROP"));
        }
    }

    /// Removes all rules that drop packets.
    pub(super) fn heal(&self) {
        for end in [&self.collector, &self.host] {
            end.run("iptables", "-F");
        }
    }
}
