//! S3-FIFO: newcomers wait in a small queue, and move to the main one if they are used.

use super::Eviction;
use super::queue::{Links, NONE, Queue};

/// Maximum number of uses that are counted.
const MOST_USES: u8 = 3;

/// S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023). Takes ten bytes per
/// page.
///
/// A new page enters the small queue, which has a tenth of the room; a page that left the small queue
/// recently, as the ghost queue remembers, enters the main queue. At the end of the small queue, a page used
/// more than once moves to the main queue; any other page leaves and becomes a ghost. At the end of the main
/// queue, a page goes round once more for each use. Shares are counted in stored pages, so they follow
/// changes of the room. As in the authors' libCacheSim, one page leaves at a time, and a newcomer is looked
/// up among the ghosts before the leaving page becomes one.
#[derive(Clone, Debug)]
pub struct S3Fifo {
    links: Links,
    small: Queue,
    main: Queue,
    /// Pages that left `small` and are not stored any more; at most as many as `main`'s share.
    ghosts: Queue,
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    place: Place,
    /// Uses since the page entered its queue, or last went round in it; at most [`MOST_USES`].
    uses: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Out,
    Small,
    Main,
    Ghosts,
}

impl State {
    const OUT: Self = Self {
        place: Place::Out,
        uses: 0,
    };
}

impl S3Fifo {
    /// Number of stored pages.
    fn len(&self) -> u32 {
        self.small.len + self.main.len
    }

    /// Evicts from the small queue, and moves its used pages to the main queue.
    fn evict_small(
        &mut self,
        most_asked: &mut usize,
        may_leave: &mut impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let mut next = self.small.coldest;
        while next != NONE && *most_asked > 0 {
            let page = next;
            next = self.links.hotter(page);
            let state = &mut self.states[page as usize];
            let is_kept = state.uses > 1;
            if !is_kept {
                *most_asked -= 1;
                if !may_leave(page) {
                    continue;
                }
            }
            let (place, queue) = match is_kept {
                true => (Place::Main, &mut self.main),
                false => (Place::Ghosts, &mut self.ghosts),
            };
            *state = State { place, uses: 0 };
            self.links.take(&mut self.small, page);
            self.links.push(queue, page);
            if !is_kept {
                return Some(page);
            }
        }
        None
    }

    /// Evicts from the main queue; a used page goes round once more.
    fn evict_main(
        &mut self,
        most_asked: &mut usize,
        may_leave: &mut impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let mut next = self.main.coldest;
        while next != NONE && *most_asked > 0 {
            let page = next;
            let state = &mut self.states[page as usize];
            if state.uses > 0 {
                state.uses -= 1;
                if page != self.main.hottest {
                    next = self.links.hotter(page);
                    self.links.take(&mut self.main, page);
                    self.links.push(&mut self.main, page);
                }
                continue;
            }
            *most_asked -= 1;
            if may_leave(page) {
                *state = State::OUT;
                self.links.take(&mut self.main, page);
                return Some(page);
            }
            next = self.links.hotter(page);
        }
        None
    }
}

impl Eviction for S3Fifo {
    fn of(pages: u32) -> Self {
        let links = Links::new(pages);
        Self {
            states: vec![State::OUT; links.pages() as usize],
            links,
            small: Queue::EMPTY,
            main: Queue::EMPTY,
            ghosts: Queue::EMPTY,
        }
    }

    fn grow(&mut self, pages: u32) {
        self.links.grow(pages);
        self.states.resize(self.links.pages() as usize, State::OUT);
    }

    #[inline]
    fn contains(&self, page: u32) -> bool {
        let state = self.states.get(page as usize);
        state.is_some_and(|state| matches!(state.place, Place::Small | Place::Main))
    }

    fn enter(&mut self, page: u32) {
        let Some(state) = self.states.get_mut(page as usize) else {
            return;
        };
        let (place, queue) = match state.place {
            Place::Out => (Place::Small, &mut self.small),
            Place::Ghosts => {
                self.links.take(&mut self.ghosts, page);
                (Place::Main, &mut self.main)
            }
            Place::Small | Place::Main => return,
        };
        *state = State { place, uses: 0 };
        self.links.push(queue, page);
        while self.ghosts.len > self.len() - self.len() / 10 {
            let oldest = self.ghosts.coldest;
            self.links.take(&mut self.ghosts, oldest);
            self.states[oldest as usize] = State::OUT;
        }
    }

