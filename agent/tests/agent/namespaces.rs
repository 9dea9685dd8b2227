//! Mount namespaces, and a `/proc` that hides processes. The tests need root, since only root may mount.

use crate::host::{MIB, by_path, sample_while_busy};
use crate::{agent, bytes, categories_less_physical, sample_command, value};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A process that ends when dropped.
struct NamespaceHolder(Child);

impl Drop for NamespaceHolder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Command that runs a script in a mount namespace of its own.
fn in_mount_namespace(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-ec",
        script,
        "sh",
    ]);
    command
}

/// Program that holds one file open and another mapped, and uses CPU, until it is killed.
const HOLDER: &str = r#"
import mmap, sys, time
opened = open(sys.argv[1] + "/opened", "rb")
mapped = open(sys.argv[1] + "/mapped", "rb")
memory = mmap.mmap(mapped.fileno(), 0, prot=mmap.PROT_READ)
opened.read(), memory[:]
print("holding", flush=True)
end = time.monotonic() + 120
while time.monotonic() < end: pass
"#;

/// Starts a process that holds `opened` (4 MiB) and `mapped` (8 MiB) of the folder `shown`, which is mounted
/// only in the process' own namespace: outside, other files have the same paths.
fn hold_files(folder: &Path, mount: &str) -> NamespaceHolder {
    for (name, mib) in [("opened", 4), ("mapped", 8)] {
        for (inside, size) in [("real", mib * MIB), ("shown", 5000)] {
            std::fs::create_dir_all(folder.join(inside)).unwrap();
            std::fs::write(folder.join(inside).join(name), vec![7; size]).unwrap();
        }
    }
    let script = format!("{mount}\nexec python3 -c \"$2\" \"$1/shown\"");
    let mut holder = in_mount_namespace(&script)
        .args([folder.as_os_str(), HOLDER.as_ref()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line);
    let holder = NamespaceHolder(holder);
    assert_eq!((stdout.unwrap(), line.as_str()), (8, "holding\n"));
    holder
}

/// Values of `opened` and `mapped` in a sample: MiB of size, cached and mapped, and the numbers of processes
/// that have the file open and that map it.
fn seen_in(mount: &str) -> [Option<[i64; 5]>; 2] {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let _holder = hold_files(folder.path(), mount);
    let document = sample_while_busy(&mut sample_command());
    ["opened", "mapped"].map(|name| {
        let file = by_path(&document, &folder.path().join("shown").join(name))?;
        let mib = |column| bytes(file, column).map_or(-1, |bytes| bytes / MIB as i64);
        let count = |column| value(file, column, Some("count")).unwrap();
        Some([
            mib("size_bytes"),
            mib("cached_bytes"),
            mib("mapped_cached_bytes"),
            count("open_processes_count"),
            count("mapping_processes_count"),
        ])
    })
}

#[test]
fn files_are_found_in_the_mount_namespace_of_their_process() {
    let seen = seen_in(r#"mount --bind "$1/real" "$1/shown""#);
    assert_eq!(seen, [Some([4, 4, 0, 1, 0]), Some([8, 8, 8, 1, 1])]);
}

/// Most containers use overlayfs. The pages of its files are in the cache of the underlying filesystem.
#[test]
fn files_of_an_overlay_are_seen_with_their_cached_pages() {
    let seen = seen_in(
        r#"mkdir "$1/none"; mount -t overlay overlay -o "lowerdir=$1/real:$1/none" "$1/shown""#,
    );
    assert_eq!(seen, [Some([4, 4, 0, 1, 0]), Some([8, 8, 8, 1, 1])]);
}

/// Pages of files on tmpfs are shared memory, which the processes' sizes and Shmem already include.
#[test]
fn files_on_tmpfs_are_no_page_cache() {
    let seen = seen_in(r#"mount -t tmpfs tmpfs "$1/shown"; cp "$1"/real/* "$1/shown""#);
    assert_eq!(seen, [None, None]);
}

/// The agent as `nobody`, with its own copy of the program, since `nobody` may not be able to enter the build
/// folder.
struct UnprivilegedAgent {
    home: tempfile::TempDir,
    program: PathBuf,
}

impl UnprivilegedAgent {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(home.path(), open).unwrap();
        let program = home.path().join("gleaner-agent");
        std::fs::copy(agent().get_program(), &program).unwrap();
        std::fs::create_dir(home.path().join("proc")).unwrap();
        Self { home, program }
    }

    /// Command of the agent on a `/proc` mounted with these options.
    fn agent(&self, options: &str) -> Command {
        const SCRIPT: &str = r#"mount -t proc -o "$1" proc "$2/proc"
            proc=$2/proc agent=$3; shift 3
            exec setpriv --reuid 65534 --regid 65534 --clear-groups "$agent" --proc-root "$proc" "$@""#;
        let mut command = in_mount_namespace(SCRIPT);
        command.arg(options).args([self.home.path(), &self.program]);
        command
    }

    fn sample(&self, options: &str) -> Json {
        sample_while_busy(self.agent(options).args(["sample", "--json"]))
    }
}

/// Details and count of an item's missing values for one reason.
fn absent(document: &Json, item: &str, reason: &str) -> Option<(String, i64)> {
    let rows = document["missing_values"].as_array().unwrap();
    let is_it = |row: &&Json| row["item"]["value"] == item && row["reason"]["value"] == reason;
    let row = rows.iter().find(is_it)?;
    let detail = row["detail"]["value"].as_str().unwrap().to_owned();
    Some((detail, value(row, "missing_count", Some("count")).unwrap()))
}

fn has_own_row(document: &Json) -> bool {
    let processes = document["processes"].as_array().unwrap();
    let own_pid = i64::from(std::process::id());
    processes.iter().any(|p| p["pid"]["value"] == own_pid)
}

/// The test's own process belongs to root, is active, and holds 128 MiB.
#[test]
fn an_agent_without_root_says_what_it_may_not_see() {
    let held = vec![1_u8; 128 * MIB];
    let nobody = UnprivilegedAgent::new();

    // The agent sees the process and its resident size.
    let plain = nobody.sample("hidepid=off");
    assert_eq!(categories_less_physical(&plain["sample"]), 0);
    assert!(has_own_row(&plain));
    for item in ["processes", "files"] {
        let (_, count) = absent(&plain, item, "denied").unwrap();
        assert!(count >= 1, "{item}");
    }
    assert_ne!(
        absent(&plain, "processes", "denied").unwrap().0.get(..7),
        Some("hidepid")
    );

    // The agent sees the process ids, and nothing else of the processes.
    let noaccess = nobody.sample("hidepid=noaccess");
    assert_eq!(categories_less_physical(&noaccess["sample"]), 0);
    let (detail, count) = absent(&noaccess, "processes", "denied").unwrap();
    assert!(
        count > 1 && detail.starts_with("stat: "),
        "{count} {detail}"
    );

    // The agent sees only itself, and notes that its available memory is not reliable.
    let hidden = nobody.sample("hidepid=invisible");
    let row = &hidden["sample"];
    assert_eq!(categories_less_physical(row), 0);
    assert!(!has_own_row(&hidden));
    let (detail, count) = absent(&hidden, "processes", "denied").unwrap();
    assert!(
        count == 1 && detail.starts_with("hidepid: "),
        "{count} {detail}"
    );
    let residual_bytes = bytes(row, "available_residual_bytes").unwrap();
    assert!(residual_bytes >= 128 * MIB as i64, "{residual_bytes}");
    drop(std::hint::black_box(held));
}

#[test]
fn status_says_what_to_do_about_hidden_processes() {
    let nobody = UnprivilegedAgent::new();
    let database = nobody.home.path().join("trace.db");
    let run = [
        "run",
        "--sample-interval",
        "200ms",
        "--samples",
        "1",
        "--database",
    ];
    let Output { status, stderr, .. } = nobody
        .agent("hidepid=2")
        .args(run)
        .arg(&database)
        .output()
        .unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let told = agent()
        .arg("status")
        .arg("--database")
        .arg(&database)
        .output();
    let told = String::from_utf8(told.unwrap().stdout).unwrap();
    for expected in ["processes: denied", "hidepid: ", "CAP_SYS_PTRACE"] {
        assert!(told.contains(expected), "{expected} in {told}");
    }
}

#[test]
fn without_the_kernels_own_files_it_says_which_option_hides_them() {
    let Output { status, stderr, .. } = UnprivilegedAgent::new()
        .agent("subset=pid")
        .args(["sample", "--settle", "0s"])
        .output()
        .unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(
        status.code() == Some(1) && said.contains("subset=pid"),
        "{said}"
    );
}
