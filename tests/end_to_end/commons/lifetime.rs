//! Beginnings and ends of a mount.

use super::mounted::assert_equal;
use super::stage::{Stage, is_mounted, unmount};
use gleaner_harness::{Random, Running, succeed};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::process::Command;

#[test]
fn a_killed_program_leaves_a_mount_that_fails_at_once_and_can_be_removed() {
    let stage = Stage::new(&mut Random::new());
    let source = stage.input().display().to_string();
    for _ in 0..3 {
        let mounted = stage.mount("killed", &[]);
        let mut open = File::open(mounted.point.join("lib/deep/er/large")).unwrap();
        open.read_exact(&mut [0; 10]).unwrap();
        mounted.running().kill();
        let read = fs::read(mounted.point.join("program")).map_err(|e| e.kind());
        assert_eq!(read, Err(ErrorKind::NotConnected));
        // `point` of the stage would try to make the folder.
        let mut again = Command::new(gleaner_harness::program("gleaner-commons").unwrap());
        again
            .arg("mount")
            .arg(stage.catalog())
            .arg(&mounted.point)
            .args(["--source", &source]);
        let done = again.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            said.contains("umount -l") && done.status.code() == Some(1),
            "{said}"
        );
        assert!(unmount(&mounted.point));
    }
    let mounted = stage.mount("killed", &[]);
    assert_equal(&mounted.point, &stage.input());
}

#[test]
fn umount_by_another_program_ends_the_mounts_program() {
    let stage = Stage::new(&mut Random::new());
    let mounted = stage.mount("umounted", &[]);
    assert!(is_mounted(&mounted.point));
    succeed(Command::new("umount").arg(&mounted.point));
    assert_eq!(mounted.ended(), (Some(0), Vec::new()));
}

#[test]
fn a_mount_in_use_is_detached_when_the_program_is_ended() {
    let stage = Stage::new(&mut Random::new());
    let mounted = stage.mount("busy", &[]);
    let mut open = File::open(mounted.point.join("program")).unwrap();
    open.read_exact(&mut [0; 10]).unwrap();
    let said = mounted.end();
    assert!(
        said.iter().any(|line| line.contains("was in use")),
        "{said:?}"
    );
    let mut rest = Vec::new();
    assert!(open.read_to_end(&mut rest).is_err());
}

#[test]
fn a_second_mount_needs_a_socket_of_its_own() {
    let stage = Stage::new(&mut Random::new());
    let first = stage.mount("first", &[]);
    let wanted = stage.command("second", stage.input().to_str().unwrap(), &[]);
    let socket = first.point.with_extension("sock");
    let arguments: Vec<_> = wanted.get_args().map(ToOwned::to_owned).collect();
    let mut second = Command::new(wanted.get_program());
    for argument in arguments {
        let is_socket = argument.to_string_lossy().ends_with("second.sock");
        second.arg(if is_socket {
            socket.clone().into()
        } else {
            argument
        });
    }
    let done = second.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        said.contains("name another with --socket") && done.status.code() == Some(1),
        "{said}"
    );
    assert!(!is_mounted(&stage.point("second")));
    assert_equal(&first.point, &stage.input());
}

/// In a user namespace, the kernel treats the program as an unprivileged user who mounts.
#[test]
fn a_user_without_privileges_on_the_host_can_mount() {
    let stage = Stage::new(&mut Random::new());
    let command = stage.command("user", stage.input().to_str().unwrap(), &[]);
    let mut inside = Command::new("unshare");
    inside.args([
        "--user",
        "--map-root-user",
        "--mount",
        "--kill-child",
        "--fork",
    ]);
    inside.arg(command.get_program()).args(command.get_args());
    inside.stdout(std::process::Stdio::piped());
    let running = Running::start(&mut inside);
    assert!(running.printed().starts_with("mounted "));
    let children = format!("/proc/{0}/task/{0}/children", running.id());
    let child = fs::read_to_string(children).unwrap();
    let point = stage.point("user");
    // Only the namespace's users may look, so the comparison runs inside.
    let mut compare = Command::new("nsenter");
    compare.args([
        "--target",
        child.trim(),
        "--user",
        "--preserve-credentials",
        "--mount",
    ]);
    succeed(
        compare
            .args(["diff", "-r", "--no-dereference"])
            .arg(stage.input())
            .arg(&point),
    );
}
