//! Program for those tests of swap that cannot run Rust's test harness: `hog MIB` fills more memory than the
//! host has, and checks that the contents survive swapping.
//!
//! It writes all memory, from the end on, and then prints `filled`. Then it answers each line of standard
//! input: `check` is answered by `right`; `keep MIB` frees all but MIB MiB of the memory, and is answered by
//! `kept`. The program ends when its input ends. Each check runs in the opposite direction of the one before
//! it. So it begins with the memory that was used last and is still resident, and only the rest must be read
//! from swap.

use std::io::BufRead;
use std::process::ExitCode;

/// Bytes of a sector, the smallest unit that a block device can get wrong.
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

/// Returns the word that begins a sector; it differs in every sector.
fn contents(at: usize) -> u64 {
    (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
