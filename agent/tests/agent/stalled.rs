//! An agent whose disk blocks for longer than listeners accept silence: a real, frozen disk, in a mount
//! namespace of its own.

use crate::activity::ChildGuard;
use crate::live::{Host, Listener};
use crate::running::{in_mounts_of, query};
use gleaner_schemas::live::{Message, SILENT_AFTER_MS};
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Shell script that mounts a disk on `$0`, then executes its arguments.
const ON_A_DISK: &str = "set -e; mkdir $0; truncate -s 64M $0.img; mkfs.ext4 -q $0.img; mount -o loop $0.img $0; exec \"$@\"";

/// Shell script that freezes the disk on `$0` until standard input ends, at the latest with this test.
const FREEZE: &str = "fsfreeze -f $0; echo frozen; read _; fsfreeze -u $0";

/// Starts an agent that traces onto `disk` in a host's folder; returns it with a listener.
fn start(host: &Host) -> (ChildGuard, Listener) {
    let mut command = Command::new("unshare");
    let traced = host.command("400ms");
    command
        .args(["--mount", "sh", "-c", ON_A_DISK])
        .arg(host.path("disk"))
        .arg(traced.get_program())
        .args(traced.get_args())
        .arg("--database")
        .arg(host.path("disk/trace.db"));
    let agent = ChildGuard(command.stderr(Stdio::null()).spawn().unwrap());
    let listener = Listener::connect(&host.path("agent.sock"));
    (agent, listener)
}

/// A frozen disk: writes block until this is dropped.
struct FrozenDisk(Child);

impl FrozenDisk {
    fn new(agent: &Child, disk: &Path) -> Self {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", agent.id()));
        command.args(["sh", "-c", FREEZE]).arg(disk);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut frozen = Self(command.spawn().unwrap());
        let mut said = String::new();
        let mut output = BufReader::new(frozen.0.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        assert_eq!(said, "frozen\n");
        frozen
    }
}

impl Drop for FrozenDisk {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A sample cannot be stored for longer than listeners accept silence. The agent must still send signs of
/// life, and announce the owner's return immediately. Only a sampler that hangs for good may lead to silence.
#[test]
fn a_sample_that_the_disk_holds_up_delays_no_word_of_the_owner_and_a_hung_one_is_silence() {
    let host = Host::new();
    let (agent, mut listener) = start(&host);
    listener.until_away();
    let silent = Some(Duration::from_millis(SILENT_AFTER_MS.unsigned_abs()));
    let stream = listener.0.get_ref().try_clone().unwrap();
    let bear = |silence| stream.set_read_timeout(silence).unwrap();
    let before = stream.read_timeout().unwrap();
    let frozen = FrozenDisk::new(&agent.0, &host.path("disk"));

    // Signs of life arrive in time, for longer than listeners accept silence, without a sample among them.
    bear(silent);
    let mut since_ms = None;
    loop {
        match listener.next() {
            Message::Alive(alive) => {
                let since_ms = *since_ms.get_or_insert(alive.time_ms);
                if alive.time_ms - since_ms > SILENT_AFTER_MS {
                    break;
                }
            }
            Message::Sample(_) => since_ms = None,
            _ => {}
        }
    }
    host.press();
    listener.returned_at_once("input");

    // Now the sampler becomes later than a slow disk can explain: signs of life must end.
    let mut line = String::new();
    while listener.0.read_line(&mut line).map_err(|e| e.kind()) != Err(ErrorKind::WouldBlock) {
        assert!(line.ends_with("}\n"), "the agent ended: {line}");
        line.clear();
    }
    bear(before);
    drop(frozen);
    listener.next_sample();
    let returns = "SELECT count(*) FROM events WHERE kind = 'owner_returned' AND detail = 'input'";
    listener.next_sample(); // the sample before is stored
    let database = host.path("disk/trace.db");
    let stored: i64 = in_mounts_of(agent.0.id(), || query(&database, returns));
    assert_eq!(stored, 1);
}
