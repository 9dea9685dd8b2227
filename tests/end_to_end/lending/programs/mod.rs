//! Debian's programs run with less memory than they need. They swap to the memory of two hosts, over links
//! with a limited rate, while an owner returns. Their output must equal, byte by byte, that of a run with
//! enough memory. The test needs root, since swap belongs to the whole machine.

use super::clerk::{Lenders, status};
use crate::delivery::running::{Random, wait_for};
use crate::host_swap::host_swap;
use gleaner_harness::succeed;
use gleaner_tests::{program, repository};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;
use std::time::Instant;

const MIB: u64 = 1 << 20;
/// Local memory of each program. Each program needs at least twice as much.
const LOCAL: &str = "48MiB";
/// The test counts only if each program has at least this many bytes on the clerk's device at some time.
const LEAST_SWAPPED_BYTES: u64 = 16 * MIB;
const RATE: &str = "1gbit";

/// A process that is killed when the guard is dropped, and a limited program with it.
struct ProgramGuard(Child);

impl Drop for ProgramGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Swap on a clerk's device. It is detached before the hosts that lend are dropped.
struct Swap {
    name: String,
    lenders: Lenders,
    _only: MutexGuard<'static, ()>,
}

impl Swap {
    fn attach(lenders: Lenders) -> Self {
        for host in &lenders.hosts {
            host.limit(&lenders.recruiter, RATE);
        }
        let config = lenders.configure("");
        let swap = Self {
            name: format!("programs-{}", std::process::id()),
            lenders,
            _only: host_swap(),
        };
        let mut attach = swap.clerk(swap.lenders.clerk());
        attach.args(["attach", "--method", "fuse", "--swap", "--size", "256MiB"]);
        attach.args(["--name", &swap.name, "--config"]).arg(config);
        succeed(&mut attach);
        wait_for("a lease", || swap.status()["servers"][0]["state"] == "up");
        swap
    }

    fn clerk(&self, mut command: Command) -> Command {
        command.arg("--runtime").arg(self.lenders.file("run"));
        command
    }

    fn here(&self) -> Command {
        self.clerk(Command::new(program("gleaner-clerk").unwrap()))
    }

    fn used_bytes(&self) -> u64 {
        let told = succeed(self.here().args(["attachments", "--json"]));
        let told: Value = serde_json::from_str(&told).unwrap();
        told[0]["swap_used_bytes"].as_u64().unwrap()
    }

    fn status(&self) -> Value {
        let socket = format!("run/{}/clerk-status.sock", self.name);
        status(&self.lenders.file(&socket))
    }

    /// Index of the host that holds most of the swap.
    fn fullest(&self) -> usize {
        let [first, second] = [0, 1].map(|n: usize| self.lenders.hosts[n].lending().resident_bytes);
        usize::from(second > first)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let mut detach = self.here();
        detach.args(["detach", &self.name, "--force", "--timeout", "5s"]);
        let _ = detach.stderr(Stdio::null()).status(); // after a successful test nothing is attached
    }
}

/// A program's command line, and the file to which it writes its result.
struct NamedProgram {
    name: &'static str,
    words: Vec<String>,
    makes: PathBuf,
}

impl NamedProgram {
    fn made(&self) -> Vec<u8> {
        let made = fs::read(&self.makes).unwrap();
        assert!(!made.is_empty(), "{} made nothing", self.name);
        fs::remove_file(&self.makes).unwrap();
        made
    }

    fn in_plain_memory(&self) -> Vec<u8> {
        let [first, rest @ ..] = &self.words[..] else {
            unreachable!("no program")
        };
        succeed(Command::new(first).args(rest));
        self.made()
    }

