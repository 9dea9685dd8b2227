//! Reasons for which a part of an analysis cannot be used.

use std::ops::Range;

/// Reason for which a part of an analysis cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The bytes are not a part.
    #[error(
        "this is no part of an analysis: give files that `gleaner analyze --part` or `gleaner merge -o` wrote"
    )]
    NotAPart,
    /// Another version of Gleaner wrote the part.
    #[error(
        "the part has version {found}, and this program reads version {known}: analyse it again"
    )]
    Version {
        /// Version of the part.
        found: u32,
        /// Version that this program reads.
        known: u32,
    },
    /// The part's contents are damaged.
    #[error("the part is damaged ({reason}): copy it again, or analyse it again")]
    Damaged {
        /// Error of the decoder.
        reason: String,
    },
    /// The file could not be read or written.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// The part belongs to another analysis.
    #[error(
        "the part belongs to another analysis than the parts before it: {difference}. Parts must have been made \
         with the same options and of the same dataset"
    )]
    OtherAnalysis {
        /// First difference, in words.
        difference: &'static str,
    },
    /// Two parts share hosts, but not the same range of hosts.
    #[error(
        "hosts {} to {} and hosts {} to {} overlap: give each host in one part only",
        .first.start, .first.end, .second.start, .second.end
    )]
    Overlap {
        /// Positions of the first part's hosts.
        first: Range<usize>,
        /// Positions of the second part's hosts.
        second: Range<usize>,
    },
    /// Hosts are missing.
    #[error(
        "hosts {} to {} of {hosts_count} are in no part: analyse them with `gleaner analyze --hosts {}..{}` and \
         merge again",
        .missing.start, .missing.end, .missing.start, .missing.end
    )]
    Incomplete {
        /// Positions of the first missing hosts.
        missing: Range<usize>,
        /// Number of hosts in the analysis.
        hosts_count: usize,
    },
}
