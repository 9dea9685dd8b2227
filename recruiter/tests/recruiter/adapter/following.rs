//! Runs `gleaner-recruiter follow`, with a file of quotas for it to follow.

use gleaner_harness::Running;
pub(super) use gleaner_harness::wait_for;
use gleaner_schemas::lending::{HostQuota, QuotaReason, Quotas};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(super) const MIB: u64 = 1 << 20;
/// Quota of `quota_mib` MiB for a host.
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

/// A file of quotas, which is replaced at each change.
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

/// Runs the adapter with `--once`, and returns its output.
pub(super) fn once(args: &[&str]) -> Output {
    command(&[args, &["--once"]].concat()).output().unwrap()
}

/// An adapter started by a test; killed when dropped.
pub(super) struct RunningAdapter(pub(super) Running);

impl RunningAdapter {
    /// Starts the adapter with `--json`, which makes it print each change.
    pub(super) fn start(args: &[&str]) -> Self {
        let mut command = command(args);
        Self(Running::start(command.arg("--json").stdout(Stdio::piped())))
    }

    /// Waits for the next change of the limit, and returns it.
    #[track_caller]
    pub(super) fn change(&self) -> Value {
        serde_json::from_str(&self.0.printed()).unwrap()
    }
}
