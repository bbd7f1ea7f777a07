//! Weights of a matrix product: as stored in the file, or repacked for SIMD.

use super::PackedMatrix;
use crate::error::{ShapeError, same};
use crate::quant::{self, Codes, GROUP, QuantError};
use crate::{DType, RowError};

/// A weight matrix as the file stores it: `n` rows of `k` values, each row whole blocks, rows back to back.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    dtype: DType,
    n: usize,
    k: usize,
    row_bytes: usize,
    data: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// A view of `data` as `n` rows of `k` values.
    ///
    /// # Errors
    /// When a row does not fill whole blocks, or `data` is not exactly `n` rows long.
    pub fn new(dtype: DType, n: usize, k: usize, data: &'a [u8]) -> Result<Self, QuantError> {
        let row_bytes = dtype.row_bytes(k)?;
        let err = RowError { dtype, k };
        let want = row_bytes.checked_mul(n).ok_or(err)?;
        if data.len() != want {
            return Err(QuantError::Length { dtype, values: n.saturating_mul(k), want, got: data.len() });
        }
        Ok(Matrix { dtype, n, k, row_bytes, data })
    }

    /// Storage type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Rows (output features).
    pub fn n(&self) -> usize {
        self.n
    }

    /// Values a row (input features).
    pub fn k(&self) -> usize {
        self.k
    }

    /// The stored bytes.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The stored bytes of row `row`, which must be below `n`.
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        &self.data[row * self.row_bytes..][..self.row_bytes]
    }

    /// Decodes row `row` into `out` (`k` values).
    ///
    /// # Errors
    /// When there is no such row or `out` is not `k` long.
    pub fn row_decode(&self, row: usize, out: &mut [f32]) -> Result<(), ShapeError> {
        check_row(row, self.n, self.k, out)?;
        // The lengths were checked at construction and above.
        let _ = quant::decode(self.dtype, self.row(row), out);
        Ok(())
    }

    /// Values `32 * group ..` of row `row`; none of a float type.
    pub(super) fn codes(&self, row: usize, group: usize) -> Option<Codes> {
        let parts = self.dtype.block_len() / GROUP;
        let block = &self.row(row)[group.checked_div(parts)? * self.dtype.block_bytes()..];
        Some(quant::codes(self.dtype, block, group % parts))
    }
}

/// `Ok` when `row` exists and `out` holds one row.
pub(super) fn check_row(row: usize, n: usize, k: usize, out: &[f32]) -> Result<(), ShapeError> {
    if row >= n {
        return Err(ShapeError { op: "row_decode", what: "rows of the matrix", want: row + 1, got: n });
    }
    same("row_decode", "values of the output", k, out.len())
}

/// Weights in either layout. Both give the same bits.
#[derive(Clone, Copy, Debug)]
pub enum Weights<'a> {
    /// As the file stores them.
    File(Matrix<'a>),
    /// Repacked for SIMD.
    Packed(&'a PackedMatrix),
}

impl Weights<'_> {
    /// Storage type.
    pub fn dtype(&self) -> DType {
        match self {
            Weights::File(w) => w.dtype(),
            Weights::Packed(w) => w.dtype(),
        }
    }

    /// Rows (output features).
    pub fn n(&self) -> usize {
        match self {
            Weights::File(w) => w.n(),
            Weights::Packed(w) => w.n(),
        }
    }

    /// Values a row (input features).
    pub fn k(&self) -> usize {
        match self {
            Weights::File(w) => w.k(),
            Weights::Packed(w) => w.k(),
        }
    }

    /// Decodes row `row` into `out` (`k` values).
    ///
    /// # Errors
    /// When there is no such row or `out` is not `k` long.
    pub fn row_decode(&self, row: usize, out: &mut [f32]) -> Result<(), ShapeError> {
        match self {
            Weights::File(w) => w.row_decode(row, out),
            Weights::Packed(w) => w.row_decode(row, out),
        }
    }
}

impl Weights<'_> {
    /// Values `32 * group ..` of row `row`; none of a float type.
    pub(super) fn codes(&self, row: usize, group: usize) -> Option<Codes> {
        match self {
            Weights::File(w) => w.codes(row, group),
            Weights::Packed(w) => w.codes(row, group),
        }
    }
}