    #[inline]
    fn used(&mut self, page: u32) {
        if let Some(state) = self.states.get_mut(page as usize) {
            state.uses = MOST_USES.min(state.uses + 1);
        }
    }

    fn evict(
        &mut self,
        mut most_asked: usize,
        mut may_leave: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let (most, may) = (&mut most_asked, &mut may_leave);
        if self.small.len >= (self.len() / 10).max(1) {
            let evicted = self.evict_small(most, may);
            evicted.or_else(|| self.evict_main(most, may))
        } else {
            let evicted = self.evict_main(most, may);
            evicted.or_else(|| self.evict_small(most, may))
        }
    }

    fn leave(&mut self, page: u32) {
        let Some(state) = self.states.get_mut(page as usize) else {
            return;
        };
        let queue = match state.place {
            Place::Small => &mut self.small,
            Place::Main => &mut self.main,
            Place::Out | Place::Ghosts => return,
        };
        *state = State::OUT;
        self.links.take(queue, page);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asked, misses_of};
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn a_table_worked_by_hand() {
        // Room for two pages. A tenth of it is 0, so a page leaves the small queue as long as that queue has
        // one. Page 1 is used twice: it moves to the main queue when 3 comes, and 2 leaves and becomes a
        // ghost. When 2 comes back, 3 leaves, and 2 enters the main queue. When 4 comes, the small queue is
        // empty: 1 goes round for its use, and 2 leaves without becoming a ghost. When 2 comes again, 4
        // leaves.
        let pages = [1, 2, 1, 1, 3, 1, 2, 4, 1, 2];
        assert_eq!(asked::<S3Fifo>(2, &pages), "mmhhmhmmhm");
        // Page 1 is used only once: it leaves when 3 comes.
        assert_eq!(asked::<S3Fifo>(2, &[1, 2, 1, 3, 1]), "mmhmm");
    }

    /// The misses by the paper's algorithm 1, computed with plain queues, newest page last.
    fn by_queues(room: usize, pages: &[u32]) -> Vec<bool> {
        let (mut small, mut main) = (VecDeque::<(u32, u8)>::new(), VecDeque::<(u32, u8)>::new());
        let mut ghosts = VecDeque::<u32>::new();
        let mut ask = |page: u32| {
            let mut both = small.iter_mut().chain(&mut main);
            if let Some((_, uses)) = both.find(|(other, _)| *other == page) {
                *uses = 3.min(*uses + 1);
                return false;
            }
            let was_ghost = ghosts.contains(&page);
            ghosts.retain(|other| *other != page);
            while small.len() + main.len() == room {
                let is_small = small.len() >= (room / 10).max(1);
                let mut is_evicted = false;
                while is_small
                    && !is_evicted
                    && let Some((page, uses)) = small.pop_front()
                {
                    match uses {
                        0 | 1 => ghosts.push_back(page),
                        _ => main.push_back((page, 0)),
                    }
                    is_evicted = uses < 2;
                }
                while !is_small
                    && !is_evicted
                    && let Some((page, uses)) = main.pop_front()
                {
                    match uses {
                        0 => is_evicted = true,
                        _ => main.push_back((page, uses - 1)),
                    }
                }
            }
            ghosts.drain(..ghosts.len().saturating_sub(room - room / 10));
            match was_ghost {
                true => main.push_back((page, 0)),
                false => small.push_back((page, 0)),
            }
            true
        };
        pages.iter().map(|page| ask(*page)).collect()
    }

    proptest! {
        #[test]
        fn it_misses_what_queues_do(
            pages in prop::collection::vec(0u32..60, 0..600),
            room in 1usize..50,
        ) {
            prop_assert_eq!(misses_of::<S3Fifo>(room as u32, &pages), by_queues(room, &pages));
        }
    }
}
