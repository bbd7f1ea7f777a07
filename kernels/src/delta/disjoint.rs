//! One slice, written by several threads in parts that do not overlap.

#![allow(unsafe_code, reason = "threads write disjoint parts of one slice through a pointer")]

use std::marker::PhantomData;

/// A borrowed slice that may be cut into parts from several threads.
#[derive(Clone, Copy)]
pub(super) struct Disjoint<'a> {
    base: *mut f32,
    len: usize,
    slice: PhantomData<&'a mut [f32]>,
}

// SAFETY: the pointer is only followed by `part` and `read`, whose callers keep concurrent parts apart.
unsafe impl Sync for Disjoint<'_> {}

impl<'a> Disjoint<'a> {
    pub(super) fn new(slice: &'a mut [f32]) -> Self {
        Disjoint { base: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// Values `start .. start + len`, which must lie within the slice.
    ///
    /// # Safety
    /// While the part lives, no other part or read, on any thread, has a value of it.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "parts of one slice, kept apart by the caller")]
    pub(super) unsafe fn part(&self, start: usize, len: usize) -> &'a mut [f32] {
        assert!(start <= self.len && len <= self.len - start, "a part beyond its slice");
        // SAFETY: within the borrowed slice, by the line above; unique, by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(start), len) }
    }

    /// As [`Disjoint::part`], to read.
    ///
    /// # Safety
    /// While the part lives, no [`Disjoint::part`], on any thread, has a value of it.
    #[inline(always)]
    pub(super) unsafe fn read(&self, start: usize, len: usize) -> &'a [f32] {
        assert!(start <= self.len && len <= self.len - start, "a part beyond its slice");
        // SAFETY: within the borrowed slice, by the line above; not written, by this function's contract.
        unsafe { std::slice::from_raw_parts(self.base.add(start), len) }
    }
}
