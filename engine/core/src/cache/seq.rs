//! One sequence's view of the cache: its pages, in order, and how many positions they hold.

use super::PAGE;
use super::pages::{PageId, PagePool};
use crate::Error;

/// A sequence: a table of pages and a length in positions. Pages may be shared with forks of it; a shared page is
/// copied before the first of its sharers appends to it.
#[derive(Debug, Default)]
pub(crate) struct SeqState {
    pages: Vec<PageId>,
    len: usize,
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
        mut copy: impl FnMut(PageId, PageId),
    ) -> Result<(), Error> {
        if more == 0 {
            return Ok(());
        }
        let have = self.pages.len();
        let want = (self.len + more).div_ceil(PAGE);
        let split = self.pages.last().copied().filter(|&page| self.len < have * PAGE && pool.is_shared(page));
        if pool.free() < want.saturating_sub(have) + usize::from(split.is_some()) {
            return Err(pool.full());
        }
        if let (Some(shared), Some(last)) = (split, self.pages.last_mut()) {
            *last = pool.take()?;
            copy(shared, *last);
            pool.release(shared);
        }
        for _ in have..want {
            self.pages.push(pool.take()?);
        }
        Ok(())
    }

    /// Counts `more` positions as held, for which room was made.
    pub(crate) fn advance(&mut self, more: usize) {
        self.len += more;
        debug_assert!(self.len <= self.pages.len() * PAGE);
    }

    /// Forgets every position from `len` on.
    pub(crate) fn truncate(&mut self, pool: &mut PagePool, len: usize) {
        self.len = self.len.min(len);
        for page in self.pages.drain(self.len.div_ceil(PAGE)..) {
            pool.release(page);
        }
    }

    /// A second sequence with the same past, sharing its pages.
    pub(crate) fn fork(&self, pool: &mut PagePool) -> SeqState {
        self.pages.iter().for_each(|&page| pool.share(page));
        SeqState { pages: self.pages.clone(), len: self.len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        seq.truncate(&mut pool, 64);
        assert_eq!((seq.len(), seq.pages(), pool.free()), (64, &[0][..], 2));
        seq.truncate(&mut pool, 0);
        assert_eq!(pool.free(), 3);
    }

    #[test]
    fn a_fork_shares_full_pages_and_copies_the_open_one_on_append() {
        let mut pool = PagePool::new(4);
        let mut one = SeqState::default();
        grow(&mut one, &mut pool, 70);
        let mut two = one.fork(&mut pool);
        assert_eq!(pool.free(), 2);
        assert_eq!(grow(&mut two, &mut pool, 1), [(1, 2)]);
        // Nobody shares page 1 any more.
        assert!(grow(&mut one, &mut pool, 1).is_empty());
        assert_eq!((one.pages(), two.pages()), (&[0, 1][..], &[0, 2][..]));
        one.truncate(&mut pool, 0);
        assert_eq!(pool.free(), 2);
        two.truncate(&mut pool, 0);
        assert_eq!(pool.free(), 4);
    }

    #[test]
    fn a_fork_at_a_page_boundary_copies_nothing() {
        let mut pool = PagePool::new(3);
        let mut one = SeqState::default();
        grow(&mut one, &mut pool, 64);
        let mut two = one.fork(&mut pool);
        assert!(grow(&mut two, &mut pool, 1).is_empty());
        assert_eq!(two.pages(), [0, 1]);
    }
}
