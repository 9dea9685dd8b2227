//! Faults of a round.

use super::{HOSTS, LARGE_BLOCKS};
use crate::commons::hostile::Conduct;
use gleaner_harness::Random;

/// Error number of a read that failed.
const EIO: Option<i32> = Some(5);

/// A fault of hosts, network or source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Kill(usize),
    Stop(usize),
    /// No byte passes between two hosts, and neither notices it.
    Part(usize, usize),
    /// A host's connections with other members are closed, and new ones rejected.
    CutOff(usize),
    /// Everything that a host sends to the others is altered on its way.
    Garble(usize),
    SourceSilent,
    SourceGone,
    /// A block of the file at the source is changed.
    SourceChanged(usize),
    /// The hostile member answers in this way.
    Hostile(Conduct),
}

impl Fault {
    /// Faults of all kinds, one of each.
    pub(super) fn all(random: &mut Random) -> Vec<Self> {
        let mut host = || random.below(HOSTS as u64) as usize;
        let one = host();
        let other = (one + 1 + host() % (HOSTS - 1)) % HOSTS;
        let mut all = vec![
            Self::Kill(host()),
            Self::Stop(host()),
            Self::Part(one, other),
            Self::CutOff(host()),
            Self::Garble(host()),
            Self::SourceSilent,
            Self::SourceGone,
            Self::SourceChanged(random.below(LARGE_BLOCKS) as usize),
        ];
        all.extend(Conduct::FAULTS.map(Self::Hostile));
        all
    }

    /// Returns true if reads on this host do not end while the fault lasts.
    pub(super) fn holds_up(self, host: usize) -> bool {
        self == Self::Kill(host) || self == Self::Stop(host)
    }

    /// Returns true if the fault is a reason for an error of a read.
    pub(super) fn explains(self, host: usize, block: usize, error: Option<i32>) -> bool {
        match self {
            Self::Kill(killed) => killed == host && error.is_some(),
            Self::Stop(stopped) => stopped == host && error == EIO,
            Self::SourceSilent | Self::SourceGone => error == EIO,
            Self::SourceChanged(changed) => changed == block && error == EIO,
            Self::Part(..) | Self::CutOff(_) | Self::Garble(_) | Self::Hostile(_) => false,
        }
    }
}
