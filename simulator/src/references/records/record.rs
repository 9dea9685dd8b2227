//! One record of the recorder: 16 bytes, two little-endian words.
//!
//! | word | bits | contents |
//! | --- | --- | --- |
//! | 0 | 28-63 | page that enters, or a number |
//! | 0 | 0-27 | sequence, low bits |
//! | 1 | 28-63 | page that leaves, or a number |
//! | 1 | 20-27 | sequence, high bits |
//! | 1 | 17-19 | kind |
//! | 1 | 16 | the page that leaves was written |
//! | 1 | 0-15 | references to the page that leaves |

/// Bytes of a record.
pub(super) const RECORD_BYTES: usize = 16;

/// Kind of a record, with what only this kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A page enters the list, another one leaves it.
    Exchange,
    /// A page enters the list, which had room.
    Enter,
    /// A page leaves the list, because it is freed or the thread ends.
    Leave,
    /// First reference in a window to a page of the list.
    Touch,
    /// Windows of instructions that have passed.
    Windows,
    /// References, in units of 65,536, to the page that leaves in the thread's next record.
    More,
    /// Pages from `enters` on are freed; `leaves` is their number.
    Free,
}

/// Record of one page that enters a thread's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Order among the records of all threads.
    pub(super) sequence: u64,
    pub(super) kind: Kind,
    /// Page that enters or is touched, or the first one that is freed; for [`Kind::Windows`] and [`Kind::More`], their number.
    pub(super) enters: u64,
    /// Page that leaves; for [`Kind::Free`], a number.
    pub(super) leaves: u64,
    pub(super) is_written: bool,
    /// References to the page that leaves while it was in the list, modulo 65,536.
    pub(super) references: u64,
}

impl Record {
    /// Decodes a record; `None` if its kind is unknown.
    #[inline]
    pub(super) fn of(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let both = u128::from_le_bytes(*bytes);
        let (first, second) = (both as u64, (both >> 64) as u64);
        let kind = match second >> 17 & 7 {
            0 => Kind::Exchange,
            1 => Kind::Enter,
            2 => Kind::Leave,
            3 => Kind::Touch,
            4 => Kind::Windows,
            5 => Kind::More,
            6 => Kind::Free,
            _ => return None,
        };
        Some(Self {
            sequence: first & 0xfff_ffff | (second >> 20 & 0xff) << 28,
            kind,
            enters: first >> 28,
            leaves: second >> 28,
            is_written: second >> 16 & 1 == 1,
            references: second & 0xffff,
        })
    }

    /// Encodes the record as the recorder does.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> [u8; RECORD_BYTES] {
        let first = self.enters << 28 | self.sequence & 0xfff_ffff;
        let second = self.leaves << 28
            | (self.sequence >> 28 & 0xff) << 20
            | (self.kind as u64) << 17
            | u64::from(self.is_written) << 16
            | self.references;
        (u128::from(second) << 64 | u128::from(first)).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_record_of_a_program() {
        // Written by the recorder for /bin/echo: its first page enters.
        let words = [0x0040_0280_c000_0000_u64, 0x0000_0000_0002_0000];
        let bytes = (u128::from(words[1]) << 64 | u128::from(words[0])).to_le_bytes();
        let record = Record::of(&bytes).unwrap();
        assert_eq!(
            (record.kind, record.enters, record.sequence),
            (Kind::Enter, 0x400_280c, 0)
        );
    }

    proptest! {
        #[test]
        fn every_record_is_read_as_it_was(
            sequence in 0u64..1 << 36, kind in 0u8..7, enters in 0u64..1 << 36, leaves in 0u64..1 << 36,
            is_written: bool, references in 0u64..1 << 16,
        ) {
            let kinds = [Kind::Exchange, Kind::Enter, Kind::Leave, Kind::Touch, Kind::Windows, Kind::More, Kind::Free];
            let record = Record { sequence, kind: kinds[usize::from(kind)], enters, leaves, is_written, references };
            prop_assert_eq!(Record::of(&record.bytes()), Some(record));
        }

        #[test]
        fn any_bytes_are_a_record_or_none(bytes: [u8; 16]) {
            let _ = Record::of(&bytes);
        }
    }
}
