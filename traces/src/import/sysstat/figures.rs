//! The figures of an entry, and the machine's memory size computed from them.

/// A figure of the document that the importer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Figure {
    /// Name of the object that contains the figure.
    pub(super) group: &'static str,
    pub(super) name: &'static str,
}

const fn memory(name: &'static str) -> Figure {
    Figure {
        group: "memory",
        name,
    }
}

const fn huge(name: &'static str) -> Figure {
    Figure {
        group: "hugepages",
        name,
    }
}

const fn queue(name: &'static str) -> Figure {
    Figure {
        group: "queue",
        name,
    }
}

/// All figures that the importer reads; those of memory are in KiB.
pub(super) const FIGURES: [Figure; 23] = [
    memory("memfree"),
    memory("avail"),
    memory("memused"),
    memory("memused-percent"),
    memory("buffers"),
    memory("cached"),
    memory("dirty"),
    memory("shared"),
    memory("anonpg"),
    memory("slab"),
    memory("kstack"),
    memory("pgtbl"),
    memory("vmused"),
    memory("swpfree"),
    memory("swpused"),
    memory("swpcad"),
    huge("hugfree"),
    huge("hugused"),
    queue("runq-sz"),
    queue("plist-sz"),
    queue("ldavg-1"),
    queue("ldavg-5"),
    queue("ldavg-15"),
];

/// Figures of one entry; absent if the entry lacks them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures(pub(super) [Option<f64>; FIGURES.len()]);

impl Figures {
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        let at = FIGURES.iter().position(|f| f.name == name)?;
        self.0[at]
    }

    /// Names and values of the figures of memory that the entry has, in KiB.
    pub(super) fn memory(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = FIGURES.iter().zip(self.0);
        let memory = all.filter(|(f, _)| f.group != "queue" && f.name != "memused-percent");
        memory.filter_map(|(f, value)| Some((f.name, value?)))
    }

    /// Sum of the figures called `names`; `None` if one of them is absent.
    pub(super) fn sum(&self, names: &[&str]) -> Option<f64> {
        names.iter().map(|name| self.get(name)).sum()
    }
}

/// The memory that `memused` excludes, which depends on sysstat's version. The output does not contain
/// MemTotal; it is exactly the sum of `memused` and the excluded memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsedExclusion {
    /// Free memory: before sysstat 11.4.10, 11.6.4 and 11.7.4.
    Free,
    /// Free memory, buffers, page cache and slabs: up to 12.7.7.
    FreeAndCached,
    /// Available memory: since 12.7.8, which also prints `shared`.
    Available,
}

impl UsedExclusion {
    /// Names of the figures whose sum with `memused` is MemTotal.
    pub(super) const fn rest(self) -> &'static [&'static str] {
        match self {
            Self::Free => &["memfree"],
            Self::FreeAndCached => &["memfree", "buffers", "cached", "slab"],
            Self::Available => &["avail"],
        }
    }

    /// MemTotal, in KiB.
    pub(super) fn mem_total_kib(self, figures: &Figures) -> Option<f64> {
        Some(figures.get("memused")? + figures.sum(self.rest())?)
    }

    /// The exclusion that fits a file's entries best: `memused-percent` agrees, and MemTotal is constant in
    /// most entries. `None` if no exclusion fits.
    pub(super) fn of<'e>(entries: impl Iterator<Item = &'e Figures> + Clone) -> Option<Self> {
        if entries
            .clone()
            .any(|figures| figures.get("shared").is_some())
        {
            return Some(Self::Available);
        }
        let fit = |all_but: &Self| {
            let agree = |figures: &&Figures| all_but.agrees(figures);
            let agreeing = entries.clone().filter(agree);
            let totals = agreeing.filter_map(|figures| all_but.mem_total_kib(figures));
            let mut totals: Vec<u64> = totals.map(|kib| kib as u64).collect();
            totals.sort_unstable();
            let most_of_one = totals.chunk_by(|a, b| a == b).map(<[u64]>::len).max();
            (totals.len(), most_of_one)
        };
        // If both fit equally well, `max_by_key` returns the last: that of newer versions.
        let best = [Self::Free, Self::FreeAndCached]
            .into_iter()
            .max_by_key(fit)?;
        (fit(&best).0 > 0).then_some(best)
    }

    /// Returns true if the printed `memused-percent`, which has two decimals, matches MemTotal under this exclusion.
    fn agrees(self, figures: &Figures) -> bool {
        const ROUNDING: f64 = 0.006;
        let percent = || {
            let total = self.mem_total_kib(figures).filter(|total| *total > 0.0)?;
            Some(100.0 * figures.get("memused")? / total - figures.get("memused-percent")?)
        };
        percent().is_some_and(|difference| difference.abs() <= ROUNDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn figures(all: &[(&str, f64)]) -> Figures {
        let mut figures = Figures::default();
        for (name, value) in all {
            let at = FIGURES.iter().position(|f| f.name == *name).unwrap();
            figures.0[at] = Some(*value);
        }
        figures
    }

    /// Figures as sysstat prints them for a machine with `total` memory.
    fn printed(left_out: UsedExclusion, total: f64, mut rest: [f64; 5]) -> Figures {
        let names = ["memfree", "buffers", "cached", "slab", "avail"];
        let scale = total / rest[..4].iter().sum::<f64>().max(total);
        rest.iter_mut()
            .for_each(|kib| *kib = (*kib * scale).floor());
        let mut all: Vec<(&str, f64)> = names.into_iter().zip(rest).collect();
        let out = all
            .iter()
            .filter(|(name, _)| left_out.rest().contains(name));
        let used = total - out.map(|(_, kib)| kib).sum::<f64>();
        let percent = (10_000.0 * used / total).round() / 100.0;
        all.extend([("memused", used), ("memused-percent", percent)]);
        if left_out == UsedExclusion::Available {
            all.push(("shared", 1.0));
        }
        figures(&all)
    }

    #[test]
    fn without_slabs_it_is_not_known_how_much_memory_there_is() {
        let all = [
            ("memfree", 100.0),
            ("memused", 200.0),
            ("buffers", 50.0),
            ("cached", 650.0),
        ];
        let new = figures(&[&all[..], &[("memused-percent", 20.0)]].concat());
        assert_eq!(UsedExclusion::of([&new].into_iter()), None);
        let old = figures(&[&all[..], &[("memused-percent", 66.67)]].concat());
        assert_eq!(
            UsedExclusion::of([&old].into_iter()),
            Some(UsedExclusion::Free)
        );
        assert_eq!(UsedExclusion::Free.mem_total_kib(&old), Some(300.0));
        assert_eq!(UsedExclusion::of([].into_iter()), None);
    }

    proptest! {
        #[test]
        fn memory_is_found_whichever_version_printed_it(
            left_out in prop::sample::select(vec![UsedExclusion::Free, UsedExclusion::FreeAndCached, UsedExclusion::Available]),
            total in 1_000_000..1_000_000_000_u32,
            rests in prop::collection::vec(prop::array::uniform5(0.0..1e9), 3..20),
        ) {
            let total = f64::from(total);
            let entries: Vec<Figures> = rests.into_iter().map(|rest| printed(left_out, total, rest)).collect();
            // With empty caches and slabs, both exclusions would give the same MemTotal.
            prop_assume!(entries.iter().any(|f| f.get("cached").unwrap() > 0.02 * total));
            let found = UsedExclusion::of(entries.iter());
            prop_assert_eq!(found, Some(left_out));
            for figures in &entries {
                prop_assert_eq!(left_out.mem_total_kib(figures), Some(total));
            }
        }
    }
}
