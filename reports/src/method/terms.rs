//! The words of the report, and where each comes from.

/// Terms that belong together.
pub(crate) struct Group {
    pub title: &'static str,
    pub terms: &'static [Term],
}

/// A term of the field.
pub(crate) struct Term {
    pub word: &'static str,
    pub meaning: &'static str,
    /// Number of [`SOURCES`]; none: the project's own.
    pub source: Option<usize>,
}

const fn term(word: &'static str, source: Option<usize>, meaning: &'static str) -> Term {
    Term {
        word,
        meaning,
        source,
    }
}

const PAPER: Option<usize> = Some(1);
const KAPLAN_MEIER: Option<usize> = Some(2);
const GREENWOOD: Option<usize> = Some(3);
const AALEN_JOHANSEN: Option<usize> = Some(4);
const BREVIK: Option<usize> = Some(5);
const BRIER: Option<usize> = Some(6);
const PROC: Option<usize> = Some(7);
const PSI: Option<usize> = Some(8);
const MURPHY: Option<usize> = Some(9);
const COX: Option<usize> = Some(10);
const OWN: Option<usize> = None;

/// Sources that are cited, numbered from 1.
pub(crate) const SOURCES: [&str; 10] = [
    "A. Acharya and S. Setia, Availability and Utility of Idle Memory in Workstation Clusters, SIGMETRICS 1999",
    "E. L. Kaplan and P. Meier, Nonparametric Estimation from Incomplete Observations, JASA 53, 1958",
    "M. Greenwood, The Natural Duration of Cancer, 1926",
    "O. O. Aalen and S. Johansen, An Empirical Transition Matrix for Non-homogeneous Markov Chains Based on Censored Observations, Scandinavian Journal of Statistics 5, 1978",
    "J. Brevik, D. Nurmi and R. Wolski, Automatic Methods for Predicting Machine Availability in Desktop Grid and Peer-to-peer Systems, CCGrid 2004",
    "G. W. Brier, Verification of Forecasts Expressed in Terms of Probability, Monthly Weather Review 78, 1950",
    "The Linux kernel’s documents: filesystems/proc (meminfo, MemAvailable)",
    "The Linux kernel’s documents: accounting/psi (pressure stall information)",
    "A. H. Murphy, A New Vector Partition of the Probability Score, Journal of Applied Meteorology 12, 1973",
    "D. R. Cox, Two Further Applications of a Model for Binary Regression, Biometrika 45, 1958",
];

