//! Disks that are full, read-only or failing: real disks, in mount namespaces of their own.

use crate::running::{Running, column, in_mounts_of, is_sound, query, wait_for};
use crate::{agent, fail};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Shell script: runs the command `$0`, which mounts a disk on `$1`, then executes the remaining arguments.
const ON_A_DISK: &str = "set -e; disk=$0; mount=$1; shift; eval \"$disk\"; exec \"$@\"";

const TMPFS: &str = "mount -t tmpfs -o size=3m tmpfs $mount";
const FULL: &str =
    "mount -t tmpfs -o size=3m tmpfs $mount; dd if=/dev/zero of=$mount/ballast 2>/dev/null || true";
const READ_ONLY: &str = "mount -t tmpfs -o ro,size=3m tmpfs $mount";
const FAILING: &str = "truncate -s 24M $mount.img; mkfs.ext4 -q $mount.img; mount -o loop,errors=remount-ro $mount.img $mount";

/// An agent that traces onto a disk which only its own mount namespace has.
struct DiskAgent {
    agent: Running,
    mount: tempfile::TempDir,
}

impl DiskAgent {
    fn start(disk: &str) -> Self {
        let mount = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", ON_A_DISK, disk])
            .arg(mount.path())
            .arg(agent().get_program())
            .args([
                "run",
                "--sample-interval",
                "400ms",
                "--socket",
                "none",
                "--database",
            ])
            .arg(mount.path().join("trace.db"));
        let agent = Running::start(&mut command);
        Self { agent, mount }
    }

    /// Calls `what` in a thread that has joined the agent's mount namespace, where the disk is visible.
    fn inside<T: Send>(&self, what: impl FnOnce(&Path) -> T + Send) -> T {
        let disk = self.mount.path();
        in_mounts_of(self.agent.id(), || what(disk))
    }

    fn wait_for_samples(&self, more: i64) {
        self.inside(|disk| {
            let database = disk.join("trace.db");
            let count = || query::<i64>(&database, "SELECT count(*) FROM samples");
            let wanted = count() + more;
            wait_for("samples", || count() >= wanted);
        });
    }

    fn wait_for_status(&self, words: &str) {
        self.inside(|disk| {
            wait_for(words, || {
                let mut status = agent();
                status
                    .arg("--database")
                    .arg(disk.join("trace.db"))
                    .arg("status");
                let said = status.output().unwrap().stdout;
                String::from_utf8_lossy(&said).contains(words)
            });
        });
    }
}

/// Fills the disk with a file.
fn fill(path: &Path) {
    let mut ballast = fs::File::create(path).unwrap();
    for size in [64 << 10, 4096, 1] {
        while ballast.write_all(&vec![7; size]).is_ok() {}
    }
}

/// Checks the trace's records of the time in which nothing could be stored.
fn tells_of_the_full_disk(database: &Path) {
    is_sound(database);
    let lengths = "SELECT to_time_ms - from_time_ms FROM gaps WHERE cause = 'unwritable'";
    let lengths: Vec<i64> = column(database, lengths);
    assert_eq!(lengths.len(), 1);
    let kinds = "SELECT kind FROM events WHERE kind LIKE 'storage%'";
    let kinds: Vec<String> = column(database, kinds);
    assert_eq!(kinds, ["storage_failed", "storage_recovered"]);
    let lasted = "SELECT duration_ms FROM events WHERE kind = 'storage_recovered'";
    let lasted: i64 = query(database, lasted);
    assert!(
        0 < lasted && lasted <= lengths[0],
        "{lasted} of {lengths:?}"
    );
    let paths = "SELECT count(*) FROM events WHERE detail LIKE '%/%'";
    let paths: i64 = query(database, paths);
    assert_eq!(paths, 0, "an event may leave the host: it names no file");
    let whole: i64 = query(
        database,
        "SELECT count(*) FROM samples s JOIN gaps g ON s.time_ms = g.to_time_ms \
         WHERE is_complete_state AND cause = 'unwritable'",
    );
    assert_eq!(whole, 1, "after the gap all is told anew");
}

