//! Matrix product: quantised or float weights times activation rows, `out[t][o] = Σ_k w[o][k] * x[t][k]`.
//!
//! # Order of operations
//! Every version (scalar reference, portable, AVX2, AVX-512), layout, tiling, thread count and number of rows gives the
//! same bits, because all follow one order. Let `g` run over groups of 32 columns in increasing order, `acc` start at
//! zero, and every operation round once, to f32 unless told:
//!
//! - class `q8`, block formats: `isum = Σ q_w * q_x`, exact in integers;
//!   - without minimums: `acc = fma(d_x, d_w * isum, acc)`
//!   - with minimums (Q4_1, Q5_1, Q2_K, Q4_K, Q5_K): `acc = fma(d_x, fma(d_w, isum, m_w * xsum), acc)` with
//!     `xsum = Σ q_x`
//!   - where scales cover 16 columns (Q2_K, Q3_K, Q6_K, IQ2_S, IQ2_XS, NVFP4): so for each half of 16 columns in turn
//! - class `q8`, float weights: `acc = fma(d_x, s, acc)`, where `s` starts at zero and takes `s = fma(w, q_x, s)` in
//!   increasing k
//! - class `f32`: in f64, where products are exact: `s = s + w * x` in increasing k from zero, rounded to f32 in the end
//!
//! NaN and infinity come through, a NaN with bits of its own. `d_w` and `m_w` are exact in f32 for every format, see
//! [`crate::quant::Codes`].

mod activations;
mod code;
mod config;
mod drive;
mod family;
mod format;
pub(crate) mod grouped;
mod head;
mod kernel;
mod packed;
mod reference;
mod variants;
mod weights;

pub use activations::{Activations, Q8Block, Q8Rows};
pub use config::MatmulConfig;
pub use family::{MatmulFamily, family};
pub use grouped::{ExpertWeights, experts, gather_q8};
pub use packed::{PackedMatrix, TILE};
pub use weights::{Matrix, Weights};

use crate::DType;
use crate::cpu::{Isa, Pool};
use crate::error::{ShapeError, same};
use crate::quant::GROUP;

/// `out[t][o] = Σ_k w[o][k] * x[t][k]`: `out` is `[rows][n]`, row-major.
///
/// # Errors
/// When a size does not fit the others; `out` is then untouched.
pub fn matmul(
    pool: &Pool,
    config: &MatmulConfig,
    w: &Weights<'_>,
    x: &Activations<'_>,
    out: &mut [f32],
) -> Result<(), ShapeError> {
    matmul_with(Isa::detect(), pool, config, w, x, out)
}

/// [`matmul`] with an instruction set of choice (the machine's widest at most).
///
/// # Errors
/// As [`matmul`].
pub fn matmul_with(
    isa: Isa,
    pool: &Pool,
    config: &MatmulConfig,
    w: &Weights<'_>,
    x: &Activations<'_>,
    out: &mut [f32],
) -> Result<(), ShapeError> {
    let (n, k, rows) = (w.n(), w.k(), x.rows());
    match x {
        Activations::F32 { x, .. } => {
            same("matmul", "number of activations", rows.saturating_mul(k), x.len())?
        }
        Activations::Q8(q) => same("matmul", "activations a row", k, q.k())?,
    }
    same("matmul", "number of outputs", rows.saturating_mul(n), out.len())?;
    drive::run(isa, pool, config, w, x, columns(k, w.dtype(), config.planted), out);
    Ok(())
}

/// Columns summed over: all, but for the planted fault, which leaves out the last block.
fn columns(k: usize, dtype: DType, planted: bool) -> usize {
    let block = dtype.block_len().max(GROUP);
    if planted { k.saturating_sub(1) / block * block } else { k }
}

#[cfg(test)]
mod tests;
