//! The recorder's lists: which pages are in them, and which are on the stack below.

use super::super::distances::StackDistances;

/// Pages in the lists of all threads, above the stack of all other pages.
///
/// With one thread, a page's distance is exact. Lists of several threads are not ordered among each other: the pages in
/// them count as used last, even those of a thread that sleeps.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) stack: StackDistances,
    /// Number of lists that contain each page.
    in_lists: Vec<u16>,
    /// Pages that were written while they were in a list that they have left, and are still in another.
    is_written: Vec<bool>,
    /// Number of pages in lists.
    pub(super) pages: u32,
}

impl Lists {
    /// Counts the reuse of a page that enters a list. Other pages may leave before the page is put into the list
    /// with [`Self::put`].
    #[inline]
    pub(super) fn reuse(&mut self, page: u32) {
        let at = page as usize;
        if self.in_lists.len() <= at {
            self.in_lists.resize(at + 1, 0);
            self.is_written.resize(at + 1, false);
        }
        if self.in_lists[at] > 0 {
            // In another thread's list, so among the pages that were used last.
            self.stack.reuse(self.pages);
        } else {
            self.stack.take(page, self.pages);
        }
    }

    /// Puts a page into a list, after [`Self::reuse`].
    #[inline]
    pub(super) fn put(&mut self, page: u32) {
        let lists = &mut self.in_lists[page as usize];
        if *lists == 0 {
            self.pages += 1;
        }
        *lists = lists.saturating_add(1);
    }

    /// Frees a page. A page in a list stays: the thread that frees it takes it out of its own list before.
    pub(super) fn free(&mut self, page: u32) {
        let lists = self.in_lists.get(page as usize);
        if lists.is_none_or(|lists| *lists == 0) {
            self.stack.free(page, self.pages);
        }
    }

    /// Takes a page out of a list. Returns false if it is in none.
    #[inline]
    pub(super) fn leave(&mut self, page: u32, is_written: bool) -> bool {
        let at = page as usize;
        let Some(lists) = self.in_lists.get_mut(at).filter(|lists| **lists > 0) else {
            return false;
        };
        *lists -= 1;
        self.is_written[at] |= is_written;
        if *lists == 0 {
            self.pages -= 1;
            self.stack.put(page, self.is_written[at]);
            self.is_written[at] = false;
        }
        true
    }
}
