//! Q4_K: 256 values in 144 bytes, eight parts of 32. `value = (d * sc[p]) * q - dmin * mn[p]`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..4 | `dmin`: f16 |
//! | 4..16 | `sc[0..8]`, `mn[0..8]`: 6 bits each, see [`scale_min`] |
//! | 16..144 | four runs of 32 bytes; run `r` holds part `2r` in the low four bits, part `2r + 1` in the high ones |

use super::codes::{GROUP, Scales, put_f16, u16_at};
use super::fit::{self, inverse, nearest};

/// Scale and minimum of part `p`, both below 64.
///
/// Parts 0..4: the low six bits of `packed[p]` and `packed[4 + p]`. Parts 4..8: low four bits from the two halves of
/// `packed[4 + p]`, high two bits from the top of the bytes that hold parts 0..4.
fn scale_min(packed: &[u8], p: usize) -> (u8, u8) {
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

/// The scales of part `part`, from the first 16 bytes of a block of Q4_K or Q5_K.
pub(super) fn scales(block: &[u8], part: usize) -> Scales {
    let (sc, mn) = scale_min(&block[4..16], part);
    Scales { m: u16_at(block, 2), sc: [sc as i8; 2], mn: [mn as i8; 2], ..Scales::d(block) }
}

/// The low four bits of value `i` of part `part`, from the runs at the end of a block of Q4_K or Q5_K.
pub(super) fn low(runs: &[u8], part: usize, i: usize) -> u8 {
    runs[part / 2 * GROUP + i] >> (4 * (part % 2)) & 15
}

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    (scales(block, part), std::array::from_fn(|i| low(&block[16..], part, i) as i8))
}

pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    encode_parts(values, 15.0, block, |block, part, i, q| {
        block[16 + part / 2 * GROUP + i] |= q << (4 * (part % 2));
    });
}

/// Encodes a block of Q4_K or Q5_K, whose codes end at `top`; `put` stores the code of value `i` of a part.
pub(super) fn encode_parts(
    values: &[f32],
    top: f32,
    block: &mut [u8],
    put: impl Fn(&mut [u8], usize, usize, u8),
) {
    let fits: Vec<(f32, f32)> = values.chunks_exact(GROUP).map(|part| fit::scale_min(part, top)).collect();
    let largest = |f: fn(&(f32, f32)) -> f32| fits.iter().map(f).fold(0f32, f32::max);
    block.fill(0);
    let d = put_f16(block, 0, largest(|f| f.0) / 63.0);
    let dmin = put_f16(block, 2, largest(|f| f.1) / 63.0);
    for (p, (&(scale, min), part)) in fits.iter().zip(values.chunks_exact(GROUP)).enumerate() {
        let sc = nearest(scale * inverse(d), 0.0, 63.0);
        let mn = nearest(min * inverse(dmin), 0.0, 63.0);
        put_scale_min(&mut block[4..16], p, sc as u8, mn as u8);
        let (step, offset) = (inverse(d * sc), dmin * mn);
        for (i, v) in part.iter().enumerate() {
            put(block, p, i, nearest((v + offset) * step, 0.0, top) as u8);
        }
    }
}
