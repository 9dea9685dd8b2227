//! `gleaner-clerk attach` on the export of a standalone `gleaner-memoryd`: swap for a program that is short
//! of memory, file systems, and undoing everything whatever happened to the server. Needs root; one test at a
//! time, since swap belongs to the whole machine.

mod limited;

use crate::bystanders::swap_in_all_but;
use crate::host::MIB;
use gleaner_harness::{MemoryServer, resident_bytes, succeed, wait_for, wait_for_some};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const CLERK: &str = env!("CARGO_BIN_EXE_gleaner-clerk");
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
const PF_MEMALLOC_NOIO: u64 = 0x0008_0000;

/// A server and its attachments; all are removed when this value is dropped.
struct Bench {
    name: String,
    server: MemoryServer,
    folder: tempfile::TempDir,
    _only: MutexGuard<'static, ()>,
}

impl Bench {
    fn new(name: &str, size: &str) -> Self {
        // A failed test has cleaned up, so a poisoned lock can be used.
        let only = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("pages.sock");
        let server = MemoryServer::start(size, socket.to_str().unwrap());
        Self {
            name: format!("test-{}-{name}", std::process::id()),
            server,
            folder,
            _only: only,
        }
    }

    fn clerk(&self, args: &[&str]) -> Output {
        Command::new(CLERK)
            .arg("--runtime")
            .arg(self.runtime())
            .args(args)
            .output()
            .unwrap()
    }

    /// Runs the command, which must succeed; returns its output as JSON.
    #[track_caller]
    fn told(&self, args: &[&str]) -> serde_json::Value {
        let ended = self.clerk(&[args, &["--json"]].concat());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{args:?}: {said}");
        serde_json::from_slice(&ended.stdout).unwrap()
    }

    /// Runs the command, which must fail; returns its error message.
    #[track_caller]
    fn refused(&self, args: &[&str]) -> String {
        let ended = self.clerk(args);
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{args:?}: {said}");
        said
    }

    #[track_caller]
    fn attach(&self, more: &[&str]) -> serde_json::Value {
        let socket = self.socket();
        let args = [
            "attach", "--method", "fuse", "--name", &self.name, "--socket",
        ];
        self.told(&[&args[..], &[socket.to_str().unwrap()], more].concat())
    }

    fn detach(&self, more: &[&str]) -> serde_json::Value {
        self.told(&[&["detach"], more].concat())
    }

    fn swap_used_bytes(&self) -> u64 {
        self.told(&["attachments"])[0]["swap_used_bytes"]
            .as_u64()
            .unwrap()
    }

    fn runtime(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("pages.sock")
    }

    fn group(&self) -> PathBuf {
        memory_controller().join(format!("gleaner-clerk-{}", self.name))
    }

    /// Ids of the attachment's processes, from their control group.
    fn processes(&self) -> Vec<u32> {
        let pids = fs::read_to_string(self.group().join("cgroup.procs")).unwrap();
        pids.lines().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Checks that nothing is left of the attachment.
    #[track_caller]
    fn is_clean(&self) {
        let folder = self.folder.path().to_str().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(folder), "{mounts}");
        // This also shows that swap is off: a device with active swap could not be detached.
        for block in fs::read_dir("/sys/block").unwrap() {
            let backing = block.unwrap().path().join("loop/backing_file");
            let backing = fs::read_to_string(backing).unwrap_or_default();
            assert!(!backing.contains(folder), "{backing}");
        }
        assert!(!self.group().exists(), "{}", self.group().display());
        let left: Vec<_> = fs::read_dir(self.runtime()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        let of_ours = |entry: fs::DirEntry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            (line.contains("export-file") && line.contains(folder)).then_some(line)
        };
        let mut processes = fs::read_dir("/proc").unwrap();
        assert_eq!(
            processes.find_map(|entry| of_ours(entry.unwrap())),
            None::<String>
        );
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Lets a server that a test has stopped answer again.
        self.server.running.signal(Signal::CONT);
        self.clerk(&["detach", &self.name, "--force", "--timeout", "5s"]);
    }
}

/// Folder of the memory controller: its own folder (version 1), or that of all controllers (version 2).
fn memory_controller() -> PathBuf {
    let of_its_own = Path::new("/sys/fs/cgroup/memory");
    let root = Path::new("/sys/fs/cgroup");
    if of_its_own.join("cgroup.procs").exists() {
        of_its_own.to_owned()
    } else {
        root.to_owned()
    }
}

