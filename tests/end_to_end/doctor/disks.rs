//! Full and read-only disks: real ones, in separate mount namespaces.

use super::clinic::Diagnosis;
use gleaner_tests::program;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Script that mounts a disk on `$1` with the command `$0`, then executes its
/// other arguments.
const ON_A_DISK: &str = "set -e; disk=$0; mount=$1; shift; eval \"$disk\"; exec \"$@\"";

/// Diagnosis of an agent with its trace on such a disk.
fn diagnose(disk: &str) -> Diagnosis {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mount = folder.path().join("disk");
    fs::create_dir(&mount).unwrap();
    let text = format!(
        "database = {:?}\nsocket = \"none\"\n",
        mount.join("trace.db")
    );
    fs::write(folder.path().join("agent.toml"), text).unwrap();
    let gleaner = program("gleaner").unwrap();
    let mut doctor = Command::new("unshare");
    doctor
        .args(["--mount", "sh", "-c", ON_A_DISK, disk])
        .arg(&mount)
        .arg(&gleaner);
    doctor
        .args(["doctor", "agent", "--json", "--config-folder"])
        .arg(folder.path());
    doctor.arg("--programs").arg(gleaner.parent().unwrap());
    Diagnosis::of(&mut doctor)
}

#[test]
fn a_full_disk_is_named() {
    let full = "mount -t tmpfs -o size=3m tmpfs $mount; dd if=/dev/zero of=$mount/ballast 2>/dev/null || true";
    let found = diagnose(full);
    let check = found.find("agent", "disk-full");
    assert!(
        check["finding"].as_str().unwrap().starts_with("0 B free"),
        "{check}"
    );
    assert!(
        check["remedy"].as_str().unwrap().contains("du -x"),
        "{check}"
    );
    found.find("agent", "trace-missing");
}

#[test]
fn a_disk_that_is_mounted_read_only_is_named() {
    let found = diagnose("mount -t tmpfs -o ro,size=16m tmpfs $mount");
    let remedy = found.remedy("agent", "folder-unwritable");
    assert!(remedy.starts_with("mount -o remount,rw "), "{remedy}");
}
