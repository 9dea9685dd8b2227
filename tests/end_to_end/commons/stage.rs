//! A sealed folder and its mounts, for tests.

use gleaner_harness::{Random, Running, program, succeed};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Size of a block.
pub(super) const BLOCK: usize = 64 << 10;
/// Largest file of [`Stage::new`].
pub(super) const LARGE: &str = "lib/deep/er/large";
/// Number of blocks of [`LARGE`].
pub(super) const LARGE_BLOCKS: u64 = 40;

/// A folder `in` with files, and its catalog `x.catalog`.
pub(super) struct Stage {
    folder: tempfile::TempDir,
    /// `#HASH` of the catalog.
    pub(super) pin: String,
}

/// A mount; it is removed when the value is dropped.
pub(super) struct Mounted {
    running: Option<Running>,
    pub(super) point: PathBuf,
    socket: PathBuf,
}

pub(super) fn commons() -> Command {
    Command::new(program("gleaner-commons").unwrap())
}

impl Stage {
    /// Seals a folder with files of many sizes, links and a program.
    pub(super) fn new(random: &mut Random) -> Self {
        Self::sealing(|input| fill(input, random))
    }

    /// Seals a folder that `fill` fills.
    pub(super) fn sealing(fill: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in");
        fs::create_dir(&input).unwrap();
        fill(&input);
        let mut stage = Self {
            folder,
            pin: String::new(),
        };
        let sealed = succeed(
            commons()
                .arg("seal")
                .arg(stage.input())
                .arg("-o")
                .arg(stage.catalog()),
        );
        let address = sealed.lines().next().unwrap();
        let catalog = stage.catalog().display().to_string();
        address
            .strip_prefix(&catalog)
            .unwrap()
            .clone_into(&mut stage.pin);
        stage
    }

    pub(super) fn input(&self) -> PathBuf {
        self.folder.path().join("in")
    }

    /// Number of different blocks of all files.
    pub(super) fn blocks_count(&self) -> u64 {
        let mut folders = vec![self.input()];
        let mut blocks = HashSet::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    let bytes = fs::read(entry.path()).unwrap();
                    blocks.extend(bytes.chunks(BLOCK).map(<[u8]>::to_vec));
                }
            }
        }
        blocks.len() as u64
    }

    pub(super) fn catalog(&self) -> PathBuf {
        self.folder.path().join("x.catalog")
    }

    /// A new mount point.
    pub(super) fn point(&self, name: &str) -> PathBuf {
        let point = self.folder.path().join(name);
        fs::create_dir_all(&point).unwrap();
        point
    }

    /// Command that mounts at `name` from `source`, without reading the catalog's pin.
    pub(super) fn command(&self, name: &str, source: &str, options: &[&str]) -> Command {
        let mut command = commons();
        command
            .arg("mount")
            .arg(format!("{}{}", self.catalog().display(), self.pin));
        command
            .arg(self.point(name))
            .args(["--source", source])
            .arg("--socket")
            .arg(self.socket(name));
        command.args(options).stdout(Stdio::piped());
        command
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.sock"))
    }

    /// Mounts from a source.
    pub(super) fn mount_from(&self, name: &str, source: &str, options: &[&str]) -> Mounted {
        self.mount_with(name, &mut self.command(name, source, options))
    }

    /// Mounts by a command from [`Stage::command`].
    pub(super) fn mount_with(&self, name: &str, command: &mut Command) -> Mounted {
        let mounted = Mounted {
            running: Some(Running::start(command)),
            point: self.point(name),
            socket: self.socket(name),
        };
        assert!(mounted.running().printed().starts_with("mounted "));
        mounted
    }

    /// Mounts from the sealed folder.
    pub(super) fn mount(&self, name: &str, options: &[&str]) -> Mounted {
        self.mount_from(name, self.input().to_str().unwrap(), options)
    }
}

impl Mounted {
    /// A number of the mount's status.
    pub(super) fn figure(&self, key: &str) -> u64 {
        let said = succeed(
            commons()
                .args(["status", "--json", "--socket"])
                .arg(&self.socket),
        );
        let status: serde_json::Value = serde_json::from_str(&said).unwrap();
        status[key]
            .as_u64()
            .unwrap_or_else(|| panic!("no {key} in {status}"))
    }

    /// Status as text.
    pub(super) fn status(&self) -> String {
        succeed(commons().args(["status", "--socket"]).arg(&self.socket))
    }

    /// Ends the program as the service manager does; returns its remaining lines. Nothing is mounted
    /// afterwards.
    pub(super) fn end(mut self) -> Vec<String> {
        let (code, said) = self.running.take().unwrap().end();
        assert_eq!(code, Some(0), "{said:?}");
        assert!(!is_mounted(&self.point));
        said
    }

    pub(super) fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    /// Waits until the program ends by itself.
    pub(super) fn ended(mut self) -> (Option<i32>, Vec<String>) {
        self.running.take().unwrap().ended()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.kill();
        }
        unmount(&self.point);
    }
}

/// Makes files of many sizes, links and a program.
fn fill(input: &Path, random: &mut Random) {
    fs::create_dir_all(input.join("lib/deep/er")).unwrap();
    fs::create_dir_all(input.join("empty")).unwrap();
    for (name, bytes) in [
        ("none", 0),
        ("one", 1),
        ("lib/block", BLOCK),
        ("lib/deep/two and a bit", 2 * BLOCK + 17),
        (LARGE, LARGE_BLOCKS as usize * BLOCK - 5),
        ("lib-more", BLOCK - 1),
        ("ünï 100%#?", 5000),
    ] {
        let contents: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
        fs::write(input.join(name), contents).unwrap();
    }
    fs::create_dir(input.join("many")).unwrap();
    for i in 0..500 {
        fs::write(input.join(format!("many/file-{i}")), format!("{i}")).unwrap();
    }
    fs::copy("/bin/cat", input.join("program")).unwrap();
    fs::set_permissions(input.join("one"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("lib/block", input.join("link")).unwrap();
    symlink("nowhere", input.join("dangling")).unwrap();
    symlink("loop", input.join("loop")).unwrap();
}

/// Unmounts what a killed program left. Fails if nothing is mounted.
pub(super) fn unmount(point: &Path) -> bool {
    let quiet = Command::new("umount")
        .arg("-l")
        .arg(point)
        .stderr(Stdio::null())
        .status();
    quiet.unwrap().success()
}

/// Returns true if a file system is mounted at `point`.
pub(super) fn is_mounted(point: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = point.display().to_string();
    mounts
        .lines()
        .any(|line| line.split(' ').nth(4) == Some(&point))
}
