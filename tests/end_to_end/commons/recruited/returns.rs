//! Owners who return in the middle: while a compiler runs from a mount, and while eight mounts are read at once.

use super::deployment::{LONG_TIMEOUTS, RecruitedFleet};
use crate::commons::mounted::assert_equal;
use crate::commons::stage::Stage;
use crate::commons::toolchain;
use gleaner_harness::{Random, Running, wait_for};
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Number of hosts that read at once; the owners of the first [`RETURNS`] return meanwhile.
const READERS: usize = 8;
const RETURNS: usize = 2;

/// Ends the readers when it is dropped, also by a panic.
struct ReadersEnd<'a>(&'a AtomicBool);

impl Drop for ReadersEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Gives a compiler its source, and waits until it has written the code.
fn finish(mut compiler: Running) {
    let mut source = compiler.input().unwrap();
    source.write_all(toolchain::SOURCE.as_bytes()).unwrap();
    drop(source);
    let (code, said) = compiler.ended();
    assert_eq!(code, Some(0), "{said:?}");
}

#[test]
fn a_compiler_makes_the_same_code_while_the_owner_of_its_blocks_memory_returns() {
    let holds = ["0B", "64MiB", "0B"];
    let deployment = RecruitedFleet::start(toolchain::sealed(), &holds, LONG_TIMEOUTS);
    deployment.wait_until_joined(&holds);
    let [reader, lender, desk] = &deployment.hosts[..] else {
        panic!("three hosts");
    };
    let input = deployment.stage.input();
    let many = deployment.stage.blocks_count() / 2;
    wait_for("the compiler's blocks at the lender", || {
        assert_equal(&reader.point, &input);
        lender.global("global_blocks_count") >= many
    });

    let scratch = tempfile::tempdir().unwrap();
    let [made, plain] = ["made.s", "plain.s"].map(|name| scratch.path().join(name));
    // The compiler waits for its source until the owner has the memory.
    let compiler = toolchain::compile_input(&desk.point, &made);
    wait_for("a block of the compiler from the lease", || {
        desk.figure(None, "cluster_blocks_count") > 0
    });
    lender.return_owner_of_blocks();
    assert!(compiler.is_running());
    let before = desk.figure(None, "fetched_blocks_count");
    finish(compiler);
    assert!(
        desk.figure(None, "fetched_blocks_count") > before,
        "the compiler read nothing after the return"
    );

    finish(toolchain::compile_input(&input, &plain));
    let [made, plain] = [made, plain].map(|path| fs::read_to_string(path).unwrap());
    assert!(plain.contains("sum:"), "{plain}");
    assert_eq!(made, plain);
    assert_eq!(lender.global("leased_bytes"), 0);
}

#[test]
fn eight_mounts_that_start_at_once_read_every_byte_while_two_owners_return() {
    let holds = ["64MiB"; READERS];
    let stage = Stage::new(&mut Random::new());
    let deployment = RecruitedFleet::start(stage, &holds, LONG_TIMEOUTS);
    deployment.wait_until_joined(&holds);
    let input = deployment.stage.input();
    let are_back = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = ReadersEnd(&are_back);
        for host in &deployment.hosts {
            let (point, input, are_back) = (&host.point, &input, &are_back);
            scope.spawn(move || {
                // The last pass begins after the returns, so all readers read before, during and after them.
                let mut is_last = false;
                while !is_last {
                    is_last = are_back.load(Ordering::SeqCst);
                    assert_equal(point, input);
                }
            });
        }
        for host in &deployment.hosts[..RETURNS] {
            host.return_owner_of_blocks();
        }
        drop(end);
    });
    let fetched = deployment.hosts.iter();
    let fetched = fetched.map(|host| host.figure(None, "fetched_blocks_count"));
    let (fetched, blocks) = (fetched.sum::<u64>(), deployment.stage.blocks_count());
    // Each pass of one host alone would fetch all blocks.
    assert!(
        (blocks..=2 * blocks).contains(&fetched),
        "{fetched} fetches of {blocks} blocks"
    );
}
