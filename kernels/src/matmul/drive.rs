//! Cuts a product into microkernel calls and spreads them over the pool.

#![allow(unsafe_code, reason = "threads write disjoint columns of one output through a pointer")]

use super::kernel::{Panel, XRows};
use super::packed::{Layout, TILE, pack_tile};
use super::variants::Kernels;
use super::{Activations, MatmulConfig, Weights};
use crate::cpu::{AlignedBytes, Isa, Pool};

/// What all calls of a product have in common; its pointers may cross threads.
struct Shared(Panel);

impl Shared {
    fn get(&self) -> Panel {
        self.0
    }
}

// SAFETY: activations are only read while `run` borrows them, and threads write disjoint columns of the output.
unsafe impl Sync for Shared {}

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
    let (dtype, n, k, rows) = (w.dtype(), w.n(), w.k(), x.rows());
    let integers = dtype.is_quantised() && matches!(x, Activations::Q8(_));
    let kernels = Kernels::new(isa, dtype, integers, config.tile_rows, config.tile_tokens);
    let layout = Layout::of(dtype);
    let (tiles, chunk) = (n.div_ceil(TILE), config.chunk.max(1));
    let shared = Shared(Panel {
        tiles: std::ptr::null(),
        tile_bytes: layout.tile(k),
        heads: layout.heads(k),
        columns,
        prefetch: config.prefetch,
        x: XRows::of(x, k),
        out: out.as_mut_ptr(),
        out_stride: n,
        valid: 0,
    });
    pool.run(config.threads, tiles.div_ceil(chunk), &|task, _| {
        let end = tiles.min((task + 1) * chunk);
        let mut tile = task * chunk;
        let mut own = None;
        while tile < end {
            let count = if tile + kernels.tiles <= end { kernels.tiles } else { 1 };
            let mut panel = shared.get();
            panel.valid = (count * TILE).min(n - tile * TILE);
            panel.tiles = match w {
                Weights::Packed(w) => w.tile(tile).as_ptr(),
                Weights::File(w) => {
                    let size = panel.tile_bytes;
                    let own = own.get_or_insert_with(|| AlignedBytes::zeroed(kernels.tiles * size));
                    for i in 0..count {
                        let bytes = &mut own.bytes_mut()[i * size..][..size];
                        bytes.fill(0);
                        pack_tile(w, tile + i, bytes);
                    }
                    own.bytes().as_ptr()
                }
            };
            let mut t = 0;
            while let Some((kernel, tokens)) = kernels.pick(count, rows - t) {
                let at =
                    Panel { x: panel.x.skip(t), out: panel.out.wrapping_add(t * n + tile * TILE), ..panel };
                // SAFETY: `count` tiles from `tile` on exist in the packed bytes (or were just packed); `x` holds
                // `rows` rows of `k >= columns` values; `out` holds `rows` rows of `n` values, of which this task alone
                // writes those of its tiles; the kernels were chosen for what the machine has.
                unsafe { kernel.call(&at) };
                t += tokens;
            }
            tile += count;
        }
    });
}
