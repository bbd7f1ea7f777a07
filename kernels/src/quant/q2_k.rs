//! Q2_K: 256 values in 84 bytes, sixteen parts of 16. `value = (d * sc[i / 16]) * q - dmin * mn[i / 16]`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..16 | byte `s`: `sc[s]` in the low four bits, `mn[s]` in the high ones |
//! | 16..80 | two runs of 32 bytes, one for each 128 values; in a run, byte `i` holds values `i`, `32 + i`, `64 + i`, `96 + i`, from the low bits up |
//! | 80..82 | `d`: f16 |
//! | 82..84 | `dmin`: f16 |

use super::codes::{GROUP, Scales, put_f16, u16_at};
use super::fit::{self, inverse, nearest};

/// Two bits of value `i` of part `part` of 32: (byte in the two runs, shift).
pub(super) fn place(part: usize, i: usize) -> (usize, usize) {
    (part / 4 * GROUP + i, 2 * (part % 4))
}

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    let pair = |h: usize| block[2 * part + h];
    let scales = Scales {
        m: u16_at(block, 82),
        sc: [0, 1].map(|h| (pair(h) & 15) as i8),
        mn: [0, 1].map(|h| (pair(h) >> 4) as i8),
        ..Scales::d(&block[80..])
    };
    let q = std::array::from_fn(|i| {
        let (byte, shift) = place(part, i);
        (block[16 + byte] >> shift & 3) as i8
    });
    (scales, q)
}

pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let fits: Vec<(f32, f32)> = values.chunks_exact(16).map(|part| fit::scale_min(part, 3.0)).collect();
    let largest = |f: fn(&(f32, f32)) -> f32| fits.iter().map(f).fold(0f32, f32::max);
    block.fill(0);
    let d = put_f16(block, 80, largest(|f| f.0) / 15.0);
    let dmin = put_f16(block, 82, largest(|f| f.1) / 15.0);
    for (s, (&(scale, min), part)) in fits.iter().zip(values.chunks_exact(16)).enumerate() {
        let sc = nearest(scale * inverse(d), 0.0, 15.0);
        let mn = nearest(min * inverse(dmin), 0.0, 15.0);
        block[s] = sc as u8 | (mn as u8) << 4;
        let (step, offset) = (inverse(d * sc), dmin * mn);
        for (i, v) in part.iter().enumerate() {
            let (byte, shift) = place(s / 2, 16 * (s % 2) + i);
            block[16 + byte] |= (nearest((v + offset) * step, 0.0, 3.0) as u8) << shift;
        }
    }
}
