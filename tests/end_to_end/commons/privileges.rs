//! The service gives up its privileges before it serves anybody. These tests run as root.

use super::stage::{Stage, commons, is_mounted, unmount};
use gleaner_harness::{Random, Running, program, succeed, wait_for};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// User of the service: `nobody` in every /etc/passwd of Debian.
pub(super) const USER: u32 = 65_534;
/// Another user, who reads.
const READER: u32 = 65_533;
const READABLE: &str = "lib/deep/two and a bit";
/// File that only root may read at the source.
const SECRET: &str = "lib/block";

/// A sealed folder, a mount point and a configuration, which other users can reach.
pub(super) struct Scene {
    stage: Stage,
    pub(super) folder: tempfile::TempDir,
    pub(super) point: PathBuf,
}

impl Scene {
    pub(super) fn new() -> Self {
        let stage = Stage::new(&mut Random::new());
        let folder = tempfile::tempdir().unwrap();
        let above = stage.input();
        set_mode(above.parent().unwrap(), 0o755);
        set_mode(&stage.input().join(SECRET), 0o600);
        set_mode(folder.path(), 0o777);
        let point = stage.point("private");
        Self {
            stage,
            folder,
            point,
        }
    }

    fn configure(&self, more: &str) -> PathBuf {
        let path = self.folder.path().join("commons.toml");
        let text = format!(
            "{more}local_listen = \"127.0.0.1:0\"\nsocket = {:?}\n\
             [[mounts]]\ncatalog = {:?}\nfolder = {:?}\nsource = {:?}\n",
            self.folder.path().join("commons.sock"),
            self.stage.catalog(),
            self.point,
            self.stage.input(),
        );
        fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, more: &str) -> Command {
        let mut command = commons();
        command.arg("run").arg("--config").arg(self.configure(more));
        command.stdout(Stdio::piped());
        command
    }

    /// Starts the service as root, with `user`; returns once it serves.
    fn start(&self) -> Running {
        self.start_with("")
    }

    /// Starts the service in the same way with further keys.
    pub(super) fn start_with(&self, keys: &str) -> Running {
        let mut command = self.command(&format!("user = \"nobody\"\n{keys}"));
        let running = Running::start(&mut command);
        assert!(running.printed().starts_with("mounted "));
        running
    }

    fn wanted(&self) -> Vec<u8> {
        fs::read(self.stage.input().join(READABLE)).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        unmount(&self.point);
    }
}

pub(super) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Asserts that no thread of the service has a capability, or another user than [`USER`].
pub(super) fn assert_unprivileged(process: u32) {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut threads_count = 0;
    for thread in threads {
        let path = thread.unwrap().path().join("status");
        let Ok(status) = fs::read_to_string(&path) else {
            continue; // the thread has ended
        };
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_else(|| panic!("no {key} in {status}"))
                .split_whitespace()
                .collect::<Vec<_>>()
        };
        for key in ["Uid:", "Gid:"] {
            assert_eq!(value(key), [USER.to_string().as_str(); 4], "{status}");
        }
        for key in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(value(key), ["0000000000000000"], "{status}");
        }
        assert_eq!(value("NoNewPrivs:"), ["1"], "{status}");
        threads_count += 1;
    }
    assert!(threads_count > 1, "{threads_count} threads");
}

/// Reads a file as [`READER`], by a command that enters the mount's namespace if necessary.
fn read_as_another(mut enter: Command, file: &Path) -> (bool, Vec<u8>) {
    let (user, group) = (format!("--reuid={READER}"), format!("--regid={READER}"));
    enter.args(["setpriv", &user, &group, "--clear-groups", "cat"]);
    let done = enter.arg(file).output().unwrap();
    (done.status.success(), done.stdout)
}

