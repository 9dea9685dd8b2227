//! Policy "first in, first out".

use super::{Eviction, Lru};

/// Order of pages by arrival: the first to arrive leaves first. It is an [`Lru`] that ignores uses.
#[derive(Clone, Debug)]
pub struct Fifo(Lru);

impl Eviction for Fifo {
    fn of(pages: u32) -> Self {
        Self(Lru::new(pages))
    }

    fn grow(&mut self, pages: u32) {
        self.0.grow(pages);
    }

    #[inline]
    fn contains(&self, page: u32) -> bool {
        self.0.contains(page)
    }

    #[inline]
    fn enter(&mut self, page: u32) {
        if !self.0.contains(page) {
            self.0.touch(page);
        }
    }

    #[inline]
    fn used(&mut self, _: u32) {}

    #[inline]
    fn evict(&mut self, most_asked: usize, may_leave: impl FnMut(u32) -> bool) -> Option<u32> {
        self.0.evict(most_asked, may_leave)
    }

    #[inline]
    fn leave(&mut self, page: u32) {
        self.0.remove(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_order_of_a_queue(steps in prop::collection::vec((0u8..4, 0u32..12), 0..200)) {
            let mut fifo = Fifo::of(4);
            fifo.grow(10);
            let mut queue: Vec<u32> = Vec::new();
            for (kind, page) in steps {
                match kind {
                    0 => fifo.used(page),
                    1 => {
                        fifo.leave(page);
                        queue.retain(|other| *other != page);
                    }
                    _ => {
                        fifo.enter(page);
                        queue.extend((page < 10 && !queue.contains(&page)).then_some(page));
                    }
                }
                let first = fifo.clone().evict(usize::MAX, |_| true);
                prop_assert_eq!(first, queue.first().copied());
                prop_assert!((0..12).all(|page| fifo.contains(page) == queue.contains(&page)));
            }
        }
    }
}
