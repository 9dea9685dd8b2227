//! Advice on a host's memory: add, move, keep or watch. Pure functions from observations to advice.

/// Share of a host's memory below which a sample's available memory counts as short.
pub(crate) const SHORT_SHARE: f64 = 0.10;
/// Minimum share of short samples at which a host counts as short.
pub(crate) const SHORT_SAMPLES_SHARE: f64 = 0.01;
/// Share of a host's memory: a host that never used this much has too much.
pub(crate) const SPARE_BELOW_SHARE: f64 = 0.5;
/// [`SPARE_BELOW_SHARE`] as a word.
pub(crate) const SPARE_BELOW: &str = "half";
/// Share of memory that a host keeps free at its worst moment, after memory was added or removed.
pub(crate) const ROOM_SHARE: f64 = 0.25;
/// Shares of its memory that a host may keep when modules are removed: one module is usually a half or a
/// quarter of the memory.
pub(crate) const REST_SHARES: [f64; 3] = [0.25, 0.5, 0.75];
/// Minimum number of calendar days with samples that advice needs.
pub(crate) const LEAST_DAYS: i64 = 5;
/// Minimum traced time that advice needs, in s.
pub(crate) const LEAST_TRACED_S: f64 = 20.0 * 3600.0;

/// Observations of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Observations {
    pub physical_bytes: f64,
    pub least_available_bytes: f64,
    /// Maximum memory in use at a sample: memory that the host had at that time, less available memory.
    pub most_used_bytes: f64,
    /// Share of the host's samples with less than [`SHORT_SHARE`] available; absent if they were not counted.
    pub short_samples_share: Option<f64>,
    /// True if the sizes are the host's own; false if an importer invented them.
    pub has_sizes: bool,
    /// Number of calendar days with samples.
    pub days: i64,
    pub traced_s: f64,
}

/// Advice for a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Advice {
    /// The host is short: `bytes` more would have left room at its worst moment.
    Add { bytes: f64 },
    /// The host never used half of its memory: `bytes` could go to a host that is short.
    Move { bytes: f64 },
    /// The host never used half of its memory, and no host needs it: `bytes` could be lent.
    Spare { bytes: f64 },
    /// No change is advised.
    Keep,
    /// The host was traced too briefly.
    Watch,
}

impl Advice {
    /// The advice as one word.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Add { .. } => "add",
            Self::Move { .. } => "move",
            Self::Spare { .. } | Self::Keep => "keep",
            Self::Watch => "watch",
        }
    }
}

impl Observations {
    /// Maximum use at a sample, as a share of the memory that the host has now. The share is at most 1, even if
    /// the host formerly had more memory and used it.
    pub(crate) fn most_used_share(&self) -> f64 {
        match self.physical_bytes > 0.0 {
            true => (self.most_used_bytes / self.physical_bytes).clamp(0.0, 1.0),
            false => 0.0,
        }
    }

    /// Advice for this host alone; [`pairs`] decides whether memory that it can spare is needed elsewhere.
    pub(crate) fn advice(&self) -> Advice {
        if !self.has_sizes
            || self.days < LEAST_DAYS
            || self.traced_s < LEAST_TRACED_S
            || self.physical_bytes <= 0.0
        {
            return Advice::Watch;
        }
        let used = self.most_used_share();
        match self.short_samples_share {
            Some(share) if share >= SHORT_SAMPLES_SHARE => Advice::Add {
                bytes: self.most_used_bytes / (1.0 - ROOM_SHARE) - self.physical_bytes,
            },
            // If use stays below half, no sample can be short.
            _ if used < SPARE_BELOW_SHARE => Advice::Spare {
                bytes: self.physical_bytes * (1.0 - rest_share(used)),
            },
            None if used > 1.0 - SHORT_SHARE => Advice::Watch,
            _ => Advice::Keep,
        }
    }
}

/// Smallest share of a host's memory that leaves the host room at its worst moment.
fn rest_share(used_share: f64) -> f64 {
    let leaves_room = |rest: &f64| used_share <= (1.0 - ROOM_SHARE) * rest;
    REST_SHARES.into_iter().find(leaves_room).unwrap_or(1.0)
}

