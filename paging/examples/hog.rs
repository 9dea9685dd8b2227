//! Uses more memory than there is, and tells whether it keeps its contents; for tests of swap that no Rust test can run in: `hog MIB`.
//!
//! Says `filled` once all of it is written, from its end on, and answers each line of standard input: `check` by `right`, `keep MIB`,
//! which gives back the rest, by `kept`. Ends with its input. Each check goes the other way than what was before it: what was used
//! last is found in memory, and only the rest comes back from swap.

use std::io::BufRead;
use std::process::ExitCode;

/// The least that a block device can get wrong.
const SECTOR_BYTES: usize = 512;
const WORDS: usize = SECTOR_BYTES / size_of::<u64>();

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref().and_then(words) {
        Some(words) => hold(words),
        None => {
            eprintln!("usage: hog MIB");
            ExitCode::from(2)
        }
    }
}

/// Number of words in `mib` MiB.
fn words(mib: &str) -> Option<usize> {
    mib.parse::<usize>()
        .ok()?
        .checked_mul((1 << 20) / size_of::<u64>())
}

fn hold(words: usize) -> ExitCode {
    let mut memory = vec![0_u64; words];
    for at in (0..words).step_by(WORDS).rev() {
        memory[at] = contents(at);
    }
    println!("filled");
    let mut is_forward = true;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.strip_prefix("keep ").and_then(self::words) {
            Some(words) => {
                memory.truncate(words);
                memory.shrink_to_fit();
                println!("kept");
            }
            None => {
                let wrong = |at: &usize| memory[*at] != contents(*at);
                let mut sectors = (0..memory.len()).step_by(WORDS);
                let found = match is_forward {
                    true => sectors.find(wrong),
                    false => sectors.rfind(wrong),
                };
                is_forward = !is_forward;
                let Some(at) = found else {
                    println!("right");
                    continue;
                };
                println!("byte {} is wrong", at * size_of::<u64>());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// No two sectors have the same.
fn contents(at: usize) -> u64 {
    (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
