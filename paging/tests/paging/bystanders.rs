//! Programs outside a test whose pages are in its swap nevertheless, since a kernel may swap out any cold
//! page (DAMON's `pageout`). A test that removes the swap's server would end these programs.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// Bit 62 of an entry: the page is in swap (Documentation/admin-guide/mm/pagemap.rst).
const IS_SWAPPED: u64 = 1 << 62;

/// Makes all processes except `pid` read their swapped-out pages, which brings these pages back into memory.
pub(crate) fn swap_in_all_but(pid: u32) {
    let processes = fs::read_dir("/proc").unwrap();
    let others = processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    for other in others.filter(|other: &u32| *other != pid) {
        // The process may have ended; kernel threads have no pages.
        let _ = swap_in(other);
    }
}

fn swap_in(pid: u32) -> io::Result<()> {
    let open = |name: &str| File::open(format!("/proc/{pid}/{name}"));
    let (pagemap, memory) = (open("pagemap")?, open("mem")?);
    let mut mapping = 0..0;
    for line in fs::read_to_string(format!("/proc/{pid}/smaps"))?.lines() {
        if let Some(swapped) = line.strip_prefix("Swap:") {
            if swapped.trim() != "0 kB" {
                for page in mapping.clone() {
                    let mut entry = [0; 8];
                    pagemap.read_exact_at(&mut entry, page * 8)?;
                    if u64::from_ne_bytes(entry) & IS_SWAPPED != 0 {
                        memory.read_exact_at(&mut [0], page * PAGE)?;
                    }
                }
            }
        } else if let Some(pages) = pages(line) {
            mapping = pages;
        }
    }
    Ok(())
}

/// Returns the page numbers of a mapping, from the first line of its entry: `7f00-7f10 rw-p …`.
fn pages(line: &str) -> Option<std::ops::Range<u64>> {
    let (begin, end) = line.split_whitespace().next()?.split_once('-')?;
    let page = |address| Some(u64::from_str_radix(address, 16).ok()? / PAGE);
    Some(page(begin)?..page(end)?)
}
