//! Q3_K: 256 values in 110 bytes, sixteen scales of 16 values. `value = (d * (sc[i / 16] - 32)) * (q - 4)`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..32 | byte `i`, bit `p`: the high bit of value `32 p + i` |
//! | 32..96 | low two bits: as in Q2_K |
//! | 96..104 | byte `s`: low four bits of `sc[s]`, then of `sc[8 + s]` |
//! | 104..108 | byte `s`: high two bits of `sc[s]`, `sc[4 + s]`, `sc[8 + s]`, `sc[12 + s]`, from the low bits up |
//! | 108..110 | `d`: f16 |

use super::codes::{GROUP, Scales, put_f16};
use super::fit::{self, inverse, nearest};
use super::q2_k::place;

/// Where scale `s` keeps its bits: (low byte, low shift, high byte, high shift).
fn scale_place(s: usize) -> (usize, usize, usize, usize) {
    (96 + s % 8, 4 * (s / 8), 104 + s % 4, 2 * (s / 4))
}

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    let sc = [0, 1].map(|h| {
        let (low, low_shift, high, high_shift) = scale_place(2 * part + h);
        (block[low] >> low_shift & 15 | (block[high] >> high_shift & 3) << 4) as i8 - 32
    });
    let q = std::array::from_fn(|i| {
        let (byte, shift) = place(part, i);
        (block[32 + byte] >> shift & 3 | (block[i] >> part & 1) << 2) as i8 - 4
    });
    (Scales { sc, ..Scales::d(&block[108..]) }, q)
}

pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let round = |v: f32| nearest(v, -4.0, 3.0);
    let scales: Vec<f32> = values.chunks_exact(16).map(|part| fit::scale(part, -4.0, round)).collect();
    let extreme = fit::extreme(&scales);
    block.fill(0);
    // The scale of the largest magnitude maps to -32, the one code without a counterpart.
    let d = put_f16(block, 108, extreme / -32.0);
    for (s, (scale, part)) in scales.iter().zip(values.chunks_exact(16)).enumerate() {
        let sc = nearest(scale * inverse(d), -32.0, 31.0);
        let stored = (sc + 32.0) as u8;
        let (low, low_shift, high, high_shift) = scale_place(s);
        block[low] |= (stored & 15) << low_shift;
        block[high] |= (stored >> 4) << high_shift;
        let step = inverse(d * sc);
        for (i, v) in part.iter().enumerate() {
            let q = (round(v * step) + 4.0) as u8;
            let (part, i) = (s / 2, 16 * (s % 2) + i);
            let (byte, shift) = place(part, i);
            block[32 + byte] |= (q & 3) << shift;
            block[i] |= (q >> 2) << part;
        }
    }
}
