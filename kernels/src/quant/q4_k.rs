//! Q4_K: 256 values in 144 bytes, eight parts of 32. `value = (d * sc[p]) * q - dmin * mn[p]`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..4 | `dmin`: f16 |
//! | 4..16 | `sc[0..8]`, `mn[0..8]`: 6 bits each, see [`scale_min`] |
//! | 16..144 | four runs of 32 bytes; run `r` holds part `2r` in the low four bits, part `2r + 1` in the high ones |

use super::{Codes, GROUP, f16_at, inverse, put_f16};

const PARTS: usize = 8;

/// Scale and minimum of part `p`, both below 64.
///
/// Parts 0..4: the low six bits of `packed[p]` and `packed[4 + p]`. Parts 4..8: low four bits from the two halves of
/// `packed[4 + p]`, high two bits from the top of the bytes that hold parts 0..4.
pub(crate) fn scale_min(packed: &[u8], p: usize) -> (u8, u8) {
    if p < 4 {
        (packed[p] & 63, packed[4 + p] & 63)
    } else {
        (packed[4 + p] & 15 | (packed[p - 4] >> 6) << 4, packed[4 + p] >> 4 | (packed[p] >> 6) << 4)
    }
}

/// The inverse of [`scale_min`]; `packed` starts zeroed.
fn put_scale_min(packed: &mut [u8], p: usize, sc: u8, mn: u8) {
    if p < 4 {
        packed[p] |= sc;
        packed[4 + p] |= mn;
    } else {
        packed[4 + p] |= sc & 15 | (mn & 15) << 4;
        packed[p - 4] |= (sc >> 4) << 6;
        packed[p] |= (mn >> 4) << 6;
    }
}

pub(super) fn codes(block: &[u8], part: usize) -> Codes {
    let (sc, mn) = scale_min(&block[4..16], part);
    let run = &block[16 + part / 2 * GROUP..][..GROUP];
    let q = std::array::from_fn(|i| (run[i] >> (4 * (part % 2)) & 15) as i8);
    let (d, dmin) = (f16_at(block, 0), f16_at(block, 2));
    Codes { q, scale: [d * f32::from(sc); 2], min: Some(-(dmin * f32::from(mn))) }
}

pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let mut fits = [(0f32, 0f32); PARTS];
    for (fit, part) in fits.iter_mut().zip(values.chunks_exact(GROUP)) {
        *fit = fit_scale_min(part);
    }
    let largest = |f: fn(&(f32, f32)) -> f32| fits.iter().map(f).fold(0f32, f32::max);
    block[4..].fill(0);
    let d = put_f16(block, 0, largest(|f| f.0) / 63.0);
    let dmin = put_f16(block, 2, largest(|f| f.1) / 63.0);
    for (p, (&(scale, min), part)) in fits.iter().zip(values.chunks_exact(GROUP)).enumerate() {
        let sc = (scale * inverse(d)).round().clamp(0.0, 63.0);
        let mn = (min * inverse(dmin)).round().clamp(0.0, 63.0);
        put_scale_min(&mut block[4..16], p, sc as u8, mn as u8);
        let (step, offset) = (inverse(d * sc), dmin * mn);
        for (i, v) in part.iter().enumerate() {
            let q = ((v + offset) * step).round().clamp(0.0, 15.0) as u8;
            block[16 + p / 2 * GROUP + i] |= q << (4 * (p % 2));
        }
    }
}

/// `(scale, min)`, both at least zero, such that `scale * q - min` with `q` in 0..=15 is near the values: from the
/// full range, then a few narrower ones, each refined by least squares; the least squared error wins.
fn fit_scale_min(values: &[f32]) -> (f32, f32) {
    let low = values.iter().copied().fold(0f32, f32::min);
    let high = values.iter().copied().fold(low, f32::max);
    if high <= low {
        return (0.0, -low);
    }
    let mut best = ((high - low) / 15.0, -low);
    let mut least = squared_error(values, best);
    for step in 0..12 {
        let levels = 14.0 + 0.25 * step as f32;
        let candidate = least_squares(values, levels / (high - low), low);
        let error = squared_error(values, candidate);
        if error < least {
            (best, least) = (candidate, error);
        }
    }
    best
}

/// Best `(scale, min)` for the codes that `inverse_scale` and `low` give; the minimum is kept at zero or more.
fn least_squares(values: &[f32], inverse_scale: f32, low: f32) -> (f32, f32) {
    let (mut q1, mut q2, mut v1, mut vq) = (0f32, 0f32, 0f32, 0f32);
    for v in values {
        let q = ((v - low) * inverse_scale).round().clamp(0.0, 15.0);
        q1 += q;
        q2 += q * q;
        v1 += v;
        vq += v * q;
    }
    let n = values.len() as f32;
    let det = n * q2 - q1 * q1;
    if det <= 0.0 {
        return (0.0, -low);
    }
    let (scale, offset) = ((n * vq - q1 * v1) / det, (q2 * v1 - q1 * vq) / det);
    if offset > 0.0 { ((vq / q2).max(0.0), 0.0) } else { (scale.max(0.0), -offset) }
}

fn squared_error(values: &[f32], (scale, min): (f32, f32)) -> f32 {
    let step = inverse(scale);
    let error = |v: &f32| scale * ((v + min) * step).round().clamp(0.0, 15.0) - min - v;
    values.iter().map(|v| error(v).powi(2)).sum()
}
