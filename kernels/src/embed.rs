//! Embedding look-up: rows of a table by token id.

use crate::error::{ShapeError, same};
use crate::matmul::Matrix;

/// Decodes row `tokens[t]` of `table` to `out[t]`; `out` is `[tokens.len()][k]`.
///
/// # Errors
/// When a token id is not below the table's rows or `out` is of another size.
pub fn rows(table: &Matrix<'_>, tokens: &[u32], out: &mut [f32]) -> Result<(), ShapeError> {
    same("embed", "number of outputs", tokens.len() * table.k(), out.len())?;
    for (token, out) in tokens.iter().zip(out.chunks_exact_mut(table.k().max(1))) {
        table.row_decode(*token as usize, out)?;
    }
    Ok(())
}