/// All groups of terms.
pub(crate) const GROUPS: [Group; 5] = [
    Group {
        title: "Memory",
        terms: &[
            term(
                "physical",
                PAPER,
                "All memory of the host, as its kernel states it. Every sample’s categories add up to it exactly.",
            ),
            term(
                "static kernel",
                PAPER,
                "What the kernel took at boot, before it began to count: its own image and the table of pages.",
            ),
            term(
                "dynamic kernel",
                PAPER,
                "What the kernel has taken since and cannot give back: its object caches, page tables, stacks.",
            ),
            term(
                "balloon",
                OWN,
                "On a virtual machine, memory that the hypervisor has taken back for the time being.",
            ),
            term(
                "reserve",
                PAPER,
                "What the kernel keeps free so that it never runs dry (the paper’s lotsfree).",
            ),
            term(
                "process",
                PAPER,
                "Memory of active processes: those that used the CPU since the last sample, and the display and periodic services, which always count.",
            ),
            term(
                "file cache",
                PAPER,
                "Parts of files kept in memory, as far as the files are open in active processes.",
            ),
            term(
                "file cache, with files used again soon",
                PAPER,
                "The same with files that are used again within the busy period, or in the next: needs to know what comes, so it is worked out afterwards.",
            ),
            term(
                "guest",
                PAPER,
                "Memory lent to other hosts. It can be taken back at any time.",
            ),
            term(
                "remainder",
                OWN,
                "What is over where the kernel’s own figures contradict each other, so that the sum still holds; nearly always 0.",
            ),
            term(
                "available",
                PAPER,
                "The rest: free memory, memory of processes that sleep, cached files that nobody has open, and what the kernel would give back.",
            ),
            term(
                "harvestable",
                PROC,
                "What could be taken now without pushing any of the owner’s pages out: what the kernel calls MemAvailable, less the headroom.",
            ),
            term(
                "headroom",
                PAPER,
                "A share of physical memory that is never lent, so that the owner finds room on returning.",
            ),
            term(
                "lendable",
                PAPER,
                "What the paper recruits: available and lent memory less the headroom.",
            ),
            term(
                "lease quota",
                PAPER,
                "What the host could lend at its last sample; nothing unless it is idle, since the owner comes first.",
            ),
            term(
                "dip",
                PAPER,
                "A sample at which available memory was below a threshold: a moment at which a lender would have had to give memory back.",
            ),
        ],
    },
    Group {
        title: "Time",
        terms: &[
            term(
                "sample",
                PAPER,
                "One look at a host. It stands for the time to the next.",
            ),
            term(
                "gap",
                OWN,
                "A time without samples, because the host slept, was off, or did not get to it. Nothing is guessed about it.",
            ),
            term(
                "coverage",
                OWN,
                "The part of the time asked for that samples stand for.",
            ),
            term(
                "idle",
                PAPER,
                "The owner has touched neither keyboard, mouse nor terminal, and the load has been low, both for as long as the limits below say; dated back to the last activity.",
            ),
            term(
                "return, reclaim",
                PAPER,
                "The owner comes back, or the load rises, after an idle time: what was lent would be taken back.",
            ),
            term(
                "region",
                PAPER,
                "A piece of memory of some size that a program might borrow.",
            ),
            term(
                "availability period",
                PAPER,
                "An unbroken time in which at least a region’s size was available; “idle only” also ends it when the owner returns.",
            ),
            term(
                "cut short",
                KAPLAN_MEIER,
                "A period that a gap or an end of the trace interrupted (statisticians say censored): it lasted at least as long as was seen.",
            ),
        ],
    },
    Group {
        title: "How long it lasts",
        terms: &[
            term(
                "survival curve",
                KAPLAN_MEIER,
                "The share of periods that last longer than each age, with what was cut counted as long as it was seen (Kaplan-Meier).",
            ),
            term(
                "limits of a curve",
                GREENWOOD,
                "Greenwood’s 95 % limits, on the scale of log(−log). They take periods as independent, and are too narrow where hosts differ.",
            ),
            term(
                "restricted mean",
                KAPLAN_MEIER,
                "The mean length as far as the longest that was seen: the area under the curve.",
            ),
            term(
                "what ends a period",
                AALEN_JOHANSEN,
                "The share that each cause has ended by an age, where causes compete (Aalen-Johansen).",
            ),
            term(
                "odds",
                OWN,
                "Of all moments at which a region was available and that can be followed so long: the share from which it stayed.",
            ),
            term(
                "lasts at least",
                BREVIK,
                "A length that 95, 75 or 50 % of periods reach, with 95 % confidence: a binomial bound of a quantile.",
            ),
            term(
                "forecast",
                OWN,
                "How likely a region that is available stays so, from what became of regions in the same state before, and what the host does at that time of the week.",
            ),
            term(
                "Brier score",
                BRIER,
                "The mean square of the forecast probability less what happened (0 or 1): lower is better, 0 is perfect.",
            ),
            term(
                "calibration",
                BRIER,
                "Whether what was forecast with some probability happened as often.",
            ),
            term(
                "reliability",
                MURPHY,
                "The part of the Brier score that comes of forecasts which do not come true as often as they say: the mean square of forecast less share that stayed, over bins of probability. 0 is perfect.",
            ),
            term(
                "calibration slope",
                COX,
                "The slope of a logistic regression of what happened on the log-odds of the forecast. 1 is right; above 1 forecasts are too close together (too cautious), below 1 too far apart (too sure).",
            ),
        ],
    },
    Group {
        title: "What lending costs",
        terms: &[
            term(
                "memory context",
                PAPER,
                "What would have to be paged in again at a return, had all that may be lent been lent: the footprint of the processes active soon after, what was lent and the kernel, less the host’s memory and reserve; never below 0.",
            ),
            term(
                "in the paper’s way, gently",
                OWN,
                "Lending everything that is not in use above reserve and headroom, or of that only what is harvestable.",
            ),
            term(
                "frontier",
                OWN,
                "The settings that no other beats: none lends more at so little cost.",
            ),
            term(
                "stall",
                PSI,
                "Time in which a task waited for memory, as the kernel counts it.",
            ),
            term(
                "refault",
                PROC,
                "A page read again soon after it was pushed out.",
            ),
        ],
    },
    Group {
        title: "Numbers",
        terms: &[
            term(
                "mean",
                OWN,
                "Over samples, or periods: a host with more of them counts for more. Sums over hosts are of their own means.",
            ),
            term(
                "deviation",
                OWN,
                "Standard deviation: how far single samples typically lie from the mean.",
            ),
            term("median", OWN, "Half of them are smaller."),
            term(
                "percentile",
                OWN,
                "The 5th is a value that a twentieth do not exceed.",
            ),
            term(
                "points",
                OWN,
                "A difference of two percentages: from 70 % to 73 % are 3 points.",
            ),
        ],
    },
];

/// Points in which this report departs from the paper.
pub(crate) const DEPARTURES: [&str; 6] = [
    "Memory context: equation 1 prints “A + G + K − M − lotsfree” for its second case. Its first shows that a parenthesis was lost: we take A + G + K − (M − lotsfree).",
    "Cut periods: the paper does not say what became of them. Means “as seen” count them as long as they were seen; everything else takes them as lasting longer.",
    "Gaps end leases: a host that sleeps or is switched off takes back what it lent, and that is counted as an end with a cause, not as missing data.",
    "Idle only, for availability periods, is not defined in the paper. Here it is: inside one idle time, up to the owner’s return.",
    "Files in use are those that are open now: to know which will be used again takes knowledge of what comes, which a daemon that lends has not. Both are shown.",
    "Static kernel, reserve and process memory are what Linux has for them; harvestable has no counterpart, since the paper’s Solaris could push out idle pages.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_cited_and_every_citation_has_one() {
        let terms = || GROUPS.iter().flat_map(|group| group.terms);
        let cited: std::collections::BTreeSet<usize> = terms().filter_map(|t| t.source).collect();
        assert_eq!(cited, (1..=SOURCES.len()).collect());
        let mut words: Vec<&str> = terms().map(|t| t.word).collect();
        words.sort_unstable();
        assert!(words.windows(2).all(|w| w[0] != w[1]), "defined twice");
    }
}
