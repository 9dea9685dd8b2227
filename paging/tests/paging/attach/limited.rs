//! `gleaner-clerk run --local SIZE -- PROGRAM`: programs with little local memory, on swap that is attached to a
//! memory server.

use super::{Bench, CLERK, HOG, memory_controller};
use crate::host::MIB;
use gleaner_harness::{Running, wait_for};
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Python program whose three children each fill 24 MiB with distinct contents and check them.
const FORKER: &str = r#"
import mmap, os, sys
def wrong(seed, pages):
    memory = mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    def page(number):
        return ((number + seed * pages) * 0x9e3779b97f4a7c15 % 2**64).to_bytes(8, "little") * 512
    for number in range(pages):
        memory[number * 4096 : (number + 1) * 4096] = page(number)
    return sum(memory[n * 4096 : (n + 1) * 4096] != page(n) for n in range(pages))
children = []
for seed in range(3):
    pid = os.fork()
    if pid == 0:
        os._exit(wrong(seed, 6144) > 0)
    children.append(pid)
sys.exit(any(os.waitpid(pid, 0)[1] for pid in children))
"#;

/// Swap for the programs of one test.
fn swap(name: &str) -> Bench {
    let bench = Bench::new(name, "256MiB");
    bench.attach(&["--swap"]);
    bench
}

impl Bench {
    /// Command that runs a program with 32 MiB of local memory.
    fn limited(&self, options: &[&str], program: &[&str]) -> Command {
        let mut command = Command::new(CLERK);
        command.arg("--runtime").arg(self.runtime());
        command.args(["run", "--by", "swap", "--local", "32MiB"]);
        command.args(options).arg("--").args(program);
        command
    }
}

/// A hog with 32 MiB of local memory.
struct LimitedHog(Running);

impl LimitedHog {
    fn start(bench: &Bench, options: &[&str], wanted_bytes: u64) -> Self {
        let pages = (wanted_bytes / 4096).to_string();
        let mut command = bench.limited(options, &["python3", "-c", HOG, &pages]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(Running::start(&mut command))
    }

    /// Checks all pages twice, and ends the program.
    #[track_caller]
    fn expect_success(mut self) {
        let mut asked = self.0.input().unwrap();
        assert_eq!(self.0.printed(), "filled");
        for _ in 0..2 {
            asked.write_all(b"look\n").unwrap();
            assert_eq!(self.0.printed(), "wrong 0");
        }
        drop(asked);
        let (code, said) = self.0.ended();
        assert_eq!(code, Some(0), "{said:?}");
    }
}

/// Control group in which `gleaner-clerk run` has put a process.
fn group_of(pid: u32) -> PathBuf {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let mut parts = groups.split(['/', '\n']);
    let name = parts.find(|part| part.starts_with("gleaner-run-"));
    memory_controller().join(name.unwrap_or_else(|| panic!("{groups}")))
}

/// Returns true if the process has not ended. One that nobody waits for may stay as a zombie.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_program_of_three_times_its_local_memory_keeps_its_pages_and_its_limit() {
    let bench = swap("limited");
    let path = bench.folder.path().join("report.json");
    let options = ["--json", path.to_str().unwrap()];
    LimitedHog::start(&bench, &options, 96 * MIB).expect_success();
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let figure = |key: &str| {
        report[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key}: {report}"))
    };
    assert_eq!(report["program"], "python3");
    assert_eq!(figure("local_bytes"), 32 * MIB);
    assert_eq!(figure("oom_kills"), 0);
    assert!(figure("peak_local_bytes") >= 24 * MIB, "{report}");
    assert!(figure("peak_local_bytes") <= (32 + 64) * MIB, "{report}");
    assert!(figure("peak_swap_bytes") >= 32 * MIB, "{report}");
    assert!(figure("major_faults") > 0, "{report}");
    assert_eq!(report["is_swap_full"], false);
}

#[test]
fn two_programs_at_once_and_one_that_forks_have_separate_groups() {
    let bench = swap("at-once");
    let hogs = [64, 64].map(|mib| LimitedHog::start(&bench, &[], mib * MIB));
    let forker = Running::start(&mut bench.limited(&["--report"], &["python3", "-c", FORKER]));
    let (code, said) = forker.ended();
    assert_eq!(code, Some(0), "{said:?}");
    assert!(
        said.iter()
            .any(|line| line.contains("local memory: 32.0 MiB")),
        "{said:?}"
    );
    hogs.into_iter().for_each(LimitedHog::expect_success);
}

#[test]
fn exit_codes_and_signals_are_passed_on() {
    let bench = swap("codes");
    let code = |program: &[&str]| bench.limited(&[], program).output().unwrap().status.code();
    assert_eq!(code(&["true"]), Some(0));
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "kill -KILL $$"]), Some(137));
    assert_eq!(code(&["/nowhere/program"]), Some(127));
    assert_eq!(code(&["/"]), Some(126));
    for (options, message) in [
        (&["--local", "1MiB", "--", "true"][..], "at least 4MiB"),
        (&["--local", "32MiB"][..], "<PROGRAM>"),
        (
            &["--size", "1GiB", "--local", "32MiB", "--", "true"][..],
            "cannot be used with",
        ),
    ] {
        let refused = Command::new(CLERK)
            .arg("run")
            .args(options)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{options:?}: {said}");
        assert!(said.contains(message), "{options:?}: {said}");
    }
    let waits = r#"trap "echo received; exit 9" TERM; echo ready; while :; do sleep 0.1; done"#;
    let mut command = bench.limited(&[], &["sh", "-c", waits]);
    let running = Running::start(command.stdout(Stdio::piped()));
    assert_eq!(running.printed(), "ready");
    running.signal(Signal::TERM);
    assert_eq!(running.printed(), "received");
    assert_eq!(running.ended().0, Some(9));
}

#[test]
fn a_killed_supervisor_leaves_neither_group_nor_processes() {
    let bench = swap("orphans");
    let mut command = bench.limited(&[], &["sh", "-c", "sleep 600 & echo $!; wait"]);
    let running = Running::start(command.stdout(Stdio::piped()));
    let sleeper: u32 = running.printed().parse().unwrap();
    let group = group_of(sleeper);
    assert!(group.exists() && is_running(sleeper));
    running.kill();
    wait_for("the group's removal", || !group.exists());
    wait_for("the sleeper's end", || !is_running(sleeper));
}

#[test]
fn a_program_that_ends_takes_its_background_processes_along() {
    let bench = swap("daemon");
    let mut command = bench.limited(&[], &["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"]);
    let ended = command.output().unwrap();
    let sleeper: u32 = String::from_utf8(ended.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(ended.status.success());
    wait_for("the sleeper's end", || !is_running(sleeper));
}

#[test]
fn a_group_left_by_a_crash_is_removed_by_the_next_start() {
    let bench = swap("left");
    let left = memory_controller().join(format!("gleaner-run-left-{}", std::process::id()));
    fs::create_dir(&left).unwrap();
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    fs::write(left.join("cgroup.procs"), sleeper.id().to_string()).unwrap();
    assert!(bench.limited(&[], &["true"]).status().unwrap().success());
    assert!(!left.exists());
    assert_eq!(
        sleeper.wait().unwrap().signal(),
        Some(Signal::KILL.as_raw())
    );
}
