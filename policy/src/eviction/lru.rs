//! Exact least-recently-used order of pages, in two flat arrays: eight bytes a page, and a few loads a touch.

/// No page.
const NONE: u32 = u32::MAX;
/// A page that is not in the order, where its neighbour would stand.
const OUT: u32 = u32::MAX - 1;

/// Pages from the least to the most recently used.
#[derive(Clone, Debug)]
pub struct Lru {
    colder: Vec<u32>,
    hotter: Vec<u32>,
    coldest: u32,
    hottest: u32,
    len: u32,
}

impl Lru {
    /// For pages below `pages`, none of which is in it; at most 2³² − 2.
    #[must_use]
    pub fn new(pages: u32) -> Self {
        let pages = pages.min(OUT) as usize;
        Self {
            colder: vec![OUT; pages],
            hotter: vec![OUT; pages],
            coldest: NONE,
            hottest: NONE,
            len: 0,
        }
    }

    /// How many are in it.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether this one is.
    #[must_use]
    pub fn contains(&self, page: u32) -> bool {
        self.colder
            .get(page as usize)
            .is_some_and(|colder| *colder != OUT)
    }

    /// The page is the most recently used one from now on. One beyond the end changes nothing.
    pub fn touch(&mut self, page: u32) {
        if page == self.hottest || page as usize >= self.colder.len() {
            return;
        }
        self.remove(page);
        self.colder[page as usize] = self.hottest;
        self.hotter[page as usize] = NONE;
        match self.hottest {
            NONE => self.coldest = page,
            before => self.hotter[before as usize] = page,
        }
        self.hottest = page;
        self.len += 1;
    }

    /// The page is no longer in the order.
    pub fn remove(&mut self, page: u32) {
        if !self.contains(page) {
            return;
        }
        let (colder, hotter) = (self.colder[page as usize], self.hotter[page as usize]);
        match colder {
            NONE => self.coldest = hotter,
            colder => self.hotter[colder as usize] = hotter,
        }
        match hotter {
            NONE => self.hottest = colder,
            hotter => self.colder[hotter as usize] = colder,
        }
        (self.colder[page as usize], self.hotter[page as usize]) = (OUT, OUT);
        self.len -= 1;
    }

    /// From the least recently used one on.
    pub fn coldest(&self) -> impl Iterator<Item = u32> + '_ {
        let some = |page: u32| (page != NONE).then_some(page);
        std::iter::successors(some(self.coldest), move |page| {
            some(self.hotter[*page as usize])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Touch(u32),
        Remove(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0u32..12).prop_map(Step::Touch),
            1 => (0u32..12).prop_map(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn it_is_the_order_of_a_list(steps in prop::collection::vec(step(), 0..200)) {
            let mut lru = Lru::new(10);
            let mut list: Vec<u32> = Vec::new();
            for step in steps {
                let (Step::Touch(page) | Step::Remove(page)) = step;
                list.retain(|other| *other != page);
                match step {
                    Step::Touch(page) => {
                        lru.touch(page);
                        list.extend((page < 10).then_some(page));
                    }
                    Step::Remove(page) => lru.remove(page),
                }
                prop_assert_eq!(lru.coldest().collect::<Vec<_>>(), list.clone());
                prop_assert_eq!(lru.len() as usize, list.len());
                prop_assert!(list.iter().all(|page| lru.contains(*page)));
            }
        }
    }
}