/// Python program that fills memory with distinct contents, and checks them as often as requested.
const HOG: &str = r#"
import mmap, sys
pages = int(sys.argv[1])
memory = mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
def page(number):
    return (number * 0x9e3779b97f4a7c15 % 2**64).to_bytes(8, "little") * 512
for number in range(pages):
    memory[number * 4096 : (number + 1) * 4096] = page(number)
print("filled", flush=True)
for line in sys.stdin:
    step = 7919  # a prime: no page is near the one before it
    wrong = sum(memory[n * 4096 : (n + 1) * 4096] != page(n) for n in (i * step % pages for i in range(pages)))
    print("wrong", wrong, flush=True)
"#;

/// A control group with little memory.
struct Group(PathBuf);

impl Group {
    fn new(limit_bytes: u64) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (pid, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = memory_controller().join(format!("gleaner-test-{pid}-{number}"));
        fs::create_dir(&path).unwrap();
        let group = Self(path);
        group.limit(limit_bytes);
        group
    }

    fn limit(&self, bytes: u64) {
        let version_1 = self.0.join("memory.limit_in_bytes");
        let file = if version_1.exists() {
            version_1
        } else {
            self.0.join("memory.max")
        };
        fs::write(file, bytes.to_string()).unwrap();
    }

    /// Command that starts a program in the group, so that all its pages count there.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"echo 0 >"$0" && exec "$@""#])
            .arg(self.0.join("cgroup.procs"))
            .arg(program);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        wait_for_some("the group to be empty", || fs::remove_dir(&self.0).ok());
    }
}

/// Allowed growth of used swap that no program of the test causes: a kernel may page out cold pages (DAMON's
/// `pageout`) during a test.
const OTHERS_BYTES: u64 = 16 * MIB;

/// A program that needs more memory than its group has. Dropping this value removes both.
struct Hog {
    child: Child,
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
    group: Group,
}

impl Hog {
    fn start(group: Group, wanted_bytes: u64) -> Self {
        let mut child = group
            .command("python3")
            .args(["-c", HOG])
            .arg((wanted_bytes / 4096).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let asked = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            asked,
            answers,
            group,
        }
    }

    /// Waits until the program has filled its memory and sleeps.
    #[track_caller]
    fn fills(&mut self) {
        assert_eq!(self.says(), "filled");
        let stat = format!("/proc/{}/stat", self.child.id());
        wait_for("the hog to wait", || {
            fs::read_to_string(&stat).unwrap().contains(") S ")
        });
    }

