//! Activations of a matrix product: f32 rows, or rows quantised to 8-bit blocks of 32.

#![allow(unsafe_code, reason = "vector operations")]

use crate::cpu::simd::{self, Simd};
use crate::cpu::{Isa, Pool};
use crate::error::{ShapeError, at_least, same};
use crate::quant::GROUP;

/// 32 activations of one row: `x[i] ≈ scale * codes[i]`, with the sums that weight minimums and offsets multiply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Q8Block {
    /// `max |x| / 127`; zero when that is too small to divide by, NaN when a value is NaN or infinite.
    pub scale: f32,
    /// Sum of the codes, exact.
    pub sum: f32,
    /// Sums of the codes of each half of 16, exact.
    pub halves: [f32; 2],
    /// `x * (127 / max |x|)` rounded to nearest, halves to even: in -127..=127.
    pub codes: [i8; GROUP],
}

/// Rows of activations in blocks of 32.
///
/// A row whose length is no multiple of 32 ends in a block filled up with zeros. Rows do not depend on each other. Memory
/// is taken once; a step reuses it.
#[derive(Clone, Debug)]
pub struct Q8Rows {
    blocks: Vec<Q8Block>,
    rows: usize,
    k: usize,
}

impl Q8Rows {
    /// Room for `rows` rows of `k` values, or for as many blocks in another shape.
    pub fn with_capacity(rows: usize, k: usize) -> Q8Rows {
        Q8Rows { blocks: vec![Q8Block::default(); rows * k.div_ceil(GROUP)], rows: 0, k: 0 }
    }

    /// Replaces the contents by `x`, `rows` rows of `x.len() / rows` values.
    ///
    /// # Errors
    /// When `x` is not `rows` equal rows, or does not fit in the capacity. The contents are then unchanged.
    pub fn quantise(&mut self, pool: &Pool, x: &[f32], rows: usize) -> Result<(), ShapeError> {
        const OP: &str = "quantise";
        let k = x.len().checked_div(rows).unwrap_or(0);
        same(OP, "number of activations", rows * k, x.len())?;
        let each = k.div_ceil(GROUP);
        at_least(OP, "capacity in blocks", rows * each, self.blocks.len())?;
        (self.rows, self.k) = (rows, k);
        if k == 0 {
            return Ok(());
        }
        let isa = Isa::detect();
        // A part is worth handing to a thread from some ten microseconds of work on.
        let part = PART.div_ceil(k);
        pool.chunks_mut(pool.threads(), &mut self.blocks[..rows * each], part * each, &|index, blocks| {
            let x = &x[index * part * k..];
            for (x, blocks) in x.chunks_exact(k).zip(blocks.chunks_exact_mut(each)) {
                quantise_row(isa, x, blocks);
            }
        });
        Ok(())
    }

