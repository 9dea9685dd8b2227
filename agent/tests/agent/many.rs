//! Very many processes, short-lived processes, and reused process ids.

use crate::trace::{new_trace, number, on, signal, wait_for_samples};
use gleaner_agent::config::{Settings, Units};
use gleaner_agent::identity::FileIdKey;
use gleaner_agent::sample::sampler::Sampler;
use gleaner_harness::peak_bytes;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

fn sampler_of(proc_root: PathBuf) -> Sampler {
    let settings = Settings {
        proc_root,
        sys_root: "/sys".into(),
        dev_root: "/dev".into(),
        run_root: "/run".into(),
        units: Units {
            page_size_bytes: rustix::param::page_size() as u64,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
        },
        headroom_share: 0.15,
        always_active: Vec::new(),
        guest_processes: Vec::new(),
        always_active_cgroups: Vec::new(),
        damon: false,
        opens: false,
    };
    Sampler::new(settings, FileIdKey::random().unwrap()).unwrap()
}

/// Hundreds of processes per second begin and end, at every stage of a sample. They run in a namespace of
/// their own that has no other processes.
#[test]
fn processes_that_end_while_they_are_read_are_gone_and_no_more() {
    // Runs for some clock ticks, so that the process is active.
    const COUNT: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
    let mut namespace = Namespace::new();
    for command in [&format!("sh -c '{COUNT}'"), "/bin/true"] {
        for _ in 0..4 {
            namespace.tell(&format!("while :; do {command}; done <&- >&- 2>&- &"));
        }
    }
    let mut sampler = sampler_of(namespace.proc_root());
    let cpus = std::thread::available_parallelism().unwrap().get() as i64;
    let mut last: Option<Instant> = None;
    let (mut vanished, mut active) = (0, BTreeSet::new());
    let deadline = Instant::now() + Duration::from_secs(120);
    for taken in 1.. {
        let begun = Instant::now();
        let sample = sampler.take().unwrap();
        for row in sample.missing_values.rows() {
            if ["processes", "files"].contains(&row.item.as_str()) {
                assert_eq!(row.reason, "vanished", "{row:?}");
                vanished += row.missing_count;
            }
        }
        for process in &sample.processes {
            active.insert((process.pid, process.start_boottime_ms));
            if let (Some(cpu_ms), Some(last)) = (process.cpu_ms, last) {
                // Upper limit: all CPUs, from the start of the last sample to the end of this one, and two
                // ticks.
                let most_ms = last.elapsed().as_millis() as i64 * cpus + 20;
                assert!((0..=most_ms).contains(&cpu_ms), "{most_ms} {process:?}");
            }
        }
        last = Some(begun);
        if taken >= 50 && vanished >= 10 && active.len() >= 50 {
            break;
        }
        assert!(Instant::now() < deadline, "{taken} {vanished} {active:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A shell that is process 1 of a namespace of its own, and executes commands line by line.
struct Namespace {
    shell: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Namespace {
    fn new() -> Self {
        let script =
            "mount -t proc proc /proc; while read -r line; do eval \"$line\"; echo done; done";
        let mut shell = Command::new("unshare")
            .args([
                "--pid",
                "--fork",
                "--kill-child",
                "--mount",
                "--propagation",
                "private",
            ])
            .args(["sh", "-ec", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: shell.stdin.take().unwrap(),
            output: BufReader::new(shell.stdout.take().unwrap()),
            shell,
        }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        assert_eq!(answer, "done\n", "{line}");
    }

    /// Starts a command as process 100, replacing any earlier process 100.
    fn begin_as_100(&mut self, command: &str) {
        // Start times are known to a clock tick (10 ms). Two processes with the same id that start within one
        // tick are indistinguishable.
        std::thread::sleep(Duration::from_millis(25));
        self.tell(&format!(
            "echo 99 > /proc/sys/kernel/ns_last_pid; {command} <&- >&- 2>&- &"
        ));
    }

    /// Path of the shell's `/proc`; the shell is `unshare`'s child.
    fn proc_root(&self) -> PathBuf {
        let pid = self.shell.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        PathBuf::from(format!("/proc/{}/root/proc", children.unwrap().trim()))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn a_process_id_that_is_used_again_is_another_process() {
    const BUSY: &str = "while :; do :; done";
    let mut namespace = Namespace::new();
    namespace.begin_as_100("sleep 100");
    let root = namespace.proc_root();
    let mut sampler = sampler_of(root.clone());
    let mut hundred = || {
        let sample = sampler.take().unwrap();
        let found = sample
            .processes
            .into_iter()
            .find(|process| process.pid == 100);
        found.map(|process| (process.name, process.cpu_ms, process.start_boottime_ms))
    };
    assert_eq!(hundred(), None); // it sleeps, and is not active
    namespace.tell("kill 100; wait 100 || true");
    namespace.begin_as_100(&format!("sh -c '{BUSY}'"));
    wait_for_cpu(&root.join("100/stat"), 50);
    // The new process has the sleeper's id. The sleeper's CPU time must not count for it, so no difference is
    // known.
    let (name, cpu_ms, start_boottime_ms) = hundred().unwrap();
    assert_eq!((name.as_str(), cpu_ms), ("sh", None));
    namespace.tell("kill 100; wait 100 || true");
    namespace.begin_as_100(&format!("sh -c '{BUSY}'"));
    let ticks = wait_for_cpu(&root.join("100/stat"), 1);
    // The next process with this id has used less CPU time than the last one. The difference must be unknown,
    // and neither small nor an underflow.
    let (_, cpu_ms, started_later_ms) = hundred().unwrap();
    assert_eq!(cpu_ms, None);
    assert!(started_later_ms > start_boottime_ms);
    wait_for_cpu(&root.join("100/stat"), ticks + 5);
    let (_, cpu_ms, started_same_ms) = hundred().unwrap_or_default();
    assert!(
        cpu_ms.is_some() && started_same_ms == started_later_ms,
        "{cpu_ms:?}"
    );
}

/// Waits until the process has used `ticks` clock ticks.
fn wait_for_cpu(stat: &Path, ticks: u64) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let text = std::fs::read(stat).unwrap_or_default();
        let used = gleaner_agent::read::process::Stat::parse(&text);
        if let Some(used) = used.filter(|stat| stat.cpu_ticks >= ticks) {
            return used.cpu_ticks;
        }
        assert!(
            Instant::now() < deadline,
            "{}",
            String::from_utf8_lossy(&text)
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Makes a tree of `idle` processes, and a hundred that used CPU; their files are links to each other.
fn tree_of(idle: usize) -> tempfile::TempDir {
    let shared_memory = Path::new("/dev/shm"); // if it exists, it is faster than a disk
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let tree = tempfile::tempdir_in(if shared_memory.is_dir() {
        shared_memory
    } else {
        target
    });
    let tree = tree.unwrap();
    let write = |name: &str, text: &str| std::fs::write(tree.path().join(name), text).unwrap();
    write("meminfo", "MemTotal: 64000000 kB\nMemFree: 32000000 kB\n");
    write("uptime", "1000.00 1.00\n");
    let stat = |ticks: u32| {
        format!("7 (sleepd) S 1 7 7 0 -1 64 0 0 0 0 {ticks} 0 0 0 20 0 1 0 50 900 100 0\n")
    };
    write("idle", &stat(0));
    write("active", &stat(3));
    write("statm", "900 100 40 1 0 60 0\n");
    write(
        "status",
        "RssAnon: 240 kB\nRssFile: 160 kB\nRssShmem: 0 kB\nVmSwap: 0 kB\n",
    );
    write(
        "maps",
        "7f0000000000-7f0000200000 r-xp 00000000 fe:01 1002 /usr/lib/libc.so.6\n",
    );
    for pid in 1..=idle + 100 {
        let folder = tree.path().join(pid.to_string());
        std::fs::create_dir(&folder).unwrap();
        let link = |from: &str, to: &str| {
            std::fs::hard_link(tree.path().join(from), folder.join(to)).unwrap();
        };
        link(if pid > idle { "active" } else { "idle" }, "stat");
        link("statm", "statm");
        if pid > idle {
            link("status", "status");
            link("maps", "maps");
        }
    }
    tree
}

/// Starts tracing, and waits for `samples` samples; returns the agent's peak resident memory.
fn trace(command: &mut Command, database: &Path, samples: i64) -> i64 {
    let mut agent = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let stderr = agent.stderr.take().unwrap();
    BufReader::new(stderr).read_line(&mut line).unwrap();
    assert!(line.contains("sampling every"), "{line}");
    wait_for_samples(database, &mut agent, samples);
    let peak_bytes = peak_bytes(agent.id()).cast_signed();
    signal(&agent, rustix::process::Signal::TERM);
    assert!(agent.wait().unwrap().success());
    peak_bytes
}

/// Traces a tree; returns the agent's peak resident memory, and columns of the first sample.
fn trace_tree(tree: &Path, columns: &str) -> (i64, Vec<i64>) {
    let (_dir, database) = new_trace();
    let mut command = on(&database);
    command.args([
        "run",
        "--sample-interval",
        "100ms",
        "--page-size",
        "4096",
        "--ticks",
        "100",
    ]);
    let peak_bytes = trace(command.arg("--proc-root").arg(tree), &database, 2);
    let column = |column: &str| {
        number(
            &database,
            &format!("SELECT {column} FROM samples ORDER BY sequence LIMIT 1"),
        )
    };
    (peak_bytes, columns.split(' ').map(column).collect())
}

#[test]
fn twenty_thousand_processes_are_counted_in_bounded_memory() {
    const LARGEST_DIFFERENCE_BYTES: i64 = 40 << 20;
    let columns = "processes_count active_processes_count available_idle_process_bytes";
    let (few_bytes, few) = trace_tree(tree_of(1).path(), columns);
    assert_eq!(few, [101, 100, 60 * 4096]);
    let (many_bytes, many) = trace_tree(tree_of(19_900).path(), columns);
    assert_eq!(many, [20_000, 100, 19_900 * 60 * 4096]);
    let difference_bytes = many_bytes - few_bytes;
    assert!(
        difference_bytes < LARGEST_DIFFERENCE_BYTES,
        "{difference_bytes}"
    );
}

/// Traces real processes: `cargo test --release -p gleaner-agent -- --ignored --nocapture
/// twenty_thousand`.
#[test]
#[ignore = "takes some 3 GB of memory and a minute: for the soak"]
fn twenty_thousand_real_processes() {
    const PROGRAM: &str = r#"
        #include <signal.h>
        #include <stdio.h>
        #include <sys/prctl.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static pid_t children[20000];
        int main(void) {
            for (int i = 0; i < 20000; i++) {
                pid_t pid = fork();
                if (pid < 0) { perror("fork"); return 1; }
                children[i] = pid;
                if (pid == 0) { prctl(PR_SET_PDEATHSIG, SIGKILL); for (;;) pause(); }
            }
            puts("ready"); fflush(stdout);
            getchar();
            for (int i = 0; i < 20000; i++) kill(children[i], SIGKILL);
            while (wait(NULL) > 0) {}
            return 0;
        }"#;
    let (dir, database) = new_trace();
    let source = dir.path().join("many.c");
    let program = dir.path().join("many");
    std::fs::write(&source, PROGRAM).unwrap();
    let compiled = Command::new("cc")
        .arg("-static")
        .arg("-o")
        .args([&program, &source])
        .status();
    assert!(compiled.unwrap().success());
    let mut parent = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = parent.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let peak_bytes = trace(
        on(&database).args(["run", "--sample-interval", "2s"]),
        &database,
        6,
    );
    drop(parent.stdin.take()); // ends the parent, and with it its children
    parent.wait().unwrap();
    assert_eq!(line, "ready\n");
    let figure = |sql: &str| {
        number(
            &database,
            &format!("SELECT {sql} FROM samples WHERE sequence > 1"),
        )
    };
    eprintln!(
        "{} processes: {} us of CPU a sample (mean of {}; {} to {}), {} us long, peak RSS {peak_bytes} bytes",
        figure("max(processes_count)"),
        figure("CAST(avg(agent_cpu_us) AS INTEGER)"),
        figure("count(*)"),
        figure("min(agent_cpu_us)"),
        figure("max(agent_cpu_us)"),
        figure("CAST(avg(agent_wall_us) AS INTEGER)"),
    );
    assert!(figure("min(processes_count)") >= 20_000);
    assert!(peak_bytes < 60 << 20, "{peak_bytes}");
}
