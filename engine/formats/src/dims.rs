//! Dimensions of a tensor, and how they are kept small.

use std::{fmt, ops::Deref};

/// Most dimensions of any tensor; GGUF allows 4, and no known model has more than 5.
pub(crate) const MAX_DIMS: usize = 8;

/// The dimensions of a tensor: at most eight numbers, used as a slice.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Dims {
    sizes: [usize; MAX_DIMS],
    len: usize,
}

impl Dims {
    /// These dimensions, or `None` when there are too many.
    pub(crate) fn new(sizes: &[usize]) -> Option<Dims> {
        sizes.iter().try_fold(Dims::default(), |dims, &size| dims.with(size))
    }

    /// These dimensions and one more.
    pub(crate) fn with(mut self, size: usize) -> Option<Dims> {
        *self.sizes.get_mut(self.len)? = size;
        self.len += 1;
        Some(self)
    }

    /// The same dimensions in the other order.
    pub(crate) fn reversed(mut self) -> Dims {
        self.sizes[..self.len].reverse();
        self
    }

    /// Product of the dimensions, or `None` when it overflows. Zeros are left out of the overflow check, so that any
    /// order of multiplying is safe.
    pub(crate) fn product(&self) -> Option<usize> {
        let product = self.iter().try_fold(1_usize, |product, &size| product.checked_mul(size.max(1)))?;
        Some(if self.contains(&0) { 0 } else { product })
    }

    /// Bytes that [`Dims::pack`] appends.
    pub(crate) fn packed_len(&self) -> usize {
        self.iter().map(|&size| (usize::BITS - (size | 1).leading_zeros()).div_ceil(7) as usize).sum()
    }

    /// Appends the dimensions, seven bits a byte, so that they take no more room than in a file.
    pub(crate) fn pack(&self, out: &mut Vec<u8>) {
        for &size in self.iter() {
            let mut left = size;
            while left >= 0x80 {
                out.push(left as u8 | 0x80);
                left >>= 7;
            }
            out.push(left as u8);
        }
    }

    /// The dimensions that [`Dims::pack`] wrote as `bytes`.
    pub(crate) fn unpack(bytes: &[u8]) -> Dims {
        let mut dims = Dims::default();
        let (mut size, mut shift) = (0, 0);
        for &byte in bytes {
            size |= usize::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                dims = dims.with(size).unwrap_or(dims);
                (size, shift) = (0, 0);
            }
        }
        dims
    }
}

impl Deref for Dims {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.sizes[..self.len]
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl serde::Serialize for Dims {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_round_trips() {
        let sizes = [0, 1, 127, 128, 16_383, 16_384, 1 << 62, usize::MAX];
        for len in 0..=sizes.len() {
            let dims = Dims::new(&sizes[..len]).unwrap();
            let mut packed = Vec::new();
            dims.pack(&mut packed);
            assert_eq!(packed.len(), dims.packed_len());
            assert_eq!(*Dims::unpack(&packed), sizes[..len]);
        }
        assert_eq!(Dims::new(&[1; 9]), None);
        assert_eq!(*Dims::new(&[1, 2, 3]).unwrap().reversed(), [3, 2, 1]);
    }

    #[test]
    fn products_do_not_wrap() {
        let product = |sizes: &[usize]| Dims::new(sizes).unwrap().product();
        assert_eq!((product(&[]), product(&[3, 5]), product(&[3, 0])), (Some(1), Some(15), Some(0)));
        assert_eq!((product(&[1 << 32, 1 << 32]), product(&[0, 1 << 63, 2])), (None, None));
    }
}
