//! Activations of a matrix product: f32 rows, or rows quantised to 8-bit blocks of 32.

use super::kernel::XRows;
use crate::cpu::Pool;
use crate::error::{ShapeError, at_least};
use crate::quant::GROUP;

/// Scale and sums of one block of 32 activations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct BlockMeta {
    /// `max |x| / 127`; zero when that is too small to divide by, NaN when a value is NaN or infinite.
    pub scale: f32,
    /// Sum of the 32 codes, exact.
    pub sum: f32,
    /// Sums of the codes of each half of 16, exact.
    pub halves: [f32; 2],
}

/// Rows of activations as i8 codes with an f32 scale a block of 32: `x ≈ scale * q`.
///
/// Codes are `x * (127 / max |x|)` rounded to nearest, halves to even, so they lie in -127..=127. A row whose length
/// is no multiple of 32 ends in a block filled up with zeros. Rows do not depend on each other. Memory is taken once;
/// a step reuses it.
#[derive(Clone, Debug)]
pub struct Q8Rows {
    codes: Vec<i8>,
    meta: Vec<BlockMeta>,
    rows: usize,
    k: usize,
}

impl Q8Rows {
    /// Room for `rows` rows of `k` values.
    pub fn with_capacity(rows: usize, k: usize) -> Q8Rows {
        let blocks = rows * k.div_ceil(GROUP);
        Q8Rows { codes: vec![0; blocks * GROUP], meta: vec![BlockMeta::default(); blocks], rows: 0, k: 0 }
    }

    /// Replaces the contents by `x`, `rows` rows of `x.len() / rows` values.
    ///
    /// # Errors
    /// When `x` is not `rows` equal rows, or does not fit in the capacity. The contents are then unchanged.
    pub fn quantise(&mut self, pool: &Pool, x: &[f32], rows: usize) -> Result<(), ShapeError> {
        const OP: &str = "quantise";
        let k = x.len().checked_div(rows).unwrap_or(0);
        if rows * k != x.len() {
            return Err(ShapeError { op: OP, what: "number of activations", want: rows * k, got: x.len() });
        }
        let blocks = k.div_ceil(GROUP);
        at_least(OP, "capacity in blocks", rows * blocks, self.meta.len())?;
        (self.rows, self.k) = (rows, k);
        if k == 0 {
            return Ok(());
        }
        let _ = pool;
        for (row, x) in x.chunks_exact(k).enumerate() {
            let codes = &mut self.codes[row * blocks * GROUP..][..blocks * GROUP];
            let meta = &mut self.meta[row * blocks..][..blocks];
            quantise_row(x, codes, meta);
        }
        Ok(())
    }

    /// Rows held.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Values a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Codes of row `row`, filled up to whole blocks.
    pub fn codes(&self, row: usize) -> &[i8] {
        let stride = self.k.div_ceil(GROUP) * GROUP;
        &self.codes[row * stride..][..stride]
    }

    /// Scales and sums of row `row`, one a block.
    pub fn meta(&self, row: usize) -> &[BlockMeta] {
        let blocks = self.k.div_ceil(GROUP);
        &self.meta[row * blocks..][..blocks]
    }
}

impl Q8Rows {
    /// Where the rows lie, for the microkernels.
    pub(super) fn pointers(&self) -> XRows {
        let blocks = self.k.div_ceil(GROUP);
        XRows::Q8 { codes: self.codes.as_ptr(), meta: self.meta.as_ptr(), blocks }
    }
}

fn quantise_row(x: &[f32], codes: &mut [i8], meta: &mut [BlockMeta]) {
    for ((x, codes), meta) in x.chunks(GROUP).zip(codes.chunks_exact_mut(GROUP)).zip(meta) {
        let mut block = [0f32; GROUP];
        block[..x.len()].copy_from_slice(x);
        *meta = quantise_block(&block, codes);
    }
}

fn quantise_block(x: &[f32; GROUP], codes: &mut [i8]) -> BlockMeta {
    // As integers, magnitudes order like the values, with infinity and NaN on top.
    let largest = f32::from_bits(x.iter().map(|v| v.to_bits() & 0x7fff_ffff).fold(0, u32::max));
    let inverse = 127.0 / largest;
    if !inverse.is_finite() || !largest.is_finite() {
        codes.fill(0);
        let scale = if largest.is_finite() { 0.0 } else { f32::NAN };
        return BlockMeta { scale, ..BlockMeta::default() };
    }
    let mut halves = [0i32; 2];
    for (i, (code, v)) in codes.iter_mut().zip(x).enumerate() {
        let q = (v * inverse).round_ties_even() as i32;
        *code = q as i8;
        halves[i / 16] += q;
    }
    let halves = halves.map(|sum| sum as f32);
    BlockMeta { scale: largest / 127.0, sum: halves[0] + halves[1], halves }
}

/// Activations of a product, row-major.
#[derive(Clone, Copy, Debug)]
pub enum Activations<'a> {
    /// Class `f32`: `rows` rows of `x.len() / rows` values.
    F32 {
        /// The values.
        x: &'a [f32],
        /// How many rows they make.
        rows: usize,
    },
    /// Class `q8`.
    Q8(&'a Q8Rows),
}

impl Activations<'_> {
    /// Rows (tokens).
    pub fn rows(&self) -> usize {
        match self {
            Activations::F32 { rows, .. } => *rows,
            Activations::Q8(q) => q.rows(),
        }
    }
}
