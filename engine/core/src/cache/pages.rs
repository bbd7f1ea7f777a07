//! Which pages are free, and how many sequences share each of the others.

use crate::Error;

/// A page of every layer's cache, by index.
pub(super) type PageId = u32;

/// Reference counts of a fixed number of pages.
#[derive(Debug)]
pub(crate) struct PagePool {
    refs: Vec<u32>,
    free: Vec<PageId>,
}

impl PagePool {
    pub(crate) fn new(pages: usize) -> Self {
        // Popped from the end, so pages are first handed out in order.
        PagePool { refs: vec![0; pages], free: (0..pages as PageId).rev().collect() }
    }

    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// The error of having no page left.
    pub(crate) fn full(&self) -> Error {
        Error::CacheFull { pages: self.refs.len() }
    }

    /// A page of its own for one sequence.
    pub(crate) fn take(&mut self) -> Result<PageId, Error> {
        let page = self.free.pop().ok_or(Error::CacheFull { pages: self.refs.len() })?;
        self.refs[page as usize] = 1;
        Ok(page)
    }

    pub(crate) fn share(&mut self, page: PageId) {
        self.refs[page as usize] += 1;
    }

    pub(crate) fn is_shared(&self, page: PageId) -> bool {
        self.refs[page as usize] > 1
    }

    pub(crate) fn release(&mut self, page: PageId) {
        let refs = &mut self.refs[page as usize];
        *refs -= 1;
        if *refs == 0 {
            self.free.push(page);
        }
    }
}
