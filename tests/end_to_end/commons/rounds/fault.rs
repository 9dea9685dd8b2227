//! Faults of a round.

use super::HOSTS;
use crate::commons::hostile::Conduct;
use crate::commons::readers::RoundFault;
use crate::commons::stage::LARGE_BLOCKS;
use gleaner_harness::Random;

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

impl RoundFault for Fault {
    fn all(random: &mut Random) -> Vec<Self> {
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

    fn kills(self, host: usize) -> bool {
        self == Self::Kill(host)
    }

    fn stops(self, host: usize) -> bool {
        self == Self::Stop(host)
    }

    fn loses(self, block: usize) -> bool {
        match self {
            Self::SourceSilent | Self::SourceGone => true,
            Self::SourceChanged(changed) => changed == block,
            _ => false,
        }
    }
}
