//! The microkernels: a few weight tiles times a few activation rows, all columns.

#![allow(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    reason = "pointers into packed tiles and outputs; `Panel` states what callers owe"
)]

use super::code::Code;
use super::format::fold;
use super::head::Head;
use super::packed::{Layout, TILE};
use super::{Activations, Q8Block};
use crate::cpu::simd::{Simd, prefetch};
use crate::quant::GROUP;
use std::array::from_fn;

/// Where activations lie.
#[derive(Clone, Copy)]
pub(super) enum XRows {
    /// f32 values, so many a row.
    F32(*const f32, usize),
    /// Blocks, so many a row.
    Q8(*const Q8Block, usize),
}

impl XRows {
    pub(super) fn of(x: &Activations<'_>, k: usize) -> XRows {
        match x {
            Activations::F32 { x, .. } => XRows::F32(x.as_ptr(), k),
            Activations::Q8(rows) => XRows::Q8(rows.blocks().as_ptr(), k.div_ceil(GROUP)),
        }
    }

    /// The rows from row `t` on.
    pub(super) fn skip(self, t: usize) -> XRows {
        match self {
            XRows::F32(x, each) => XRows::F32(x.wrapping_add(t * each), each),
            XRows::Q8(x, each) => XRows::Q8(x.wrapping_add(t * each), each),
        }
    }
}

/// One microkernel call: `R` tiles times `T` activation rows.
///
/// # Safety
/// A microkernel may be called when `tiles` points to `R` packed tiles of `tile_bytes` bytes of its type, `x` to `T` rows
/// of at least `columns` values of its kind, `out` to `T` rows, `out_stride` apart, of at least `valid` writable values
/// (`16 (R - 1) < valid <= 16 R`), and the machine has its instruction set.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) tiles: *const u8,
    pub(super) tile_bytes: usize,
    /// Bytes from a tile's start to its bodies.
    pub(super) heads: usize,
    /// Columns summed over.
    pub(super) columns: usize,
    /// Groups of 32 columns to prefetch ahead; 0 for none.
    pub(super) prefetch: usize,
    pub(super) x: XRows,
    pub(super) out: *mut f32,
    pub(super) out_stride: usize,
    pub(super) valid: usize,
}

/// Quantised weights and activations.
#[inline(always)]
pub(super) unsafe fn blocks<S: Simd, C: Code, H: Head, const R: usize, const T: usize>(p: &Panel) {
    let layout = const { Layout::new::<C, H>() };
    let parts = layout.head_columns / GROUP;
    let XRows::Q8(x, each) = p.x else { return };
    let mut acc = [[S::splat(0.0); T]; R];
    for group in 0..p.columns / layout.head_columns {
        for part in 0..parts {
            let block = group * parts + part;
            let x: [*const Q8Block; T] = from_fn(|t| x.add(t * each + block));
            for (r, acc) in acc.iter_mut().enumerate() {
                let tile = p.tiles.add(r * p.tile_bytes);
                let head = tile.add(group * layout.head);
                let body = tile.add(p.heads + block * layout.body);
                if p.prefetch != 0 {
                    prefetch_ahead(layout, part, head, body, p.prefetch);
                }
                fold::<S, C, H, T>(head, part, body, &x, acc);
            }
        }
    }
    for (r, acc) in acc.iter().enumerate() {
        for (t, acc) in acc.iter().enumerate() {
            store_tile::<S>(p, r, t, *acc);
        }
    }
}

/// Asks for the body `ahead` groups of 32 columns further on, and for the head that goes with it.
#[inline(always)]
fn prefetch_ahead(layout: Layout, part: usize, head: *const u8, body: *const u8, ahead: usize) {
    let body = body.wrapping_add(ahead * layout.body);
    for line in 0..layout.body / 64 {
        prefetch(body.wrapping_add(64 * line));
    }
    if part == 0 {
        let heads = (ahead * GROUP / layout.head_columns).max(1);
        let head = head.wrapping_add(heads * layout.head);
        for line in 0..layout.head.div_ceil(64) {
            prefetch(head.wrapping_add(64 * line));
        }
    }
}