    /// Replaces the contents by copies of rows of `from`: row `i` becomes its row `rows[i]`.
    ///
    /// # Errors
    /// When a row is not there, or the rows do not fit in the capacity. The contents are then unchanged.
    pub fn gather(&mut self, from: &Q8Rows, rows: &[u32]) -> Result<(), ShapeError> {
        const OP: &str = "gather";
        let each = from.k.div_ceil(GROUP);
        at_least(OP, "capacity in blocks", rows.len() * each, self.blocks.len())?;
        at_least(OP, "rows", rows.iter().max().map_or(0, |row| *row as usize + 1), from.rows)?;
        (self.rows, self.k) = (rows.len(), from.k);
        for (blocks, row) in self.blocks.chunks_exact_mut(each.max(1)).zip(rows) {
            blocks.copy_from_slice(from.row(*row as usize));
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

    /// The blocks of all rows, row-major.
    pub fn blocks(&self) -> &[Q8Block] {
        &self.blocks[..self.rows * self.k.div_ceil(GROUP)]
    }

    /// The blocks of row `row`, which must be one of those held.
    pub(super) fn row(&self, row: usize) -> &[Q8Block] {
        let each = self.k.div_ceil(GROUP);
        &self.blocks[row * each..][..each]
    }
}

/// Values quantised by one unit of work.
const PART: usize = 32 * 1024;

/// Quantises one row; `blocks` are as many as it fills.
fn quantise_row(isa: Isa, x: &[f32], blocks: &mut [Q8Block]) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
    fn avx512(x: &[f32], blocks: &mut [Q8Block]) {
        // SAFETY: the instruction set is enabled here.
        unsafe { quantise_blocks::<simd::Avx512>(x, blocks) }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn avx2(x: &[f32], blocks: &mut [Q8Block]) {
        // SAFETY: the instruction set is enabled here.
        unsafe { quantise_blocks::<simd::Avx2>(x, blocks) }
    }
    match isa.min(Isa::detect()) {
        // SAFETY: the machine has the instruction set.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(x, blocks) },
        // SAFETY: the machine has the instruction set.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(x, blocks) },
        // SAFETY: any machine runs this one.
        _ => unsafe { quantise_blocks::<simd::Portable>(x, blocks) },
    }
}

/// # Safety
/// The machine has `S`'s instruction set.
#[inline(always)]
unsafe fn quantise_blocks<S: Simd>(x: &[f32], blocks: &mut [Q8Block]) {
    let (full, tail) = x.as_chunks::<GROUP>();
    for (x, block) in full.iter().zip(blocks.iter_mut()) {
        // SAFETY: as this function's.
        unsafe { quantise_block::<S>(x, block) };
    }
    if let (false, Some(block)) = (tail.is_empty(), blocks.last_mut()) {
        let mut x = [0f32; GROUP];
        x[..tail.len()].copy_from_slice(tail);
        // SAFETY: as this function's.
        unsafe { quantise_block::<S>(&x, block) };
    }
}

/// # Safety
/// The machine has `S`'s instruction set.
#[inline(always)]
unsafe fn quantise_block<S: Simd>(x: &[f32; GROUP], block: &mut Q8Block) {
    // SAFETY: the reads are of `x`'s two halves of 16, the writes to those of `codes`; the rest as this function's.
    unsafe {
        let halves = [S::load_f32(x.as_ptr().cast()), S::load_f32(x[16..].as_ptr().cast())];
        let magnitudes = S::max_magnitude(S::max_magnitude(S::zero(), halves[0]), halves[1]);
        let largest = f32::from_bits(S::greatest(magnitudes) as u32);
        let inverse = 127.0 / largest;
        if !inverse.is_finite() || !largest.is_finite() {
            let scale = if largest.is_finite() { 0.0 } else { f32::NAN };
            *block = Q8Block { scale, ..Q8Block::default() };
            return;
        }
        let codes = block.codes.as_mut_ptr();
        let low = S::store_codes(codes, S::mul(halves[0], S::splat(inverse)));
        let high = S::store_codes(codes.add(16), S::mul(halves[1], S::splat(inverse)));
        block.scale = largest / 127.0;
        block.sum = (low + high) as f32;
        block.halves = [low as f32, high as f32];
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{Random, activations};

    #[test]
    fn codes_are_the_nearest_integers_whatever_the_threads_and_rows() {
        let (rows, k) = (70, 1000);
        let x = activations(&mut Random::new(9), rows, k);
        let pools = [Pool::new(1), Pool::new(3)];
        let mut all = Q8Rows::with_capacity(rows, k);
        all.quantise(&pools[1], &x, rows).unwrap();
        for (row, x) in x.chunks_exact(k).enumerate() {
            let mut one = Q8Rows::with_capacity(1, k);
            one.quantise(&pools[0], x, 1).unwrap();
            assert_eq!(one.blocks(), all.row(row));
            for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
                let mut blocks = vec![Q8Block::default(); k.div_ceil(GROUP)];
                quantise_row(isa, x, &mut blocks);
                assert_eq!(blocks, one.blocks(), "{isa}");
            }
            for (x, block) in x.chunks(GROUP).zip(one.blocks()) {
                let largest = x.iter().fold(0f32, |a, v| a.max(v.abs()));
                assert_eq!(block.scale, largest / 127.0);
                let mut padded = [0f32; GROUP];
                padded[..x.len()].copy_from_slice(x);
                let want = padded.map(|v| (v * (127.0 / largest)).round_ties_even() as i8);
                assert_eq!(block.codes, want);
                let sum = |codes: &[i8]| codes.iter().map(|c| f32::from(*c)).sum::<f32>();
                assert_eq!(block.sum, sum(&block.codes));
                assert_eq!(block.halves, [sum(&block.codes[..16]), sum(&block.codes[16..])]);
            }
        }
    }

    #[test]
    fn extremes() {
        let pool = Pool::new(1);
        let block = |values: &[f32]| {
            let mut x = [0.5f32; GROUP];
            x[..values.len()].copy_from_slice(values);
            let mut rows = Q8Rows::with_capacity(1, GROUP);
            rows.quantise(&pool, &x, 1).unwrap();
            rows.blocks()[0]
        };
        assert_eq!(block(&[0.0; GROUP]), Q8Block::default());
        assert_eq!(block(&[1e-42; GROUP]), Q8Block::default());
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(block(&[bad]).scale.is_nan());
        }
        let large = block(&[f32::MAX, -f32::MAX]);
        assert_eq!((large.codes[0], large.codes[1], large.codes[2]), (127, -127, 0));
    }
}
