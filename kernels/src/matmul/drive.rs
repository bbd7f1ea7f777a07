//! Cuts a product into microkernel calls and spreads them over the pool.

#![allow(unsafe_code, reason = "threads write disjoint columns of one output through a pointer")]

use super::kernel::{Panel, XRows};
use super::packed::{Layout, TILE, pack_tile};
use super::variants::Kernels;
use super::{Activations, MatmulConfig, Weights};
use crate::DType;
use crate::cpu::{AlignedBytes, Isa, Pool};
use std::ops::Range;

/// What the products of one launch have in common: weights of one type and shape, activations of one kind.
pub(super) struct Launch {
    kernels: Kernels,
    layout: Layout,
    n: usize,
    k: usize,
    columns: usize,
    prefetch: usize,
    chunk: usize,
}

/// Activations and outputs of one product; its pointers may cross threads.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    x: XRows,
    rows: usize,
    out: *mut f32,
}

// SAFETY: activations are only read while a launch borrows them, and threads write disjoint columns of the output.
unsafe impl Sync for Rows {}

impl Rows {
    /// All rows of `x`, with `out` of as many rows.
    pub(super) fn new(x: &Activations<'_>, k: usize, out: &mut [f32]) -> Rows {
        Rows { x: XRows::of(x, k), rows: x.rows(), out: out.as_mut_ptr() }
    }

    /// Some of the rows, which must be within, with outputs of `n` values.
    pub(super) fn part(&self, rows: Range<usize>, n: usize) -> Rows {
        Rows { x: self.x.skip(rows.start), rows: rows.len(), out: self.out.wrapping_add(rows.start * n) }
    }
}

impl Launch {
    /// A launch over the first `columns` columns of matrices of `n` rows of `k` values; `quantised` says whether the
    /// activations are.
    pub(super) fn new(
        isa: Isa,
        config: &MatmulConfig,
        (dtype, n, k): (DType, usize, usize),
        quantised: bool,
        columns: usize,
    ) -> Launch {
        let integers = dtype.is_quantised() && quantised;
        Launch {
            kernels: Kernels::new(isa, dtype, integers, config.tile_rows, config.tile_tokens),
            layout: Layout::of(dtype),
            n,
            k,
            columns,
            prefetch: config.prefetch,
            chunk: config.chunk.max(1),
        }
    }

    /// Units of work in one product.
    pub(super) fn units(&self) -> usize {
        self.n.div_ceil(TILE).div_ceil(self.chunk)
    }

    /// Unit `unit` of the product of `w` with `rows`.
    ///
    /// # Safety
    /// `w` has the type and shape of the launch; `rows` holds rows of `k >= columns` values of the launch's kind and
    /// outputs of `n` values, of which nobody else touches those of this unit.
    pub(super) unsafe fn unit(&self, w: &Weights<'_>, unit: usize, rows: Rows) {
        let (n, size) = (self.n, self.layout.tile(self.k));
        let end = n.div_ceil(TILE).min((unit + 1) * self.chunk);
        let mut tile = unit * self.chunk;
        let mut own = None;
        while tile < end {
            let count = if tile + self.kernels.tiles <= end { self.kernels.tiles } else { 1 };
            let tiles = match w {
                Weights::Packed(w) => w.tile(tile).as_ptr(),
                Weights::File(w) => {
                    let own = own.get_or_insert_with(|| AlignedBytes::zeroed(self.kernels.tiles * size));
                    for i in 0..count {
                        let bytes = &mut own.bytes_mut()[i * size..][..size];
                        bytes.fill(0);
                        pack_tile(w, tile + i, bytes);
                    }
                    own.bytes().as_ptr()
                }
            };
            let mut t = 0;
            while let Some((kernel, tokens)) = self.kernels.pick(count, rows.rows - t) {
                let panel = Panel {
                    tiles,
                    tile_bytes: size,
                    heads: self.layout.heads(self.k),
                    columns: self.columns,
                    prefetch: self.prefetch,
                    x: rows.x.skip(t),
                    out: rows.out.wrapping_add(t * n + tile * TILE),
                    out_stride: n,
                    valid: (count * TILE).min(n - tile * TILE),
                };
                // SAFETY: `count` tiles from `tile` on exist in the packed bytes (or were just packed); the rest is this
                // function's contract, and the kernels were chosen for what the machine has.
                unsafe { kernel.call(&panel) };
                t += tokens;
            }
            tile += count;
        }
    }
}

/// The product over the first `columns` columns. The caller has checked all sizes.
pub(super) fn run(
    isa: Isa,
    pool: &Pool,
    config: &MatmulConfig,
    w: &Weights<'_>,
    x: &Activations<'_>,
    columns: usize,
    out: &mut [f32],
) {
    let quantised = matches!(x, Activations::Q8(_));
    let launch = Launch::new(isa, config, (w.dtype(), w.n(), w.k()), quantised, columns);
    let rows = Rows::new(x, w.k(), out);
    pool.run(config.threads, launch.units(), &|unit, _| {
        // Borrowed whole: the closure must not take its pointers apart.
        let rows = &rows;
        // SAFETY: sizes were checked by the caller, and each unit, with columns of its own, is handed out once.
        unsafe { launch.unit(w, unit, *rows) };
    });
}