    /// Runs the program with little memory. Once it has swapped, runs `meanwhile`. Returns the program's
    /// result, and the maximum number of bytes that it had in swap.
    fn on(&self, swap: &Swap, meanwhile: impl FnOnce()) -> (Vec<u8>, u64) {
        let mut command = swap.here();
        command.args(["run", "--by", "swap", "--local", LOCAL, "--"]);
        command.args(&self.words);
        let said = swap.lenders.file("said");
        let file = fs::File::create(&said).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut running = ProgramGuard(command.stderr(file).spawn().unwrap());
        let (mut most_bytes, mut meanwhile, mut ended) = (0, Some(meanwhile), None);
        wait_for(self.name, || {
            most_bytes = most_bytes.max(swap.used_bytes());
            if most_bytes >= LEAST_SWAPPED_BYTES
                && let Some(meanwhile) = meanwhile.take()
            {
                meanwhile();
                assert!(
                    running.0.try_wait().unwrap().is_none(),
                    "it was over too soon"
                );
            }
            ended = running.0.try_wait().unwrap();
            ended.is_some()
        });
        let said = fs::read_to_string(said).unwrap();
        assert!(ended.unwrap().success(), "{}: {ended:?} {said}", self.name);
        assert!(
            meanwhile.is_none(),
            "{} swapped {most_bytes} bytes only",
            self.name
        );
        (self.made(), most_bytes)
    }
}

/// Writes the input for sorting: lines in random order.
fn lines(path: &Path) {
    let mut random = Random(10);
    let mut file = std::io::BufWriter::new(fs::File::create(path).unwrap());
    for _ in 0..40 * MIB / 64 {
        let (number, rest) = (random.below(u64::MAX), random.below(u64::MAX));
        writeln!(file, "{number:020} {rest:042}").unwrap();
    }
    file.flush().unwrap();
}

fn programs(lenders: &Lenders) -> [NamedProgram; 3] {
    let file = |name: &str| lenders.file(name).to_str().unwrap().to_owned();
    let here = |name: &str| {
        let path = repository().join("tests/end_to_end/lending/programs");
        path.join(name).to_str().unwrap().to_owned()
    };
    let python = repository().join(".venv/bin/python");
    lines(&lenders.file("lines"));
    let called = |name, makes: &str, words: &str| NamedProgram {
        name,
        words: words.split(' ').map(str::to_owned).collect(),
        makes: lenders.file(makes),
    };
    let (nearest, spheres) = (here("nearest.py"), here("spheres.pov"));
    let [sorted, found, drawn] = ["sorted", "nearest", "spheres.bmp"].map(file);
    [
        called(
            "sort",
            "sorted",
            &format!(
                "env LC_ALL=C sort --parallel=1 -S 512M -o {sorted} {}",
                file("lines")
            ),
        ),
        called(
            "nearest neighbours",
            "nearest",
            &format!("{} {nearest} 16000 {found}", python.display()),
        ),
        // The picture is a BMP file, since BMP files contain no creation time that would differ.
        called(
            "POV-Ray",
            "spheres.bmp",
            &format!("povray +I{spheres} +O{drawn} +FB +W64 +H48 +WT1 -D Declare=Count=80000"),
        ),
    ]
}

#[test]
fn sort_a_search_and_pov_ray_make_the_same_of_other_hosts_memory_while_an_owner_returns() {
    let swap = Swap::attach(Lenders::start());
    for program in programs(&swap.lenders) {
        let plain = program.in_plain_memory();
        let begin = Instant::now();
        let (made, most_bytes) = program.on(&swap, || {
            if program.name != "nearest neighbours" {
                return;
            }
            let host = &swap.lenders.hosts[swap.fullest()];
            assert!(host.lending().resident_bytes > 0);
            host.agent.owner_returns();
            wait_for("the owner's memory", || host.lending().leases.is_empty());
            assert_eq!(host.lending().resident_bytes, 0);
        });
        let (name, passed) = (program.name, begin.elapsed());
        assert!(made == plain, "{name} made something else");
        println!("{name}: {most_bytes} bytes swapped at most, {passed:?}");
    }
    for host in &swap.lenders.hosts {
        assert!(host.lending().pages.unwrap().requests_count > 0);
    }
    let counters = swap.status()["counters"].clone();
    println!("{counters}");
    let reads = counters["server_reads_count"].as_u64();
    assert!(reads > Some(1000), "{counters}");
    for none in [
        "failed_requests_count",
        "lost_pages_count",
        "corrupt_pages_count",
        "failed_disk_writes_count",
    ] {
        assert_eq!(counters[none], 0, "{none}: {counters}");
    }
    succeed(swap.here().args(["detach", &swap.name]));
    wait_for("leases to go with it", || swap.lenders.leases() == [0, 0]);
}
