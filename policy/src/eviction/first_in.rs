//! Policy "first in": pages are never replaced.

use super::Eviction;

/// The first pages stay: no page is replaced, and a newcomer is not stored while there is no room. This is
/// the availability study's "first in" (Acharya and Setia, section 3.2), for programs that scan more than
/// fits.
#[derive(Clone, Debug)]
pub struct FirstIn {
    is_in: Vec<bool>,
}

impl Eviction for FirstIn {
    fn of(pages: u32) -> Self {
        Self {
            is_in: vec![false; pages as usize],
        }
    }

    fn grow(&mut self, pages: u32) {
        let pages = self.is_in.len().max(pages as usize);
        self.is_in.resize(pages, false);
    }

    #[inline]
    fn contains(&self, page: u32) -> bool {
        self.is_in.get(page as usize).copied().unwrap_or(false)
    }

    #[inline]
    fn enter(&mut self, page: u32) {
        if let Some(is_in) = self.is_in.get_mut(page as usize) {
            *is_in = true;
        }
    }

    #[inline]
    fn used(&mut self, _: u32) {}

    #[inline]
    fn evict(&mut self, _: usize, _: impl FnMut(u32) -> bool) -> Option<u32> {
        None
    }

    #[inline]
    fn leave(&mut self, page: u32) {
        if let Some(is_in) = self.is_in.get_mut(page as usize) {
            *is_in = false;
        }
    }
}
