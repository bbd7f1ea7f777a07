//! Storage of one layer's keys or values in pages of 64 positions.

use super::AttentionShape;
use crate::DType;
use crate::error::{ShapeError, at_least, same};
use half::f16;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfBitsVecExt;

/// Positions a page.
pub const PAGE: usize = 64;

/// Which of the two a store holds; they differ in layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `[page][n_kv_heads][head_dim][64]`: positions are innermost, so that SIMD lanes are keys.
    Keys,
    /// `[page][n_kv_heads][64][head_dim]`: values are innermost, so that SIMD lanes are output values.
    Values,
}

/// The pages of all sequences of one layer, keys or values, as f16 or f32.
#[derive(Clone, Debug)]
pub enum KvStore {
    /// f32 storage.
    F32(Vec<f32>),
    /// f16 storage, rounded to nearest even.
    F16(Vec<f16>),
}

impl KvStore {
    /// `pages` zeroed pages.
    ///
    /// # Errors
    /// When `dtype` is neither F16 nor F32, or the size does not fit in memory's addresses.
    pub fn new(dtype: DType, shape: &AttentionShape, pages: usize) -> Result<KvStore, String> {
        let too_large = || format!("a KV cache of {pages} pages of {} values is too large", page_len(shape));
        let len = pages.checked_mul(page_len(shape)).filter(|len| *len <= isize::MAX as usize / 4);
        let len = len.ok_or_else(too_large)?;
        match dtype {
            DType::F32 => Ok(KvStore::F32(vec![0.0; len])),
            // As integers, zeroed memory comes from the system and is not touched before it is used.
            DType::F16 => Ok(KvStore::F16(vec![0u16; len].reinterpret_into())),
            other => Err(format!("a KV cache of type {other} is not supported; use f16 or f32")),
        }
    }

    /// Storage type.
    pub fn dtype(&self) -> DType {
        match self {
            KvStore::F32(_) => DType::F32,
            KvStore::F16(_) => DType::F16,
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.len() * self.dtype().block_bytes()
    }

    fn len(&self) -> usize {
        match self {
            KvStore::F32(v) => v.len(),
            KvStore::F16(v) => v.len(),
        }
    }

    /// Writes one position's row, `[n_kv_heads][head_dim]`, to slot `position % 64` of page `pages[position / 64]`.
    ///
    /// # Errors
    /// When the position lies beyond `pages`, a page beyond the store, or the row is of another size.
    pub fn write(
        &mut self,
        side: Side,
        shape: &AttentionShape,
        pages: &[u32],
        position: usize,
        row: &[f32],
    ) -> Result<(), ShapeError> {
        same("kv write", "values of a row", shape.n_kv_heads * shape.head_dim, row.len())?;
        at_least("kv write", "positions in the cache", position + 1, pages.len() * PAGE)?;
        let page = pages[position / PAGE] as usize;
        at_least("kv write", "pages in the store", page + 1, self.pages(shape))?;
        let (base, slot) = (page * page_len(shape), position % PAGE);
        match self {
            KvStore::F32(v) => {
                scatter(side, shape.head_dim, slot, &mut v[base..], row, <[f32]>::copy_from_slice)
            }
            KvStore::F16(v) => {
                scatter(side, shape.head_dim, slot, &mut v[base..], row, <[f16]>::convert_from_f32_slice)
            }
        }
        Ok(())
    }

    /// Pages held.
    pub(super) fn pages(&self, shape: &AttentionShape) -> usize {
        self.len() / page_len(shape).max(1)
    }
}

/// Values a page.
pub(super) fn page_len(shape: &AttentionShape) -> usize {
    shape.n_kv_heads.saturating_mul(PAGE).saturating_mul(shape.head_dim)
}

/// Writes a row to slot `slot` of the page at the start of `page`.
fn scatter<E: Copy + Default>(
    side: Side,
    dim: usize,
    slot: usize,
    page: &mut [E],
    row: &[f32],
    convert: impl Fn(&mut [E], &[f32]),
) {
    for (head, values) in row.chunks_exact(dim.max(1)).enumerate() {
        let page = &mut page[head * PAGE * dim..][..PAGE * dim];
        if side == Side::Values {
            convert(&mut page[slot * dim..][..dim], values);
            continue;
        }
        // A conversion of many values at once costs far less than as many conversions.
        let mut converted = [E::default(); 64];
        for (values, columns) in values.chunks(64).zip(page.chunks_mut(64 * PAGE)) {
            convert(&mut converted[..values.len()], values);
            for (value, column) in converted.iter().zip(columns.chunks_exact_mut(PAGE)) {
                column[slot] = *value;
            }
        }
    }
}
