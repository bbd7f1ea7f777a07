//! Tensors of a file.

use super::GgufError;
use crate::SharedBytes;
use memra_kernels::DType;

/// Most dimensions a tensor has.
pub(super) const MAX_DIMS: usize = 4;

/// A tensor: name, shape, storage type and data. Cloning shares the data.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub(super) name: String,
    pub(super) dims: Vec<usize>,
    pub(super) dtype: DType,
    pub(super) data: SharedBytes,
}

impl Tensor {
    /// Name, such as `blk.0.attn_q.weight`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Dimensions, fastest first: a weight matrix is `[in features (k), out features (n)]`. Empty for a scalar.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Storage type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of values: the product of the dimensions.
    pub fn n_values(&self) -> usize {
        self.dims.iter().product()
    }

    /// The stored blocks, row after row.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The same bytes as a handle that keeps the file's mapping alive.
    pub fn shared_data(&self) -> SharedBytes {
        self.data.clone()
    }
}

/// Bytes of a tensor. `dims` has at most [`MAX_DIMS`] entries.
pub(super) fn byte_size(name: &str, dims: &[usize], dtype: DType) -> Result<usize, GgufError> {
    let too_big = || GgufError::Size { tensor: name.to_owned(), dims: dims.to_vec(), dtype };
    let k = dims.first().copied().unwrap_or(1);
    if !k.is_multiple_of(dtype.block_len()) {
        let source = memra_kernels::RowError { dtype, k };
        return Err(GgufError::Row { tensor: name.to_owned(), source });
    }
    let row = dtype.row_bytes(k).map_err(|_| too_big())?;
    // The number of values must fit too, whatever the order in which a reader multiplies: so zeros are left out.
    let checked =
        |first: usize, rest: &[usize]| rest.iter().try_fold(first, |acc, &d| acc.checked_mul(d.max(1)));
    checked(1, dims).ok_or_else(too_big)?;
    let rows: &[usize] = dims.get(1..).unwrap_or_default();
    let bytes = checked(row, rows).ok_or_else(too_big)?;
    Ok(if rows.contains(&0) { 0 } else { bytes })
}