#[test]
fn root_becomes_the_configured_user_and_others_read_its_mounts() {
    let scene = Scene::new();
    let running = scene.start();
    running.hear("listening on http://");
    assert_unprivileged(running.id());

    let read = |name: &str| read_as_another(Command::new("env"), &scene.point.join(name));
    assert!(read(READABLE) == (true, scene.wanted()));
    // Its mode in the catalog lets everybody read; the service may not read it at the source.
    assert_eq!(read(SECRET), (false, Vec::new()));
    assert!(fs::read(scene.point.join(SECRET)).is_err());

    let status = succeed(
        commons()
            .args(["status", "--json", "--socket"])
            .arg(scene.folder.path().join("commons.sock")),
    );
    assert!(status.contains("/private\""), "{status}");
    let (code, said) = running.end();
    assert_eq!(code, Some(0), "{said:?}");
    assert!(!is_mounted(&scene.point));
}

#[test]
fn a_killed_service_leaves_no_mount_and_starts_again() {
    let scene = Scene::new();
    for _ in 0..2 {
        let running = scene.start();
        running.kill();
        wait_for("the end of the mount", || !is_mounted(&scene.point));
    }
    // Both processes are killed: the next service unmounts what they left.
    let running = scene.start();
    let children = format!("/proc/{0}/task/{0}/children", running.id());
    let remover = fs::read_to_string(children).unwrap();
    succeed(Command::new("kill").arg("-KILL").arg(remover.trim()));
    running.kill();
    assert!(is_mounted(&scene.point));
    let again = scene.start();
    again.hear("whose process had ended");
    assert!(fs::read(scene.point.join(READABLE)).unwrap() == scene.wanted());
    let (code, said) = again.end();
    assert_eq!(code, Some(0), "{said:?}");
    assert!(!is_mounted(&scene.point));
}

/// As the package's unit starts it: another user than root, with CAP_SYS_ADMIN alone. In a mount namespace,
/// because a test machine's /dev/fuse may be root's alone.
#[test]
fn a_capability_from_the_service_manager_is_given_up() {
    let scene = Scene::new();
    let copy = scene.folder.path().join("gleaner-commons");
    fs::copy(program("gleaner-commons").unwrap(), &copy).unwrap();
    let script = r#"mount -t tmpfs none "$1" && mknod "$1/fuse" c 10 229 && chmod 666 "$1/fuse" &&
        mount --bind "$1/fuse" /dev/fuse && program=$2 && configuration=$3 &&
        exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all,+sys_admin \
            --ambient-caps=-all,+sys_admin --bounding-set=-all,+sys_admin --no-new-privs \
            "$program" run --config "$configuration""#;
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(scene.stage.point("devices"))
        .arg(&copy)
        .arg(scene.configure(""));
    let running = Running::start(command.stdout(Stdio::piped()));
    assert!(running.printed().starts_with("mounted "));
    assert_unprivileged(running.id());
    let mut enter = Command::new("nsenter");
    enter.arg(format!("--mount=/proc/{}/ns/mnt", running.id()));
    assert!(read_as_another(enter, &scene.point.join(READABLE)) == (true, scene.wanted()));
    let (code, said) = running.end();
    assert_eq!(code, Some(0), "{said:?}");
}

#[test]
fn a_user_or_a_source_that_cannot_be_used_is_an_error_and_nothing_is_mounted() {
    let mut scene = Scene::new();
    let refused = |scene: &Scene, more: &str| {
        let done = scene.command(more).output().unwrap();
        assert_eq!(done.status.code(), Some(1));
        assert!(!is_mounted(&scene.point));
        String::from_utf8(done.stderr).unwrap()
    };
    let said = refused(&scene, "user = \"gleaner-no-such-user\"\n");
    assert!(said.contains("no user \"gleaner-no-such-user\""), "{said}");
    let said = refused(&scene, "user = \"root\"\n");
    assert!(said.contains("is root itself"), "{said}");
    // The service mounts first, so it fails when it may not read its catalog, and unmounts.
    set_mode(&scene.stage.catalog(), 0o600);
    let said = refused(&scene, "user = \"nobody\"\n");
    assert!(said.contains("x.catalog"), "{said}");
    set_mode(&scene.stage.catalog(), 0o644);
    scene.point = scene.stage.input();
    let said = refused(&scene, "user = \"nobody\"\n");
    assert!(said.contains("lies in the mount point"), "{said}");
}
