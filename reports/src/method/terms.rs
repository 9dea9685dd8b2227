//! The terms of the report, each with its meaning and source.

/// A group of related terms.
pub(crate) struct Group {
    pub title: &'static str,
    pub terms: &'static [Term],
}

/// A term with its meaning.
pub(crate) struct Term {
    pub word: &'static str,
    pub meaning: &'static str,
    /// Number of the term's entry in [`SOURCES`], from 1; absent for the project's own terms.
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
                "Memory that the kernel took at boot, before it counts memory: its own image and the table of pages.",
            ),
            term(
                "dynamic kernel",
                PAPER,
                "Memory that the kernel has taken since boot and cannot free: its object caches, page tables, stacks.",
            ),
            term(
                "balloon",
                OWN,
                "On a virtual machine, memory that the hypervisor has currently reclaimed.",
            ),
            term(
                "reserve",
                PAPER,
                "Memory that the kernel keeps free so that it does not run out (the paper’s lotsfree).",
            ),
            term(
                "process",
                PAPER,
                "Memory of active processes: those that used the CPU since the last sample, and the display and periodic services, which always count.",
            ),
            term(
                "file cache",
                PAPER,
                "Cached parts of files that active processes have open.",
            ),
            term(
                "file cache, with files used again soon",
                PAPER,
                "File cache, plus cached files that are used again within the same busy period or the next. It depends on later use, so it is calculated afterwards.",
            ),
            term(
                "guest",
                PAPER,
                "Memory lent to other hosts. The host can reclaim it at any time.",
            ),
            term(
                "category correction",
                OWN,
                "Difference that makes the categories add up where the kernel’s own figures contradict each other; nearly always 0.",
            ),
            term(
                "available",
                PAPER,
                "All other memory: free memory, memory of sleeping processes, cached files that no active process has open, and reclaimable kernel memory.",
            ),
            term(
                "harvestable",
                PROC,
                "Memory that Linux could provide now without paging out the owner’s pages: MemAvailable, less the headroom.",
            ),
            term(
                "headroom",
                PAPER,
                "A share of physical memory that is never lent, so that the owner has room on returning.",
            ),
            term(
                "paper’s quota",
                PAPER,
                "Memory that the paper recruits: available and lent memory, less the headroom.",
            ),
            term(
                "lease quota",
                PAPER,
                "Bytes that the host could lend at its last sample; 0 unless the host is idle.",
            ),
            term(
                "dip",
                PAPER,
                "A sample interval with less memory available than a threshold: a host that lends would have had to reclaim memory.",
            ),
        ],
    },
    Group {
        title: "Time",
        terms: &[
            term(
                "sample",
                PAPER,
                "One measurement of a host. It stands for the time until the next sample.",
            ),
            term(
                "gap",
                OWN,
                "A time without samples, because the host slept, was off, or did not measure. No values are guessed for it.",
            ),
            term(
                "coverage",
                OWN,
                "The share of the requested time that samples stand for.",
            ),
            term(
                "idle",
                PAPER,
                "The owner has used neither keyboard, mouse nor terminal, and the load has been low, both for the time given in the limits below. The idle period starts at the last activity.",
            ),
            term(
                "return, reclaim",
                PAPER,
                "The owner uses the host again, or the load rises, after an idle period: the host would reclaim lent memory.",
            ),
            term(
                "region",
                PAPER,
                "A range of memory of a given size that a program might borrow.",
            ),
            term(
                "availability period",
                PAPER,
                "An unbroken time during which at least the size of a region was available. With “idle time only”, the owner’s return also ends it.",
            ),
            term(
                "cut short",
                KAPLAN_MEIER,
                "A period interrupted by a gap or an end of the trace (in statistics: censored). It lasted at least as long as was observed.",
            ),
        ],
    },
    Group {
        title: "How long it lasts",
        terms: &[
            term(
                "survival curve",
                KAPLAN_MEIER,
                "The share of periods that last longer than each age. Cut periods count for as long as they were observed (Kaplan-Meier).",
            ),
            term(
                "limits of a curve",
                GREENWOOD,
                "Greenwood’s 95 % limits, on the scale of log(−log). They assume independent periods and are too narrow if hosts differ.",
            ),
            term(
                "restricted mean",
                KAPLAN_MEIER,
                "The mean length up to the longest period observed: the area under the curve.",
            ),
            term(
                "end of a period, by cause",
                AALEN_JOHANSEN,
                "The share of periods that each cause has ended by an age, with competing causes (Aalen-Johansen).",
            ),
            term(
                "odds",
                OWN,
                "The share of moments from which a region stayed available for a given time, among all moments at which it was available and whose outcome is known.",
            ),
            term(
                "lasts at least",
                BREVIK,
                "A length that 95, 75 or 50 % of periods reach, with 95 % confidence: a binomial bound of a quantile.",
            ),
            term(
                "forecast",
                OWN,
                "The probability that an available region stays available. It is calculated from the outcomes of earlier regions in the same state, and from the host’s behaviour at that time of the week.",
            ),
            term(
                "Brier score",
                BRIER,
                "The mean square of the difference between forecast probability and outcome (0 or 1): lower is better, 0 is perfect.",
            ),
            term(
                "calibration",
                BRIER,
                "Agreement between a forecast probability and the frequency of the outcome.",
            ),
            term(
                "reliability",
                MURPHY,
                "The part of the Brier score that is due to wrong probabilities: the mean square of the difference between the forecast and the share that stayed available, over bins of probability. 0 is perfect.",
            ),
            term(
                "calibration slope",
                COX,
                "The slope of a logistic regression of the outcome on the log-odds of the forecast. 1 is right; above 1, forecasts are too close together (too cautious); below 1, too far apart (too sure).",
            ),
        ],
    },
    Group {
        title: "What lending costs",
        terms: &[
            term(
                "memory context",
                PAPER,
                "Memory that the owner would have to page in again after returning, if the host had lent all it may: the footprint of the processes active soon after the return, the lent memory and the kernel, less the host’s memory without the reserve; never below 0.",
            ),
            term(
                "paper’s policy, gentle policy",
                OWN,
                "Paper: the host lends all unused memory above reserve and headroom. Gentle: the host lends only the harvestable part of it.",
            ),
            term(
                "frontier",
                OWN,
                "The best settings: no other setting lends more at the same or a lower cost.",
            ),
            term(
                "stall",
                PSI,
                "Time during which a task waited for memory, as counted by the kernel.",
            ),
            term(
                "refault",
                PROC,
                "A page that is read again soon after it was evicted.",
            ),
        ],
    },
    Group {
        title: "Numbers",
        terms: &[
            term(
                "mean",
                OWN,
                "Mean over samples or periods: a host with more of them has more weight. Sums over hosts add the hosts’ own means.",
            ),
            term(
                "deviation",
                OWN,
                "Standard deviation: how far single samples typically lie from the mean.",
            ),
            term("median", OWN, "Half of the values are smaller."),
            term(
                "percentile",
                OWN,
                "The 5th percentile is the value below which 5 % of the values lie.",
            ),
            term(
                "points",
                OWN,
                "A difference of two percentages: from 70 % to 73 % is 3 points.",
            ),
        ],
    },
];

/// Points in which this report departs from the paper.
pub(crate) const DEPARTURES: [&str; 6] = [
    "Memory context: equation 1 of the paper prints “A + G + K − M − lotsfree” for its second case. The first case shows that a parenthesis is missing; this report uses A + G + K − (M − lotsfree).",
    "Cut periods: the paper does not say how it counts them. Plain means count them for as long as they were observed; all other measures treat them as longer.",
    "Gaps end leases: a host that sleeps or is switched off reclaims its lent memory. This counts as an end with a cause, not as missing data.",
    "The paper does not define availability periods in idle time only. Here, such a period lies within one idle period and ends at the owner’s return at the latest.",
    "Files in use are files that are open now. A daemon that lends memory cannot know which files will be used again. The report shows both counts.",
    "Static kernel, reserve and process memory are the closest quantities of Linux. Harvestable memory has no counterpart in the paper, because its Solaris could page out idle pages.",
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
