//! Queues of pages in one flat array: eight bytes per page, and a few loads per change.

/// Number that stands for no page: the end of a queue.
pub(super) const NONE: u32 = u32::MAX;
/// Mark of a page that is in no queue, stored in place of its colder neighbour.
const OUT: u32 = u32::MAX - 1;

/// Both ends of a queue; a [`Links`] links its pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// Page that was added first, or [`NONE`].
    pub(super) coldest: u32,
    /// Page that was added last, or [`NONE`].
    pub(super) hottest: u32,
    /// Number of pages.
    pub(super) len: u32,
}

impl Queue {
    /// Queue without pages.
    pub(super) const EMPTY: Self = Self {
        coldest: NONE,
        hottest: NONE,
        len: 0,
    };
}

/// Links of every page; a page is in at most one queue. Both links of a page share a cache line.
#[derive(Clone, Debug)]
pub(super) struct Links(Vec<Neighbours>);

#[derive(Clone, Copy, Debug)]
struct Neighbours {
    colder: u32,
    hotter: u32,
}

impl Neighbours {
    /// Links of a page that is in no queue.
    const OUT: Self = Self {
        colder: OUT,
        hotter: OUT,
    };
}

impl Links {
    /// Links for page numbers below `pages`, at most 2³² − 2; no page is in a queue.
    pub(super) fn new(pages: u32) -> Self {
        Self(vec![Neighbours::OUT; pages.min(OUT) as usize])
    }

    /// Extends the page numbers to below `pages`, at most 2³² − 2. Never shrinks.
    pub(super) fn grow(&mut self, pages: u32) {
        let pages = self.0.len().max(pages.min(OUT) as usize);
        self.0.resize(pages, Neighbours::OUT);
    }

    /// End of the page numbers: the lowest number that no page has.
    #[inline]
    pub(super) fn pages(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns true if the page number is below the end.
    #[inline]
    pub(super) fn has(&self, page: u32) -> bool {
        (page as usize) < self.0.len()
    }

    /// Returns true if the page is in a queue.
    #[inline]
    pub(super) fn is_linked(&self, page: u32) -> bool {
        let neighbours = self.0.get(page as usize);
        neighbours.is_some_and(|neighbours| neighbours.colder != OUT)
    }

    /// Page added after this one, or [`NONE`]. The page must be in a queue.
    #[inline]
    pub(super) fn hotter(&self, page: u32) -> u32 {
        self.0[page as usize].hotter
    }

    /// Adds a page, which must be in no queue, at the hot end of `queue`.
    #[inline]
    pub(super) fn push(&mut self, queue: &mut Queue, page: u32) {
        self.0[page as usize] = Neighbours {
            colder: queue.hottest,
            hotter: NONE,
        };
        match queue.hottest {
            NONE => queue.coldest = page,
            before => self.0[before as usize].hotter = page,
        }
        queue.hottest = page;
        queue.len += 1;
    }

    /// Removes a page from `queue`, which must contain it.
    #[inline]
    pub(super) fn take(&mut self, queue: &mut Queue, page: u32) {
        let Neighbours { colder, hotter } = self.0[page as usize];
        match colder {
            NONE => queue.coldest = hotter,
            colder => self.0[colder as usize].hotter = hotter,
        }
        match hotter {
            NONE => queue.hottest = colder,
            hotter => self.0[hotter as usize].colder = colder,
        }
        self.0[page as usize] = Neighbours::OUT;
        queue.len -= 1;
    }

    /// Iterates over the pages of `queue` from the coldest on.
    #[inline]
    pub(super) fn coldest_first(&self, queue: &Queue) -> impl Iterator<Item = u32> + '_ {
        let some = |page: u32| (page != NONE).then_some(page);
        std::iter::successors(some(queue.coldest), move |page| some(self.hotter(*page)))
    }
}
