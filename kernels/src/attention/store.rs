//! Storage of one layer's keys or values in pages of 64 positions.

use super::AttentionShape;
use crate::DType;
use crate::error::{ShapeError, at_least, same};
use half::f16;

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
    /// When `dtype` is neither F16 nor F32.
    pub fn new(dtype: DType, shape: &AttentionShape, pages: usize) -> Result<KvStore, String> {
        let len = pages * page_len(shape);
        match dtype {
            DType::F32 => Ok(KvStore::F32(vec![0.0; len])),
            DType::F16 => Ok(KvStore::F16(vec![f16::ZERO; len])),
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
        at_least("kv write", "pages in the store", page + 1, self.len() / page_len(shape).max(1))?;
        for (head, values) in row.chunks_exact(shape.head_dim.max(1)).enumerate() {
            for (d, value) in values.iter().enumerate() {
                let at = self.index(side, shape, page, head, position % PAGE, d);
                match self {
                    KvStore::F32(v) => v[at] = *value,
                    KvStore::F16(v) => v[at] = f16::from_f32(*value),
                }
            }
        }
        Ok(())
    }

    /// `Ok` when the store holds every page of `pages`.
    pub(super) fn check(&self, side: Side, shape: &AttentionShape, pages: &[u32]) -> Result<(), ShapeError> {
        let want = pages.iter().max().map_or(0, |p| *p as usize + 1);
        let what = match side {
            Side::Keys => "pages in the key store",
            Side::Values => "pages in the value store",
        };
        at_least("attention", what, want, self.len() / page_len(shape).max(1))
    }

    /// Where value `d` of a head at a slot of a page lies.
    pub(super) fn index(
        &self,
        side: Side,
        shape: &AttentionShape,
        page: usize,
        head: usize,
        slot: usize,
        d: usize,
    ) -> usize {
        let base = page * page_len(shape) + head * PAGE * shape.head_dim;
        match side {
            Side::Keys => base + d * PAGE + slot,
            Side::Values => base + slot * shape.head_dim + d,
        }
    }

    pub(super) fn get(&self, at: usize) -> f32 {
        match self {
            KvStore::F32(v) => v[at],
            KvStore::F16(v) => v[at].to_f32(),
        }
    }
}

fn page_len(shape: &AttentionShape) -> usize {
    shape.n_kv_heads * PAGE * shape.head_dim
}
