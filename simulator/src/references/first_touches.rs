//! References by the order in which pages were touched first.

/// Number of references to each page, in the order of first touches.
#[derive(Clone, Debug, Default)]
pub struct FirstTouches {
    references: Vec<u64>,
}

impl FirstTouches {
    /// Counts references to the page with this number. Pages have numbers in the order of their first touches.
    #[inline]
    pub fn add(&mut self, page: u32, references: u64) {
        let at = page as usize;
        if self.references.len() <= at {
            self.references.resize(at + 1, 0);
        }
        let count = &mut self.references[at];
        *count = count.saturating_add(references);
    }

    /// Number of references to the first pages, for each of these numbers of pages, in ascending order.
    #[must_use]
    pub fn to_first(&self, pages: &[u64]) -> Vec<u64> {
        let (mut sum, mut counted) = (0_u64, 0_usize);
        let until = |count: &u64| {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            while counted < count.min(self.references.len()) {
                sum = sum.saturating_add(self.references[counted]);
                counted += 1;
            }
            sum
        };
        pages.iter().map(until).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_count_in_their_order() {
        let mut touches = FirstTouches::default();
        for (page, references) in [(0, 5), (2, 7), (0, 1), (1, 2)] {
            touches.add(page, references);
        }
        assert_eq!(touches.to_first(&[0, 1, 2, 3, 9]), [0, 6, 8, 15, 15]);
        assert!(FirstTouches::default().to_first(&[]).is_empty());
    }
}
