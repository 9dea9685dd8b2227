//! A running `gleaner-recruiter follow`, and the file of quotas that it follows.

use gleaner_harness::PATIENCE;
pub(super) use gleaner_harness::wait_for;
use gleaner_schemas::lending::{HostQuota, QuotaReason, Quotas};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

pub(super) const MIB: u64 = 1 << 20;
/// A host that may lend so much.
pub(super) fn quota(host_id: &str, quota_mib: u64) -> HostQuota {
    HostQuota {
        host_id: host_id.to_owned(),
        quota_bytes: quota_mib * MIB,
        reason: if quota_mib == 0 {
            QuotaReason::InUse
        } else {
            QuotaReason::Idle
        },
        ..HostQuota::default()
    }
}

pub(super) fn quotas(hosts: &[HostQuota]) -> String {
    let quotas = Quotas {
        time_ms: 0,
        hosts: hosts.to_vec(),
    };
    serde_json::to_string(&quotas).unwrap()
}

/// A file that is replaced.
pub(super) struct QuotaFile(pub(super) PathBuf);

impl QuotaFile {
    pub(super) fn new(folder: &Path, hosts: &[HostQuota]) -> Self {
        let file = Self(folder.join("quotas.json"));
        file.set(hosts);
        file
    }

    pub(super) fn set(&self, hosts: &[HostQuota]) {
        let beside = self.0.with_extension("new");
        std::fs::write(&beside, quotas(hosts)).unwrap();
        std::fs::rename(&beside, &self.0).unwrap();
    }

    pub(super) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner-recruiter"));
    command.arg("follow").args(args).stdin(Stdio::null());
    command
}

/// Runs until it ends by itself.
pub(super) fn once(args: &[&str]) -> Output {
    command(&[args, &["--once"]].concat()).output().unwrap()
}

/// Killed when the test fails.
pub(super) struct Following {
    child: Child,
    changes: Receiver<Value>,
    said: Receiver<String>,
}

impl Following {
    /// With `--json`.
    pub(super) fn start(args: &[&str]) -> Self {
        let mut command = command(args);
        let command = command
            .arg("--json")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let changes = lines(child.stdout.take().unwrap(), |line| {
            serde_json::from_str(&line).unwrap()
        });
        let said = lines(child.stderr.take().unwrap(), |line| line);
        Self {
            child,
            changes,
            said,
        }
    }

    /// The next limit that it tells of.
    #[track_caller]
    pub(super) fn change(&self) -> Value {
        let change = self.changes.recv_timeout(PATIENCE);
        change.unwrap_or_else(|_| {
            panic!(
                "no change; said {:?}",
                self.said.try_iter().collect::<Vec<_>>()
            )
        })
    }

    /// Waits for a line on standard error that has `words`.
    #[track_caller]
    pub(super) fn hear(&self, words: &str) {
        let mut heard = Vec::new();
        while let Ok(line) = self.said.recv_timeout(PATIENCE) {
            if line.contains(words) {
                return;
            }
            heard.push(line);
        }
        panic!("never said {words:?}, but {heard:?}");
    }

    /// Ends it as systemd would; its exit code.
    pub(super) fn end(&mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines<T: Send + 'static>(
    from: impl std::io::Read + Send + 'static,
    read: impl Fn(String) -> T + Send + 'static,
) -> Receiver<T> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(read(line)).is_err() {
                break;
            }
        }
    });
    receiver
}
