//! Policy "least recently used".

use super::Eviction;
use super::queue::{Links, NONE, Queue};

/// Exact order of pages, from the least to the most recently used. It takes eight bytes per page.
#[derive(Clone, Debug)]
pub struct Lru {
    links: Links,
    queue: Queue,
}

impl Lru {
    /// Empty order for page numbers below `pages`, at most 2³² − 2.
    #[must_use]
    pub fn new(pages: u32) -> Self {
        Self {
            links: Links::new(pages),
            queue: Queue::EMPTY,
        }
    }

    /// Extends the page numbers to below `pages`, at most 2³² − 2. Pages in the order keep their
    /// places.
    pub fn grow(&mut self, pages: u32) {
        self.links.grow(pages);
    }

    /// Number of pages in the order.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.queue.len
    }

    /// Returns true if the order has no pages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.len == 0
    }

    /// Returns true if the page is in the order.
    #[must_use]
    #[inline]
    pub fn contains(&self, page: u32) -> bool {
        self.links.is_linked(page)
    }

    /// Makes the page the most recently used one. Ignores a page beyond the end.
    #[inline]
    pub fn touch(&mut self, page: u32) {
        if page == self.queue.hottest || !self.links.has(page) {
            return;
        }
        self.remove(page);
        self.links.push(&mut self.queue, page);
    }

    /// Removes the page, if it is in the order.
    #[inline]
    pub fn remove(&mut self, page: u32) {
        if self.contains(page) {
            self.links.take(&mut self.queue, page);
        }
    }

    /// Iterates over the pages, from the least recently used one on.
    #[inline]
    pub fn coldest(&self) -> impl Iterator<Item = u32> + '_ {
        self.links.coldest_first(&self.queue)
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
        if page != self.queue.hottest && Self::contains(self, page) {
            self.links.take(&mut self.queue, page);
            self.links.push(&mut self.queue, page);
        }
    }

    #[inline]
    fn evict(&mut self, most_asked: usize, mut may_leave: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut page = self.queue.coldest;
        for _ in 0..most_asked {
            if page == NONE {
                break;
            }
            if may_leave(page) {
                self.links.take(&mut self.queue, page);
                return Some(page);
            }
            page = self.links.hotter(page);
        }
        None
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
