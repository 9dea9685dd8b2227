//! Full and read-only disks for the doctor to find. They are real disks in separate mount namespaces.

use super::clinic::Diagnosis;
use gleaner_tests::program;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Script that mounts a disk on the folder `$1` with the command `$0`, and then executes its other arguments
/// as a command.
const ON_A_DISK: &str = "set -e; disk=$0; mount=$1; shift; eval \"$disk\"; exec \"$@\"";

/// Runs the doctor for an agent whose trace is on the disk that the command `disk` mounts.
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