/// Stores the sums of tile `r` and activation row `t`; the last tile may be cut short.
#[inline(always)]
unsafe fn store_tile<S: Simd>(p: &Panel, r: usize, t: usize, value: S::Floats) {
    let out = p.out.add(t * p.out_stride + r * TILE);
    let valid = p.valid - r * TILE;
    if valid >= TILE {
        S::store(out, value);
    } else {
        let mut all = [0f32; TILE];
        S::store(all.as_mut_ptr(), value);
        std::ptr::copy_nonoverlapping(all.as_ptr(), out, valid);
    }
}

/// Writes the values of 32 columns of a tile: `(head, part, body, out)`, see [`super::format::Format::decode`].
pub(super) type Decode = unsafe fn(*const u8, usize, *const u8, *mut f32);

/// Weights decoded to f32, one tile, activations of either kind.
#[inline(always)]
pub(super) unsafe fn floats<S: Simd, const T: usize>(p: &Panel, layout: Layout, decode: Decode) {
    match p.x {
        XRows::F32(x, each) => exact::<S, T>(p, layout, decode, x, each),
        XRows::Q8(x, each) => rounded::<S, T>(p, layout, decode, x, each),
    }
}

/// f32 activations: sums in f64.
#[inline(always)]
unsafe fn exact<S: Simd, const T: usize>(
    p: &Panel,
    layout: Layout,
    decode: Decode,
    x: *const f32,
    each: usize,
) {
    let mut sums = [S::splat_f64(0.0); T];
    let mut w = [[0f32; TILE]; GROUP];
    for block in 0..p.columns.div_ceil(GROUP) {
        decode_block(p, layout, decode, block, &mut w);
        let columns = GROUP.min(p.columns - block * GROUP);
        for (column, w) in w[..columns].iter().enumerate() {
            let w = S::widen(S::load_f32(w.as_ptr().cast()));
            let x = x.add(block * GROUP + column);
            for (t, sum) in sums.iter_mut().enumerate() {
                *sum = S::fma_f64(w, S::splat_f64(f64::from(*x.add(t * each))), *sum);
            }
        }
    }
    for (t, sum) in sums.iter().enumerate() {
        store_tile::<S>(p, 0, t, S::narrow(*sum));
    }
}

/// Quantised activations.
#[inline(always)]
unsafe fn rounded<S: Simd, const T: usize>(
    p: &Panel,
    layout: Layout,
    decode: Decode,
    x: *const Q8Block,
    each: usize,
) {
    let mut acc = [S::splat(0.0); T];
    let mut w = [[0f32; TILE]; GROUP];
    let mut converted = [[0f32; GROUP]; T];
    for block in 0..p.columns.div_ceil(GROUP) {
        decode_block(p, layout, decode, block, &mut w);
        let columns = GROUP.min(p.columns - block * GROUP);
        for (t, converted) in converted.iter_mut().enumerate() {
            for (value, code) in converted.iter_mut().zip(&(*x.add(t * each + block)).codes) {
                *value = f32::from(*code);
            }
        }
        let mut sums = [S::splat(0.0); T];
        for (column, w) in w[..columns].iter().enumerate() {
            let w = S::load_f32(w.as_ptr().cast());
            for t in 0..T {
                sums[t] = S::fma(w, S::splat(converted[t][column]), sums[t]);
            }
        }
        for t in 0..T {
            acc[t] = S::fma(S::splat((*x.add(t * each + block)).scale), sums[t], acc[t]);
        }
    }
    for (t, acc) in acc.iter().enumerate() {
        store_tile::<S>(p, 0, t, *acc);
    }
}

/// The values of 32 columns of a tile.
#[inline(always)]
unsafe fn decode_block(
    p: &Panel,
    layout: Layout,
    decode: Decode,
    block: usize,
    w: &mut [[f32; TILE]; GROUP],
) {
    let parts = layout.head_columns / GROUP;
    let head = p.tiles.add(block / parts * layout.head);
    decode(head, block % parts, p.tiles.add(p.heads + block * layout.body), w.as_mut_ptr().cast());
}
