//! Q6_K: 256 values in 210 bytes, sixteen scales of 16 values. `value = (d * sc[i / 16]) * (q - 32)`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..128 | low four bits: two runs of 64 bytes, one for each 128 values; in a run, byte `i` holds value `i` in its low half and value `64 + i` in its high half |
//! | 128..192 | high two bits: two runs of 32 bytes; byte `i` holds values `i`, `32 + i`, `64 + i`, `96 + i`, from the low bits up |
//! | 192..208 | `sc[0..16]`: i8 |
//! | 208..210 | `d`: f16 |

use super::codes::{GROUP, Scales, put_f16};
use super::fit::{self, inverse, nearest};

/// Where value `i` of part `part` keeps its bits: (low byte, low shift, high byte, high shift).
fn place(part: usize, i: usize) -> (usize, usize, usize, usize) {
    let (half, quarter) = (part / 4, part % 4);
    (64 * half + 32 * (quarter % 2) + i, 4 * (quarter / 2), 128 + 32 * half + i, 2 * quarter)
}

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    let q = std::array::from_fn(|i| {
        let (low, low_shift, high, high_shift) = place(part, i);
        let bits = block[low] >> low_shift & 15 | (block[high] >> high_shift & 3) << 4;
        bits as i8 - 32
    });
    let sc = [0, 1].map(|h| block[192 + 2 * part + h] as i8);
    (Scales { sc, ..Scales::d(&block[208..]) }, q)
}

pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let round = |v: f32| nearest(v, -32.0, 31.0);
    let scales: Vec<f32> = values.chunks_exact(16).map(|part| fit::scale(part, -32.0, round)).collect();
    let extreme = fit::extreme(&scales);
    block.fill(0);
    // The scale of the largest magnitude maps to -128, the one code without a counterpart.
    let d = put_f16(block, 208, extreme / -128.0);
    for (s, (scale, part)) in scales.iter().zip(values.chunks_exact(16)).enumerate() {
        let sc = nearest(scale * inverse(d), -128.0, 127.0);
        block[192 + s] = sc as i8 as u8;
        let step = inverse(d * sc);
        for (i, v) in part.iter().enumerate() {
            let q = (round(v * step) + 32.0) as u8;
            let (low, low_shift, high, high_shift) = place(s / 2, 16 * (s % 2) + i);
            block[low] |= (q & 15) << low_shift;
            block[high] |= (q >> 4) << high_shift;
        }
    }
}