#[test]
fn a_full_disk_is_waited_for_and_said_and_leaves_a_gap() {
    let traced = DiskAgent::start(TMPFS);
    traced.agent.hear("sampling every 400ms");
    traced.wait_for_samples(3);
    traced.inside(|disk| fill(&disk.join("ballast")));
    let said = traced.agent.hear("samples are dropped");
    assert!(said.contains("disk is full"), "{said}");
    traced.wait_for_status("not storing: the agent runs");

    traced.inside(|disk| fs::remove_file(disk.join("ballast")).unwrap());
    traced.agent.hear("storing samples again");
    traced.wait_for_status("tracing\n");
    traced.wait_for_samples(2);
    traced.inside(|disk| tells_of_the_full_disk(&disk.join("trace.db")));
    let (code, said) = traced.agent.end();
    assert_eq!(
        (code, said),
        (Some(0), vec![]),
        "said once, not at each sample"
    );
}

#[test]
fn a_disk_that_is_full_or_read_only_at_the_start_is_waited_for() {
    let full = DiskAgent::start(FULL);
    let said = full.agent.hear("waiting until it can be");
    assert!(
        said.contains("full") || said.contains("No space left"),
        "{said}"
    );
    full.inside(|disk| fs::remove_file(disk.join("ballast")).unwrap());
    full.agent.hear("sampling every 400ms");
    full.wait_for_samples(2);
    full.inside(|disk| is_sound(&disk.join("trace.db")));
    assert_eq!(full.agent.end().0, Some(0));

    let read_only = DiskAgent::start(READ_ONLY);
    let said = read_only.agent.hear("waiting until it can be");
    assert!(said.contains("Read-only"), "{said}");
    let remount = |disk: &Path| {
        let mut mount = Command::new("mount");
        mount.args(["-o", "remount,rw"]).arg(disk).status().unwrap()
    };
    assert!(read_only.inside(remount).success());
    read_only.agent.hear("sampling every 400ms");
    read_only.wait_for_samples(2);
    assert_eq!(read_only.agent.end().0, Some(0));

    let waiting = DiskAgent::start(FULL);
    waiting.agent.hear("waiting until it can be");
    assert_eq!(
        waiting.agent.end(),
        (Some(0), vec![]),
        "ends while it waits"
    );
}

/// A file system finds damage and becomes read-only. No remount makes it writable again.
#[test]
fn a_disk_that_fails_while_the_agent_runs_does_not_end_it() {
    let traced = DiskAgent::start(FAILING);
    traced.agent.hear("sampling every 400ms");
    traced.wait_for_samples(2);
    let mounts = fs::read_to_string(format!("/proc/{}/mounts", traced.agent.id())).unwrap();
    let mount = traced.mount.path().to_str().unwrap();
    let line = mounts.lines().find(|line| line.contains(mount)).unwrap();
    let device = line
        .strip_prefix("/dev/")
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    assert!(
        device.starts_with("loop"),
        "only a disk of this test's own: {line}"
    );
    fs::write(format!("/sys/fs/ext4/{device}/trigger_fs_error"), "x").unwrap();
    traced.agent.hear("samples are dropped");
    traced.wait_for_status("not storing: the agent runs");
    assert_eq!(traced.agent.end(), (Some(0), vec![]));
    fs::remove_file(format!("{mount}.img")).unwrap();
}

/// A write beyond the limit on file sizes (RLIMIT_FSIZE) must count as a full disk: by default its signal
/// would end the agent.
#[test]
fn a_limit_on_file_sizes_is_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("trace.db");
    let mut command = Command::new("prlimit");
    let run = [
        "run",
        "--sample-interval",
        "100ms",
        "--socket",
        "none",
        "--database",
    ];
    let agent = agent();
    let limited = command
        .arg("--fsize=200000")
        .arg(agent.get_program())
        .args(run);
    let traced = Running::start(limited.arg(&database));
    traced.hear("sampling every 100ms");
    traced.hear("samples are dropped");
    assert_eq!(traced.end().0, Some(0));
    is_sound(&database);
}

#[test]
fn where_waiting_is_pointless_the_agent_ends() {
    let folder = tempfile::tempdir().unwrap();
    let not_a_folder = folder.path().join("file");
    fs::write(&not_a_folder, "").unwrap();
    let database = not_a_folder.join("trace.db");
    let (code, message) = fail(agent().arg("--database").arg(database).arg("run"));
    assert_eq!(code, 1);
    assert!(message.contains("--database"), "{message}");
}
