//! `/proc/spl/kstat/zfs/arcstats`: ZFS' own cache of files (OpenZFS, `module/zfs/arc.c`).

use super::{lines, number, words};

/// The ARC, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arc {
    /// Size of the cache (`size`).
    pub size_bytes: u64,
    /// Minimum size to which the cache shrinks under memory pressure (`c_min`).
    pub min_bytes: u64,
}

impl Arc {
    /// Parses lines of name, type and value.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let value = |wanted: &[u8]| {
            lines(text).find_map(|line| {
                let mut words = words(line);
                (words.next()? == wanted).then(|| number(words.nth(1)?))?
            })
        };
        Some(Self {
            size_bytes: value(b"size")?,
            min_bytes: value(b"c_min")?,
        })
    }

    /// Bytes that ZFS gives back when memory is needed elsewhere.
    #[must_use]
    pub const fn reclaimable_bytes(&self) -> u64 {
        self.size_bytes.saturating_sub(self.min_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn size_and_least_size_by_whole_name() {
        let text = b"13 1 0x01 147 39984 8128452 47812890\nname                            type data\n\
            hits                            4    693075\nc                               4    702970368\n\
            c_min                           4    128404992\nc_max                           4    2054479872\n\
            size                            4    666704120\ncompressed_size                 4    549966336\n";
        let arc = Arc {
            size_bytes: 666_704_120,
            min_bytes: 128_404_992,
        };
        assert_eq!(Arc::parse(text), Some(arc));
        assert_eq!(arc.reclaimable_bytes(), 538_299_128);
        assert_eq!(Arc::parse(b"size 4 7\n"), None);
        assert_eq!(Arc::parse(b"size 4 7\nc_min 4 x\n"), None);
        let small = Arc {
            size_bytes: 5,
            min_bytes: 9,
        };
        assert_eq!(small.reclaimable_bytes(), 0);
    }

    proptest! {
        #[test]
        fn never_panics(text in "((size|c_min) [ 0-9x-]{0,9}\n|[ a-z0-9\n]{0,20}){0,4}") {
            let _ = Arc::parse(text.as_bytes());
        }
    }
}