/// Returns for each host the index of the host that could give it memory; `None` if it needs none, or if no
/// host can. The neediest hosts come first, and as few hosts as possible give memory.
pub(crate) fn pairs(advices: &[Advice]) -> Vec<Option<usize>> {
    let mut needs: Vec<(usize, f64)> = Vec::new();
    let mut left: Vec<(usize, f64, bool)> = Vec::new();
    for (host, advice) in advices.iter().enumerate() {
        match advice {
            Advice::Add { bytes } => needs.push((host, *bytes)),
            Advice::Spare { bytes } => left.push((host, *bytes, false)),
            _ => {}
        }
    }
    needs.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut givers = vec![None; advices.len()];
    for (host, need) in needs {
        let can = left.iter_mut().filter(|(_, left, _)| *left >= need);
        let best = can.max_by(|a, b| a.2.cmp(&b.2).then(a.1.total_cmp(&b.1)));
        if let Some((giver, left, gives)) = best {
            givers[host] = Some(*giver);
            *left -= need;
            *gives = true;
        }
    }
    givers
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = 1_073_741_824.0;

    fn seen(physical_gib: f64, least_gib: f64, short: Option<f64>) -> Observations {
        Observations {
            has_sizes: true,
            physical_bytes: physical_gib * GIB,
            least_available_bytes: least_gib * GIB,
            most_used_bytes: (physical_gib - least_gib).max(0.0) * GIB,
            short_samples_share: short,
            days: 7,
            traced_s: 6.8 * 86_400.0,
        }
    }

    #[test]
    fn advice_by_what_was_seen() {
        let gib = |n: f64| n * GIB;
        let cases = [
            // Each pair has observations and the advice for them.
            (
                seen(16.0, 1.0, Some(0.032)),
                Advice::Add { bytes: gib(4.0) },
            ),
            (seen(16.0, 1.0, Some(0.009)), Advice::Keep),
            (seen(16.0, 1.0, None), Advice::Watch),
            (seen(16.0, 4.0, None), Advice::Keep),
            (
                seen(64.0, 38.0, Some(0.0)),
                Advice::Spare { bytes: gib(16.0) },
            ),
            (
                seen(64.0, 40.0, Some(0.0)),
                Advice::Spare { bytes: gib(32.0) },
            ),
            (
                seen(64.0, 60.0, Some(0.0)),
                Advice::Spare { bytes: gib(48.0) },
            ),
            (seen(64.0, 32.0, Some(0.0)), Advice::Keep),
            (seen(0.0, 0.0, Some(0.0)), Advice::Watch),
        ];
        for (seen, advised) in cases {
            assert_eq!(seen.advice(), advised, "{seen:?}");
        }
        for (days, traced_s) in [(4, 1e6), (7, 3600.0)] {
            let seen = Observations {
                days,
                traced_s,
                ..seen(16.0, 1.0, Some(0.5))
            };
            assert_eq!(seen.advice(), Advice::Watch, "{seen:?}");
        }
    }

    #[test]
    fn whatever_is_added_or_taken_leaves_room_at_the_worst_moment() {
        for physical in [0.0625, 1.0, 23.5, 64.0, 1536.0] {
            for used in 0..=1000 {
                let used = f64::from(used) / 1000.0;
                for short in [None, Some(0.0), Some(0.009), Some(0.01), Some(1.0)] {
                    // If any sample is short, the sample with the least available memory is short as well.
                    if short.is_some_and(|s| s > 0.0) && used <= 1.0 - SHORT_SHARE {
                        continue;
                    }
                    let seen = seen(physical, physical * (1.0 - used), short);
                    let after = match seen.advice() {
                        Advice::Add { bytes } => {
                            assert!(bytes > 0.0);
                            seen.physical_bytes + bytes
                        }
                        Advice::Spare { bytes } => {
                            assert!(used < SPARE_BELOW_SHARE && bytes >= seen.physical_bytes / 4.0);
                            seen.physical_bytes - bytes
                        }
                        Advice::Move { .. } => panic!("nobody was asked who needs it"),
                        Advice::Keep | Advice::Watch => continue,
                    };
                    let free = 1.0 - seen.most_used_bytes / after;
                    assert!(
                        free >= ROOM_SHARE - 1e-9,
                        "{seen:?}: {free} free of {after}"
                    );
                }
            }
        }
    }

    #[test]
    fn memory_goes_to_the_neediest_from_as_few_as_will_do_and_never_twice() {
        let (add, spare) = (
            |gib: f64| Advice::Add { bytes: gib * GIB },
            |gib: f64| Advice::Spare { bytes: gib * GIB },
        );
        let hosts = [
            add(2.0),
            spare(32.0),
            add(5.0),
            spare(8.0),
            Advice::Keep,
            add(40.0),
            Advice::Watch,
        ];
        let found = pairs(&hosts);
        assert_eq!(found, [Some(1), None, Some(1), None, None, None, None]);
        assert_eq!(
            pairs(&[add(6.0), add(6.0), spare(8.0)]),
            [Some(2), None, None]
        );
        assert_eq!(pairs(&[spare(8.0)]), [None]);
        // No host gives more than it can spare.
        let many: Vec<Advice> = (0..200)
            .map(|i| match i % 3 {
                0 => spare(f64::from(i % 17)),
                _ => add(f64::from(i % 11) / 2.0),
            })
            .collect();
        let mut given = vec![0.0; many.len()];
        for (host, giver) in pairs(&many).into_iter().enumerate() {
            if let (Some(giver), Advice::Add { bytes }) = (giver, many[host]) {
                given[giver] += bytes;
            }
        }
        for (giver, given) in given.into_iter().enumerate() {
            let has = match many[giver] {
                Advice::Spare { bytes } => bytes,
                _ => 0.0,
            };
            assert!(given <= has, "{giver} gave {given} of {has}");
        }
    }
}
