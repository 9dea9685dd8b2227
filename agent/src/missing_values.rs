//! Values that could not be read. Each is recorded as absent with its reason, never as 0.

use gleaner_schemas::rows::MissingValueRow;
use gleaner_schemas::units::stored;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;

/// Reason why a value is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The source vanished before it was read: a process ended, or the file is of another machine.
    Vanished,
    /// The agent lacks the permission to read the source.
    Denied,
    /// The kernel or the machine does not provide the value.
    Unsupported,
    /// The text does not have the documented form.
    Malformed,
    /// The value contradicts another of the kernel's figures.
    Contradicted,
    /// The value is beyond a limit: of the kernel's queue for the agent, or of the size of one sample.
    Exceeded,
}

impl Reason {
    /// Name of the reason, as the database stores it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vanished => "vanished",
            Self::Denied => "denied",
            Self::Unsupported => "unsupported",
            Self::Malformed => "malformed",
            Self::Contradicted => "contradicted",
            Self::Exceeded => "exceeded",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Absence of a value, with its reason. The detail never names one of the owner's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentValue {
    /// Reason of the absence.
    pub reason: Reason,
    /// Details, such as the system's error text.
    pub detail: String,
}

impl AbsentValue {
    /// Makes a missing value for `reason`.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }

    /// Makes a missing value from an error about something short-lived, such as a process or a device.
    #[must_use]
    pub fn from_errno(what: &str, errno: Errno) -> Self {
        let reason = match errno {
            Errno::NOENT | Errno::SRCH | Errno::NODEV | Errno::NXIO => Reason::Vanished,
            Errno::ACCESS | Errno::PERM => Reason::Denied,
            _ => Reason::Unsupported,
        };
        Self::new(reason, format!("{what}: {}", std::io::Error::from(errno)))
    }

    /// Makes a missing value from an error about a file that a kernel either always or never has.
    #[must_use]
    pub fn from_kernel_file(name: &str, errno: Errno) -> Self {
        let mut absent = Self::from_errno(name, errno);
        if absent.reason == Reason::Vanished {
            absent.reason = Reason::Unsupported;
        }
        absent
    }
}

/// All values that one sample could not read.
#[derive(Clone, Debug, Default)]
pub struct MissingValues {
    by_item: BTreeMap<(&'static str, Reason), (String, u64)>,
}

impl MissingValues {
    /// Notes that `item` (a column of `samples`, or a table) is absent.
    pub fn note(&mut self, item: &'static str, absent: AbsentValue) {
        let entry = self
            .by_item
            .entry((item, absent.reason))
            .or_insert((absent.detail, 0));
        entry.1 += 1;
    }

    /// Adds the values that `other` has noted.
    pub(crate) fn extend(&mut self, other: Self) {
        for (noted, (detail, count)) in other.by_item {
            let entry = self.by_item.entry(noted).or_insert((detail, 0));
            entry.1 += count;
        }
    }

    /// Returns the value, or notes that `item` is absent.
    pub fn keep<T>(&mut self, item: &'static str, read: Result<T, AbsentValue>) -> Option<T> {
        read.map_err(|absent| self.note(item, absent)).ok()
    }

    /// Returns the value, or notes that each of `items` is absent.
    pub fn keep_for<T>(
        &mut self,
        items: &[&'static str],
        read: Result<T, AbsentValue>,
    ) -> Option<T> {
        let note = |absent: AbsentValue| {
            for item in items {
                self.note(item, absent.clone());
            }
        };
        read.map_err(note).ok()
    }

    /// Returns true if `item` is noted as missing.
    #[must_use]
    pub fn has(&self, item: &str) -> bool {
        self.by_item.keys().any(|(noted, _)| *noted == item)
    }

    /// Rows of the `missing_values` table.
    #[must_use]
    pub fn rows(&self) -> Vec<MissingValueRow> {
        self.by_item
            .iter()
            .map(|((item, reason), (detail, count))| MissingValueRow {
                item: (*item).to_owned(),
                reason: reason.as_str().to_owned(),
                detail: detail.clone(),
                missing_count: stored(*count),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_missing_value_is_counted_and_its_first_detail_kept() {
        let mut missing_values = MissingValues::default();
        missing_values.note("files", AbsentValue::from_errno("maps", Errno::PERM));
        missing_values.note("files", AbsentValue::from_errno("fd", Errno::ACCESS));
        missing_values.note("processes", AbsentValue::from_errno("stat", Errno::SRCH));
        let kept = missing_values.keep(
            "load5",
            Err::<f64, _>(AbsentValue::from_kernel_file("loadavg", Errno::NOENT)),
        );
        assert_eq!(kept, None);
        let told: Vec<_> = missing_values
            .rows()
            .into_iter()
            .map(|r| (r.item, r.reason, r.detail, r.missing_count))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "files".into(),
                    "denied".into(),
                    "maps: Operation not permitted (os error 1)".into(),
                    2
                ),
                (
                    "load5".into(),
                    "unsupported".into(),
                    "loadavg: No such file or directory (os error 2)".into(),
                    1
                ),
                (
                    "processes".into(),
                    "vanished".into(),
                    "stat: No such process (os error 3)".into(),
                    1
                ),
            ]
        );
        assert!(missing_values.has("files") && !missing_values.has("activity"));
    }
}
