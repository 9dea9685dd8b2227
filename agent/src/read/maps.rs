//! `/proc/[pid]/maps`: the files that a process maps.

use super::words;
use std::ops::Range;

/// A mapping of a file in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// Addresses of the mapping; they are also the name of its link in `map_files`.
    pub addresses: Range<u64>,
    /// Mapped bytes of the file; the range may end beyond the file's end by less than a page.
    pub range: Range<u64>,
    /// Device as (major, minor).
    pub device: (u32, u32),
    /// Inode of the file.
    pub inode: u64,
    /// Path as the process sees it; ends in ` (deleted)` if the file has no path any more.
    pub path: &'a [u8],
}

/// Parses one line. `None` for memory without a file, and for shared memory, which the other sizes of the
/// process already include.
#[must_use]
pub fn file_mapping(line: &[u8]) -> Option<Mapping<'_>> {
    let mut words = words(line);
    let (start, end) = std::str::from_utf8(words.next()?).ok()?.split_once('-')?;
    let addresses = hex(start)?..hex(end)?;
    let offset = hex(std::str::from_utf8(words.nth(1)?).ok()?)?;
    let (major, minor) = std::str::from_utf8(words.next()?).ok()?.split_once(':')?;
    let inode: u64 = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let path = &line[line.iter().position(|&b| b == b'/')?..];
    let shared_memory = [
        &b"/memfd:"[..],
        b"/dev/shm/",
        b"/SYSV",
        b"/dev/zero (deleted)",
    ];
    if inode == 0 || shared_memory.iter().any(|prefix| path.starts_with(prefix)) {
        return None;
    }
    let length = addresses
        .end
        .checked_sub(addresses.start)
        .filter(|&length| length > 0)?;
    Some(Mapping {
        addresses,
        range: offset..offset.checked_add(length)?,
        device: (hex(major)? as u32, hex(minor)? as u32),
        inode,
        path,
    })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Union of the ranges, in order; ranges that touch or overlap are joined.
#[must_use]
pub fn union(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|r| r.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Ranges of a file of `size_bytes` outside `ranges`, which are in order and do not touch.
#[must_use]
pub fn complement(ranges: &[Range<u64>], size_bytes: u64) -> Vec<Range<u64>> {
    let starts = ranges.iter().map(|r| r.start).chain([size_bytes]);
    let ends = [0].into_iter().chain(ranges.iter().map(|r| r.end));
    ends.zip(starts)
        .map(|(start, end)| start..end.min(size_bytes))
        .filter(|gap| !gap.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_and_what_is_none() {
        let line = b"7f10c000-7f10e000 r-xp 00003000 fe:01 1311 /usr/lib/a b.so";
        let mapping = Mapping {
            addresses: 0x7f10_c000..0x7f10_e000,
            range: 0x3000..0x5000,
            device: (0xfe, 1),
            inode: 1311,
            path: b"/usr/lib/a b.so",
        };
        assert_eq!(file_mapping(line), Some(mapping));
        for none in [
            &b"7ffd1000-7ffd2000 rw-p 00000000 00:00 0 [stack]"[..],
            b"7ffd1000-7ffd2000 rw-p 00000000 00:00 0 ",
            b"7ffd1000-7ffd2000 rw-s 00000000 00:01 77 /memfd:x (deleted)",
            b"7ffd1000-7ffd2000 rw-s 00000000 00:18 9 /dev/shm/x",
            b"7ffd1000-7ffd2000 rw-s 00000000 00:0f 55 anon_inode:[perf_event]",
            b"7ffd1000-7ffd2000 rw-s",
        ] {
            assert_eq!(
                file_mapping(none),
                None,
                "{}",
                String::from_utf8_lossy(none)
            );
        }
    }

    proptest! {
        #[test]
        fn never_panics(line in proptest::collection::vec(any::<u8>(), 0..100), a in any::<u64>(), b in any::<u64>()) {
            let _ = file_mapping(&line);
            let _ = file_mapping(format!("{a:x}-{b:x} r--p {b:x} fe:1 7 /x").as_bytes());
        }

        /// Checks the definition: a byte is in the union if it is in any range, otherwise in the complement.
        #[test]
        fn union_holds_each_byte_once_and_complement_the_others(ranges in proptest::collection::vec((0u64..40, 0u64..10), 0..12), size in 0u64..60) {
            let ranges: Vec<_> = ranges.into_iter().map(|(s, l)| s..s + l).collect();
            let joined = union(ranges.clone());
            let others = complement(&joined, size);
            let times = |ranges: &[Range<u64>], byte: u64| ranges.iter().filter(|r| r.contains(&byte)).count();
            for byte in 0..60 {
                let is_in = ranges.iter().any(|r| r.contains(&byte));
                prop_assert_eq!(times(&joined, byte), usize::from(is_in));
                prop_assert_eq!(times(&others, byte), usize::from(!is_in && byte < size));
            }
            prop_assert!(others.iter().all(|gap| !gap.is_empty()));
        }
    }
}
