//! SIEVE: a queue in the order of arrival, and a hand that spares pages used since it last passed them.

use super::Eviction;
use super::queue::{Links, NONE, Queue};

/// SIEVE (Zhang et al., "SIEVE is Simpler than LRU", NSDI 2024). Takes nine bytes per page.
///
/// A use marks the page, and moves nothing. The hand goes from the oldest page to the newest and starts over:
/// it removes a page's mark, and evicts the first page without one.
#[derive(Clone, Debug)]
pub struct Sieve {
    links: Links,
    queue: Queue,
    /// Next page that the hand looks at; [`NONE`] stands for the coldest page.
    hand: u32,
    /// State of each page.
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Out,
    Unmarked,
    Marked,
}

impl Sieve {
    /// Removes the page from the queue, which must contain it. If the hand is at the page, it moves on.
    #[inline]
    fn take(&mut self, page: u32) {
        if self.hand == page {
            self.hand = self.links.hotter(page);
        }
        self.links.take(&mut self.queue, page);
        self.states[page as usize] = State::Out;
    }
}

impl Eviction for Sieve {
    fn of(pages: u32) -> Self {
        let links = Links::new(pages);
        Self {
            states: vec![State::Out; links.pages() as usize],
            links,
            queue: Queue::EMPTY,
            hand: NONE,
        }
    }

    fn grow(&mut self, pages: u32) {
        self.links.grow(pages);
        self.states.resize(self.links.pages() as usize, State::Out);
    }

    #[inline]
    fn contains(&self, page: u32) -> bool {
        let state = self.states.get(page as usize);
        state.is_some_and(|state| *state != State::Out)
    }

    #[inline]
    fn enter(&mut self, page: u32) {
        if let Some(state @ State::Out) = self.states.get_mut(page as usize) {
            *state = State::Unmarked;
            self.links.push(&mut self.queue, page);
        }
    }

    #[inline]
    fn used(&mut self, page: u32) {
        if let Some(state @ State::Unmarked) = self.states.get_mut(page as usize) {
            *state = State::Marked;
        }
    }

    #[inline]
    fn evict(&mut self, most_asked: usize, mut may_leave: impl FnMut(u32) -> bool) -> Option<u32> {
        // Two rounds of the hand are enough: the first may only remove marks.
        let most_asked = most_asked.min(self.queue.len as usize * 2);
        let mut asked = 0;
        while asked < most_asked {
            let page = match self.hand {
                NONE => self.queue.coldest,
                page => page,
            };
            let state = &mut self.states[page as usize];
            if *state == State::Marked {
                *state = State::Unmarked;
            } else if may_leave(page) {
                self.hand = page;
                self.take(page);
                return Some(page);
            } else {
                asked += 1;
            }
            self.hand = self.links.hotter(page);
        }
        None
    }

    #[inline]
    fn leave(&mut self, page: u32) {
        if self.contains(page) {
            self.take(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asked, misses_of};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_table_worked_by_hand() {
        // Room for three pages. Pages 1 and 3 are marked when 4 comes: the hand removes 1's mark, evicts 2,
        // and is now at 3. For 5 it removes the mark of 3, and evicts the unmarked 4. The hand starts over:
        // for 6 it evicts 1. For 7 it spares 3, which was used again, and evicts 5.
        let pages = [1, 2, 3, 1, 3, 4, 5, 3, 6, 7, 3];
        assert_eq!(asked::<Sieve>(3, &pages), "mmmhhmmhmmh");
    }

    /// The misses by the paper's algorithm 1, computed with a list, newest page first.
    fn by_list(room: usize, pages: &[u32]) -> Vec<bool> {
        let mut list: Vec<(u32, bool)> = Vec::new();
        let mut hand: Option<u32> = None;
        let mut ask = |page: u32| {
            if let Some(found) = list.iter_mut().find(|(other, _)| *other == page) {
                found.1 = true;
                return false;
            }
            if list.len() == room {
                let at_hand = |page| list.iter().position(|(other, _)| *other == page);
                let mut at = hand.and_then(at_hand).unwrap_or(list.len() - 1);
                while list[at].1 {
                    list[at].1 = false;
                    at = at.checked_sub(1).unwrap_or(list.len() - 1);
                }
                hand = at.checked_sub(1).map(|at| list[at].0);
                list.remove(at);
            }
            list.insert(0, (page, false));
            true
        };
        pages.iter().map(|page| ask(*page)).collect()
    }

    proptest! {
        #[test]
        fn it_misses_what_a_list_does(
            pages in prop::collection::vec(0u32..30, 0..400),
            room in 1usize..20,
        ) {
            prop_assert_eq!(misses_of::<Sieve>(room as u32, &pages), by_list(room, &pages));
        }
    }
}
