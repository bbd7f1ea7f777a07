//! One sequence's view of the cache: its pages, in order, and how many positions they hold.

use super::PAGE;
use super::pages::{PageId, PagePool};
use super::recurrent::{RecurrentCache, Track};
use crate::Error;

/// A sequence: a table of pages and a length in positions. Pages may be shared with forks of it; a shared page is
/// copied before the first of its sharers appends to it.
#[derive(Debug, Default)]
pub(crate) struct SeqState {
    pages: Vec<PageId>,
    len: usize,
    /// Positions that a head that predicts further tokens holds; beyond `len` they are drafts.
    head_len: usize,
    /// Recurrent states.
    pub(super) track: Track,
}

impl SeqState {
    /// Positions held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Pages in order of position.
    pub(crate) fn pages(&self) -> &[PageId] {
        &self.pages
    }

    /// Makes room for `more` positions, calling `copy(from, to)` for a page that must no longer be shared.
    /// On an error the sequence is as it was.
    pub(crate) fn reserve(
        &mut self,
        pool: &mut PagePool,
        more: usize,
        copy: impl FnMut(PageId, PageId),
    ) -> Result<(), Error> {
        self.reserve_from(pool, self.len, more, copy)
    }

    /// [`SeqState::reserve`] for a head that predicts further tokens.
    pub(crate) fn reserve_head(
        &mut self,
        pool: &mut PagePool,
        more: usize,
        copy: impl FnMut(PageId, PageId),
    ) -> Result<(), Error> {
        self.reserve_from(pool, self.head_len, more, copy)
    }

    fn reserve_from(
        &mut self,
        pool: &mut PagePool,
        from: usize,
        more: usize,
        mut copy: impl FnMut(PageId, PageId),
    ) -> Result<(), Error> {
        if more == 0 {
            return Ok(());
        }
        let have = self.pages.len();
        let want = (from + more).div_ceil(PAGE);
        let written = (from / PAGE).min(have)..want.min(have);
        let shared = self.pages[written.clone()].iter().filter(|&&page| pool.is_shared(page)).count();
        if pool.free() < want.saturating_sub(have) + shared {
            return Err(pool.full());
        }
        for page in &mut self.pages[written] {
            if pool.is_shared(*page) {
                let own = pool.take()?;
                copy(*page, own);
                pool.release(*page);
                *page = own;
            }
        }
        for _ in have..want {
            self.pages.push(pool.take()?);
        }
        Ok(())
    }

    /// Positions that a head holds.
    pub(crate) fn head_len(&self) -> usize {
        self.head_len
    }

    /// Counts `more` positions of a head as held, for which room was made.
    pub(crate) fn advance_head(&mut self, more: usize) {
        self.head_len += more;
        debug_assert!(self.head_len <= self.pages.len() * PAGE);
    }

    /// Counts `more` positions as held, for which room was made. A head's drafts end here.
    pub(crate) fn advance(&mut self, more: usize) {
        if more > 0 {
            self.head_len = self.head_len.min(self.len);
        }
        self.len += more;
        debug_assert!(self.len <= self.pages.len() * PAGE);
    }

    /// Forgets every position from `len` on.
    ///
    /// # Errors
    /// There is recurrent state, and none was kept of that length. Nothing has changed.
    pub(crate) fn truncate(
        &mut self,
        pool: &mut PagePool,
        recurrent: &mut RecurrentCache,
        len: usize,
    ) -> Result<(), Error> {
        if len < self.len {
            self.track.truncate(recurrent, len)?;
            self.len = len;
        }
        self.track.abandon(recurrent);
        self.head_len = self.head_len.min(self.len);
        for page in self.pages.drain(self.len.div_ceil(PAGE)..) {
            pool.release(page);
        }
        Ok(())
    }

    /// A second sequence with the same past, sharing its pages and its recurrent state.
    pub(crate) fn fork(&self, pool: &mut PagePool, recurrent: &mut RecurrentCache) -> SeqState {
        self.pages.iter().for_each(|&page| pool.share(page));
        SeqState {
            pages: self.pages.clone(),
            len: self.len,
            head_len: self.head_len,
            track: self.track.fork(recurrent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recurrent states of a model that has none.
    fn none() -> RecurrentCache {
        RecurrentCache::new(0)
    }

    fn grow(seq: &mut SeqState, pool: &mut PagePool, more: usize) -> Vec<(PageId, PageId)> {
        let mut copies = Vec::new();
        seq.reserve(pool, more, |from, to| copies.push((from, to))).unwrap();
        seq.advance(more);
        copies
    }

    #[test]
    fn pages_come_when_needed_and_go_when_truncated() {
        let mut pool = PagePool::new(3);
        let mut seq = SeqState::default();
        assert!(grow(&mut seq, &mut pool, 64).is_empty());
        assert_eq!(seq.pages(), [0]);
        grow(&mut seq, &mut pool, 1);
        assert_eq!(seq.pages(), [0, 1]);
        assert!(seq.reserve(&mut pool, 128, |_, _| ()).is_err());
        assert_eq!((seq.len(), seq.pages()), (65, &[0, 1][..]));
        seq.truncate(&mut pool, &mut none(), 64).unwrap();
        assert_eq!((seq.len(), seq.pages(), pool.free()), (64, &[0][..], 2));
        seq.truncate(&mut pool, &mut none(), 0).unwrap();
        assert_eq!(pool.free(), 3);
    }

    #[test]
    fn a_fork_shares_full_pages_and_copies_the_open_one_on_append() {
        let mut pool = PagePool::new(4);
        let mut one = SeqState::default();
        grow(&mut one, &mut pool, 70);
        let mut two = one.fork(&mut pool, &mut none());
        assert_eq!(pool.free(), 2);
        assert_eq!(grow(&mut two, &mut pool, 1), [(1, 2)]);
        // Nobody shares page 1 any more.
        assert!(grow(&mut one, &mut pool, 1).is_empty());
        assert_eq!((one.pages(), two.pages()), (&[0, 1][..], &[0, 2][..]));
        one.truncate(&mut pool, &mut none(), 0).unwrap();
        assert_eq!(pool.free(), 2);
        two.truncate(&mut pool, &mut none(), 0).unwrap();
        assert_eq!(pool.free(), 4);
    }

    #[test]
    fn a_fork_at_a_page_boundary_copies_nothing() {
        let mut pool = PagePool::new(3);
        let mut one = SeqState::default();
        grow(&mut one, &mut pool, 64);
        let mut two = one.fork(&mut pool, &mut none());
        assert!(grow(&mut two, &mut pool, 1).is_empty());
        assert_eq!(two.pages(), [0, 1]);
    }

    #[test]
    fn a_head_writes_to_pages_of_its_own_too() {
        let mut pool = PagePool::new(4);
        let mut one = SeqState::default();
        grow(&mut one, &mut pool, 70);
        let mut two = one.fork(&mut pool, &mut none());
        let mut copies = Vec::new();
        two.reserve_head(&mut pool, 69, |from, to| copies.push((from, to))).unwrap();
        two.advance_head(69);
        assert_eq!((copies, two.pages()), (vec![(0, 2), (1, 3)], &[2, 3][..]));
        assert!(two.reserve_head(&mut pool, 60, |_, _| ()).is_err());
        // Drafts beyond the end are gone as soon as the sequence goes on.
        two.advance_head(4);
        assert!(grow(&mut two, &mut pool, 1).is_empty());
        assert_eq!((two.len(), two.head_len()), (71, 70));
        two.truncate(&mut pool, &mut none(), 30).unwrap();
        assert_eq!((two.head_len(), pool.free()), (30, 1));
    }
}
