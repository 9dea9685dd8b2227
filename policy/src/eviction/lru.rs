//! Exact least-recently-used order of pages, in a flat array: eight bytes a page, and a few loads a touch.

use super::Eviction;

/// No page.
const NONE: u32 = u32::MAX;
/// A page that is not in the order, where its neighbour would stand.
const OUT: u32 = u32::MAX - 1;

/// Pages from the least to the most recently used.
#[derive(Clone, Debug)]
pub struct Lru {
    /// By page; both of a page lie on one line of the processor's cache.
    neighbours: Vec<Neighbours>,
    coldest: u32,
    hottest: u32,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Neighbours {
    colder: u32,
    hotter: u32,
}

impl Neighbours {
    /// Of a page that is not in the order.
    const OUT: Self = Self {
        colder: OUT,
        hotter: OUT,
    };
}

impl Lru {
    /// For pages below `pages`, none of which is in it; at most 2³² − 2.
    #[must_use]
    pub fn new(pages: u32) -> Self {
        Self {
            neighbours: vec![Neighbours::OUT; pages.min(OUT) as usize],
            coldest: NONE,
            hottest: NONE,
            len: 0,
        }
    }

    /// Pages below `pages` may be in it from now on; at most 2³² − 2. Those that are in stay where they are.
    pub fn grow(&mut self, pages: u32) {
        let pages = self.neighbours.len().max(pages.min(OUT) as usize);
        self.neighbours.resize(pages, Neighbours::OUT);
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
    #[inline]
    pub fn contains(&self, page: u32) -> bool {
        self.neighbours
            .get(page as usize)
            .is_some_and(|neighbours| neighbours.colder != OUT)
    }

    /// The page is the most recently used one from now on. One beyond the end changes nothing.
    #[inline]
    pub fn touch(&mut self, page: u32) {
        if page == self.hottest || page as usize >= self.neighbours.len() {
            return;
        }
        self.remove(page);
        self.neighbours[page as usize] = Neighbours {
            colder: self.hottest,
            hotter: NONE,
        };
        match self.hottest {
            NONE => self.coldest = page,
            before => self.neighbours[before as usize].hotter = page,
        }
        self.hottest = page;
        self.len += 1;
    }

    /// The page is no longer in the order.
    #[inline]
    pub fn remove(&mut self, page: u32) {
        if !self.contains(page) {
            return;
        }
        let Neighbours { colder, hotter } = self.neighbours[page as usize];
        match colder {
            NONE => self.coldest = hotter,
            colder => self.neighbours[colder as usize].hotter = hotter,
        }
        match hotter {
            NONE => self.hottest = colder,
            hotter => self.neighbours[hotter as usize].colder = colder,
        }
        self.neighbours[page as usize] = Neighbours::OUT;
        self.len -= 1;
    }

    /// `count` pages from `first` on are touched in that order, as [`Lru::touch`] would one by one; their links are written in a row.
    #[inline]
    pub fn touch_run(&mut self, first: u32, count: u32) {
        let end = first
            .saturating_add(count)
            .min(self.neighbours.len() as u32);
        if first >= end {
            return;
        }
        for page in first..end {
            self.remove(page);
        }
        let (before, last) = (self.hottest, end - 1);
        let run = &mut self.neighbours[first as usize..end as usize];
        for (page, neighbours) in (first..end).zip(run) {
            *neighbours = Neighbours {
                colder: if page == first { before } else { page - 1 },
                hotter: if page == last { NONE } else { page + 1 },
            };
        }
        match before {
            NONE => self.coldest = first,
            before => self.neighbours[before as usize].hotter = first,
        }
        self.hottest = last;
        self.len += end - first;
    }

    /// The least recently used leave until `most` are left.
    #[inline]
    pub fn shrink(&mut self, most: u32) {
        if self.len <= most {
            return;
        }
        while self.len > most {
            let left = &mut self.neighbours[self.coldest as usize];
            self.coldest = left.hotter;
            *left = Neighbours::OUT;
            self.len -= 1;
        }
        match self.coldest {
            NONE => self.hottest = NONE,
            coldest => self.neighbours[coldest as usize].colder = NONE,
        }
    }

    /// From the least recently used one on.
    #[inline]
    pub fn coldest(&self) -> impl Iterator<Item = u32> + '_ {
        let some = |page: u32| (page != NONE).then_some(page);
        std::iter::successors(some(self.coldest), move |page| {
            some(self.neighbours[*page as usize].hotter)
        })
    }
}

impl Eviction for Lru {
    fn of(pages: u32) -> Self {
        Self::new(pages)
    }

    fn grow(&mut self, pages: u32) {
        Self::grow(self, pages);
    }

    #[inline]
    fn contains(&self, page: u32) -> bool {
        Self::contains(self, page)
    }

    #[inline]
    fn enter(&mut self, page: u32) {
        if !Self::contains(self, page) {
            self.touch(page);
        }
    }

    #[inline]
    fn used(&mut self, page: u32) {
        if Self::contains(self, page) {
            self.touch(page);
        }
    }

    #[inline]
    fn victim(&self) -> Option<u32> {
        self.coldest().next()
    }

    #[inline]
    fn leave(&mut self, page: u32) {
        self.remove(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Touch(u32),
        TouchRun(u32, u32),
        Shrink(u32),
        Remove(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0u32..12).prop_map(Step::Touch),
            2 => (0u32..12, 0u32..5).prop_map(|(first, count)| Step::TouchRun(first, count)),
            1 => (0u32..12).prop_map(Step::Shrink),
            1 => (0u32..12).prop_map(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn it_is_the_order_of_a_list(steps in prop::collection::vec(step(), 0..200)) {
            let mut lru = Lru::new(6);
            lru.grow(10);
            lru.grow(2);
            let mut list: Vec<u32> = Vec::new();
            for step in steps {
                match step {
                    Step::Touch(page) => {
                        lru.touch(page);
                        list.retain(|other| *other != page);
                        list.extend((page < 10).then_some(page));
                    }
                    Step::TouchRun(first, count) => {
                        lru.touch_run(first, count);
                        let run = first..(first + count).min(10);
                        list.retain(|other| !run.contains(other));
                        list.extend(run);
                    }
                    Step::Shrink(most) => {
                        lru.shrink(most);
                        list.drain(..list.len().saturating_sub(most as usize));
                    }
                    Step::Remove(page) => {
                        lru.remove(page);
                        list.retain(|other| *other != page);
                    }
                }
                prop_assert_eq!(lru.coldest().collect::<Vec<_>>(), list.clone());
                prop_assert_eq!(lru.len() as usize, list.len());
                prop_assert!(list.iter().all(|page| lru.contains(*page)));
            }
        }
    }
}
