//! Bytes aligned to a cache line.

#![allow(unsafe_code, reason = "a vector of 64-byte lines is viewed as bytes")]

/// 64 bytes on a cache line of their own.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Owned bytes whose first lies on a 64-byte boundary; the length is a multiple of 64.
#[derive(Clone)]
pub(crate) struct AlignedBytes(Vec<Line>);

impl AlignedBytes {
    /// At least `len` zero bytes.
    pub(crate) fn zeroed(len: usize) -> Self {
        AlignedBytes(vec![Line([0; 64]); len.div_ceil(64)])
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `Line` is `repr(C)` around `[u8; 64]` with the same size, so the vector is that many plain bytes.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 64) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * 64) }
    }
}
