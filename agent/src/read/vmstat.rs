//! Parser of `/proc/vmstat`.

use super::{lines, number};

/// Counters since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vmstat {
    /// File pages read again soon after they were evicted.
    pub refault_file: Option<u64>,
    /// Anonymous pages swapped in soon after they were swapped out.
    pub refault_anon: Option<u64>,
    /// Pages swapped in.
    pub swap_in: Option<u64>,
    /// Pages swapped out.
    pub swap_out: Option<u64>,
    /// Major page faults.
    pub major_fault: Option<u64>,
    /// Pages that kswapd reclaimed.
    pub reclaimed_kswapd: Option<u64>,
    /// Pages that processes reclaimed themselves.
    pub reclaimed_direct: Option<u64>,
    /// Processes killed because memory ran out.
    pub oom_kill: Option<u64>,
}

impl Vmstat {
    /// Columns of `samples` that come from this file.
    pub const COLUMNS: [&str; 8] = [
        "refault_file_total_pages",
        "refault_anon_total_pages",
        "swap_in_total_pages",
        "swap_out_total_pages",
        "major_fault_total_count",
        "reclaimed_kswapd_total_pages",
        "reclaimed_direct_total_pages",
        "oom_kill_total_count",
    ];

    /// Parses the known counters; `None` if there is none.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut vmstat = Self::default();
        for line in lines(text) {
            let mut parts = line.splitn(2, |&b| b == b' ');
            let counter = match parts.next() {
                Some(b"workingset_refault_file") => &mut vmstat.refault_file,
                Some(b"workingset_refault_anon") => &mut vmstat.refault_anon,
                Some(b"pswpin") => &mut vmstat.swap_in,
                Some(b"pswpout") => &mut vmstat.swap_out,
                Some(b"pgmajfault") => &mut vmstat.major_fault,
                Some(b"pgsteal_kswapd") => &mut vmstat.reclaimed_kswapd,
                Some(b"pgsteal_direct") => &mut vmstat.reclaimed_direct,
                Some(b"oom_kill") => &mut vmstat.oom_kill,
                _ => continue,
            };
            *counter = parts.next().and_then(number);
        }
        (vmstat != Self::default()).then_some(vmstat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counters_by_whole_name() {
        let text = b"nr_free_pages 9\nworkingset_refault_file 4\npswpin 0\npswpout x\npgmajfault 12\npgmajfault2 1\n";
        let vmstat = Vmstat {
            refault_file: Some(4),
            swap_in: Some(0),
            major_fault: Some(12),
            ..Vmstat::default()
        };
        assert_eq!(Vmstat::parse(text), Some(vmstat));
        assert_eq!(Vmstat::parse(b"nr_free_pages 9\n"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..100), counter in "[ 0-9+-]{0,25}") {
            let _ = Vmstat::parse(&text);
            let _ = Vmstat::parse(&[b"pswpin ".as_slice(), &text].concat());
            let _ = Vmstat::parse(format!("pswpin {counter}").as_bytes());
        }
    }
}