    fn says(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn looks(&mut self) -> String {
        self.asked.write_all(b"look\n").unwrap();
        self.says()
    }

    /// Checks that the program, whose pages are lost, ends when it reads the first of them, and never reads
    /// zeroes.
    #[track_caller]
    fn meets_its_end(&mut self) {
        let _ = self.asked.write_all(b"look\n");
        assert_eq!(self.says(), "");
        assert!(!self.child.wait().unwrap().success());
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_program_of_twice_its_limit_swaps_on_the_servers_memory_and_gets_all_of_it_back() {
    let bench = Bench::new("hog", "256MiB");
    // The attaching process may be short of memory, too: the programs that serve the swap run in another
    // control group.
    let group = Group::new(64 * MIB);
    let mut clerk = group.command(CLERK);
    clerk.args(["--runtime", bench.runtime().to_str().unwrap(), "attach"]);
    clerk.args([
        "--socket",
        bench.socket().to_str().unwrap(),
        "--method",
        "fuse",
    ]);
    clerk.args(["--name", &bench.name, "--swap", "--priority", "7"]);
    assert!(clerk.output().unwrap().status.success());
    let told = &bench.told(&["attachments"])[0];
    assert_eq!(told["method"], "fuse");
    assert_eq!(told["size_bytes"], 256 * MIB);
    assert_eq!(told["swap_priority"], 7);
    assert_eq!(told["swap_used_bytes"], 0);
    {
        let mut hog = Hog::start(group, 128 * MIB);
        hog.fills();
        // The part that does not fit is swapped out, and so is Python's own memory.
        assert!(bench.swap_used_bytes() >= 60 * MIB);
        assert_eq!(hog.looks(), "wrong 0");
        // Without swap the program would exceed the limit of its own group, however much memory the host has.
        let refused = bench.refused(&["detach"]);
        let group = hog.group.0.file_name().unwrap().to_str().unwrap();
        assert!(refused.contains(group), "{refused}");
        // With a higher limit, the program survives when its swap is removed.
        hog.group.limit(256 * MIB);
        let detached = bench.detach(&[&bench.name]);
        assert_eq!(detached["was_server_unreachable"], false);
        bench.is_clean();
        assert_eq!(hog.looks(), "wrong 0");
    }
    let again = bench.refused(&["detach", &bench.name]);
    assert!(again.contains("nothing is attached as"), "{again}");
    assert!(bench.refused(&["detach"]).contains("nothing is attached"));
}

#[test]
fn pages_that_swap_needs_no_more_are_given_back_to_the_server() {
    let bench = Bench::new("trim", "256MiB");
    bench.attach(&["--swap"]);
    let resident = || resident_bytes(bench.server.running.id());
    let before = resident();
    {
        let mut hog = Hog::start(Group::new(64 * MIB), 128 * MIB);
        hog.fills();
        assert!(resident() >= before + 60 * MIB);
    }
    // A slab is given back once all of it is trimmed; some slabs also hold other pages.
    wait_for("memory", || resident() < before + 16 * MIB);
}

#[test]
fn what_the_kernel_swaps_through_is_outside_of_every_limit_and_apart() {
    let bench = Bench::new("apart", "64MiB");
    let told = bench.attach(&[]);
    assert!(told["swap_used_bytes"].is_null());
    let pids = bench.processes();
    assert_eq!(pids.len(), 1, "{pids:?}");
    let swappiness = bench.group().join("memory.swappiness");
    let swap_max = bench.group().join("memory.swap.max");
    let never = fs::read_to_string(swappiness).or_else(|_| fs::read_to_string(swap_max));
    assert_eq!(never.unwrap().trim(), "0");
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let capabilities = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let capabilities = u64::from_str_radix(capabilities.unwrap().trim(), 16).unwrap();
    let is_allowed = capabilities & 1 << 24 != 0; // CAP_SYS_RESOURCE
    // The flag is inherited over exec and by every thread.
    for thread in fs::read_dir(format!("/proc/{}/task", pids[0])).unwrap() {
        let stat = fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
        let flags = stat.rsplit_once(") ").unwrap().1.split(' ').nth(6).unwrap();
        let flags: u64 = flags.parse().unwrap();
        assert_eq!(flags & PF_MEMALLOC_NOIO != 0, is_allowed, "{stat}");
    }
    if capabilities & 1 << 14 != 0 {
        // CAP_IPC_LOCK
        let status = fs::read_to_string(format!("/proc/{}/status", pids[0])).unwrap();
        let locked = status.lines().find_map(|l| l.strip_prefix("VmLck:"));
        assert_ne!(locked.unwrap().trim(), "0 kB");
    }
    let spared = fs::read_to_string(format!("/proc/{}/oom_score_adj", pids[0])).unwrap();
    assert_eq!(spared.trim() == "-1000", is_allowed);
    let notes = told["notes"].as_array().unwrap();
    assert_eq!(notes.is_empty(), is_allowed, "{notes:?}");
    let again = bench.refused(&[
        "attach",
        "--name",
        &bench.name,
        "--socket",
        bench.socket().to_str().unwrap(),
    ]);
    assert!(again.contains("is attached already"), "{again}");
    bench.detach(&[]);
    bench.is_clean();
}

#[test]
fn what_fails_midway_leaves_nothing() {
    let bench = Bench::new("midway", "16KiB");
    let socket = bench.socket();
    let attach = |socket: &Path| {
        let args = [
            "attach",
            "--method",
            "fuse",
            "--swap",
            "--name",
            &bench.name,
        ];
        bench.refused(&[&args[..], &["--socket", socket.to_str().unwrap()]].concat())
    };
    // The failing step comes after the mount and the loop device were started. Both must be gone.
    let said = attach(&socket);
    assert!(said.contains("at least 40 KiB"), "{said}");
    bench.is_clean();
    let said = attach(&bench.folder.path().join("nobody.sock"));
    assert!(said.contains("No such file"), "{said}");
    bench.is_clean();
}

#[test]
fn a_crash_midway_is_undone_by_whoever_detaches() {
    let bench = Bench::new("crash", "64MiB");
    bench.attach(&["--swap"]);
    // Simulates that the process ended before it recorded the device and the mount.
    let path = bench.runtime().join(&bench.name).join("attachment.json");
    let mut kept: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    kept["device"] = serde_json::Value::Null;
    kept["method"]["fuse"]["connection"] = serde_json::Value::Null;
    kept["processes"] = serde_json::json!([]);
    fs::write(&path, kept.to_string()).unwrap();
    assert_eq!(
        bench.told(&["attachments"])[0]["device"],
        serde_json::Value::Null
    );
    bench.detach(&[]);
    bench.is_clean();
}

#[test]
fn a_server_killed_while_nothing_is_swapped_out_costs_nothing() {
    let bench = Bench::new("killed", "64MiB");
    bench.attach(&["--swap"]);
    while bench.swap_used_bytes() > 0 {
        // The kernel has swapped out pages of other programs: detaching brings them back, and the next
        // attachment is empty at first.
        bench.detach(&[]);
        bench.attach(&["--swap"]);
    }
    bench.server.running.kill();
    let began = Instant::now();
    let detached = bench.detach(&["--timeout", "5s"]);
    assert!(began.elapsed() < Duration::from_secs(20), "{began:?}");
    assert_eq!(detached["lost_bytes"], 0);
    bench.is_clean();
}

#[test]
fn pages_lost_with_a_killed_server_are_named_and_never_read_as_zeroes() {
    let bench = Bench::new("lost", "256MiB");
    bench.attach(&["--swap"]);
    let mut hog = Hog::start(Group::new(64 * MIB), 128 * MIB);
    hog.fills();
    let mut bystander = Hog::start(Group::new(24 * MIB), 32 * MIB);
    bystander.fills();
    bystander.group.limit(64 * MIB);
    swap_in_all_but(hog.child.id());
    bench.server.running.kill();
    hog.group.limit(256 * MIB);
    let used_bytes = bench.swap_used_bytes();
    let detached = bench.detach(&[]);
    assert_eq!(detached["was_server_unreachable"], true);
    // Pages that were just being swapped out may still be in memory, so fewer bytes may be lost.
    let lost_bytes = detached["lost_bytes"].as_u64().unwrap();
    assert!(
        lost_bytes > used_bytes / 2 && lost_bytes <= used_bytes + OTHERS_BYTES,
        "{lost_bytes} of {used_bytes}"
    );
    bench.is_clean();
    assert_eq!(bystander.looks(), "wrong 0");
    hog.meets_its_end();
}

#[test]
fn a_server_that_does_not_answer_is_given_up_in_time_and_what_it_alone_held_is_named() {
    let bench = Bench::new("paused", "256MiB");
    bench.attach(&["--swap"]);
    let mut hog = Hog::start(Group::new(64 * MIB), 128 * MIB);
    hog.fills();
    swap_in_all_but(hog.child.id());
    bench.server.running.signal(Signal::STOP);
    hog.group.limit(256 * MIB);
    let used_bytes = bench.swap_used_bytes();
    let began = Instant::now();
    let detached = bench.detach(&["--timeout", "2s"]);
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(2), "{took:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(detached["was_server_unreachable"], true);
    let lost_bytes = detached["lost_bytes"].as_u64().unwrap();
    assert!(
        lost_bytes > 0 && lost_bytes <= used_bytes + OTHERS_BYTES,
        "{lost_bytes} of {used_bytes}"
    );
    bench.is_clean();
    hog.meets_its_end();
}

#[test]
fn a_file_system_is_not_taken_away_under_its_users() {
    let bench = Bench::new("scratch", "64MiB");
    let device = bench.attach(&[])["device"].as_str().unwrap().to_owned();
    let point = MountGuard(bench.folder.path().join("scratch"));
    fs::create_dir(&point.0).unwrap();
    run("mkfs.ext4", &["-q", &device]);
    run("mount", &[&device, point.0.to_str().unwrap()]);
    let contents: Vec<u8> = (0..8 * MIB).map(|i| ((i * i) >> 7) as u8).collect();
    fs::write(point.0.join("file"), &contents).unwrap();
    let said = bench.refused(&["detach"]);
    let where_ = format!("{device} is in use at {}", point.0.display());
    assert!(said.contains(&where_), "{said}");
    run("umount", &[point.0.to_str().unwrap()]);
    run("mount", &[&device, point.0.to_str().unwrap()]);
    assert!(fs::read(point.0.join("file")).unwrap() == contents);
    run("umount", &[point.0.to_str().unwrap()]);
    bench.detach(&[]);
    bench.is_clean();
}

/// A mounted file system, unmounted when dropped.
struct MountGuard(PathBuf);

impl Drop for MountGuard {
    fn drop(&mut self) {
        // The file system is usually unmounted by now; umount then fails.
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[track_caller]
fn run(program: &str, args: &[&str]) {
    succeed(Command::new(program).args(args));
}
