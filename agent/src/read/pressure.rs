//! `/proc/pressure/{memory,cpu,io}` (Linux 4.20, `Documentation/accounting/psi.rst`).

use super::{lines, number, words};

/// Total stall times, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// Time in which some task waited, in microseconds.
    pub some_total_us: u64,
    /// Time in which all tasks waited, in microseconds; the `cpu` file has it since Linux 5.13.
    pub full_total_us: Option<u64>,
}

impl Pressure {
    /// Parses the lines `some` and `full`; only the second may be absent.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        Some(Self {
            some_total_us: total_us(text, b"some")?,
            full_total_us: total_us(text, b"full"),
        })
    }
}

fn total_us(text: &[u8], kind: &[u8]) -> Option<u64> {
    let line = lines(text).find(|line| words(line).next() == Some(kind))?;
    words(line).find_map(|word| number(word.strip_prefix(b"total=")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn totals_of_both_lines() {
        let text = b"some avg10=4.50 avg60=0.91 avg300=0.00 total=681245\nfull avg10=0 avg60=0 avg300=0 total=7\n";
        let both = Pressure {
            some_total_us: 681_245,
            full_total_us: Some(7),
        };
        assert_eq!(Pressure::parse(text), Some(both));
        let some = Pressure {
            some_total_us: 5,
            full_total_us: None,
        };
        assert_eq!(Pressure::parse(b"some total=5\nfull\n"), Some(some));
        assert_eq!(Pressure::parse(b"some"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..100), words in "(some|full)?[ a-z0-9=\n]{0,60}") {
            let _ = Pressure::parse(&text);
            let _ = Pressure::parse(&[b"some total=".as_slice(), &text].concat());
            let _ = Pressure::parse(words.as_bytes());
        }
    }
}
