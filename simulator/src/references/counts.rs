//! Counts of faults and write-backs, by memory size.

/// Faults and write-backs of one memory size.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Faults {
    /// References to pages that were in memory before and have left it.
    pub reuse: f64,
    /// Written pages that left the memory.
    pub write_backs: f64,
}

/// Counts of a pass, from which the faults of every memory size follow.
#[derive(Clone, Debug, Default)]
pub struct MissCounts {
    /// Reuses by stack distance.
    reuses: Vec<u64>,
    /// Write-backs of a size, minus those of the next smaller size.
    write_back_steps: Vec<i64>,
}

impl MissCounts {
    /// Counts a reference to a page at this stack distance. Every memory of fewer pages faults.
    #[inline]
    pub(super) fn reuse(&mut self, distance: u32) {
        let at = distance as usize;
        if self.reuses.len() <= at {
            self.reuses.resize(at + 1, 0);
        }
        self.reuses[at] += 1;
    }

    /// Counts a write-back in every memory of at least `from` pages and fewer than `until`.
    #[inline]
    pub(super) fn write_back(&mut self, from: u32, until: u32) {
        let (from, until) = (from as usize, until as usize);
        if from >= until {
            return;
        }
        if self.write_back_steps.len() <= until {
            self.write_back_steps.resize(until + 1, 0);
        }
        self.write_back_steps[from] += 1;
        self.write_back_steps[until] -= 1;
    }

    /// Faults of these memory sizes (in pages), which must be in ascending order.
    #[must_use]
    pub fn at(&self, sizes: &[u64]) -> Vec<Faults> {
        let mut reuse: u64 = self.reuses.iter().sum();
        let (mut write_backs, mut counted) = (0_i64, 0_usize);
        let mut faults = Vec::with_capacity(sizes.len());
        let most = self.reuses.len().max(self.write_back_steps.len());
        for size in sizes {
            let size = usize::try_from(*size).unwrap_or(usize::MAX);
            while counted <= size && counted < most {
                reuse -= self.reuses.get(counted).copied().unwrap_or(0);
                write_backs += self.write_back_steps.get(counted).copied().unwrap_or(0);
                counted += 1;
            }
            faults.push(Faults {
                reuse: reuse as f64,
                write_backs: write_backs as f64,
            });
        }
        faults
    }
}
