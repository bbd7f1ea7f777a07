//! IQ4_XS: 256 values in 136 bytes, eight parts of 32. `value = (d * (sc[p] - 32)) * LEVELS[q]`, the levels of IQ4_NL.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..4 | high two bits of `sc[p]`, from the low bits up |
//! | 4..8 | low four bits of `sc[p]`, from the low bits up |
//! | 8..136 | sixteen bytes a part, as in IQ4_NL |

use super::codes::{GROUP, Scales, put_f16, put_nibbles, u16_at};
use super::fit::{self, inverse};
use super::iq4_nl::{fit_scale, levels, nearest};

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    let high = u16_at(block, 2) >> (2 * part) & 3;
    let sc = (block[4 + part / 2] >> (4 * (part % 2)) & 15 | (high as u8) << 4) as i8 - 32;
    (Scales { sc: [sc; 2], ..Scales::d(block) }, levels(&block[8 + 16 * part..]))
}

pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let scales: Vec<f32> = values.chunks_exact(GROUP).map(fit_scale).collect();
    block.fill(0);
    // The scale of the largest magnitude maps to -32, the one code without a counterpart.
    let d = put_f16(block, 0, fit::extreme(&scales) / -32.0);
    for (p, (scale, part)) in scales.iter().zip(values.chunks_exact(GROUP)).enumerate() {
        let sc = fit::nearest(scale * inverse(d), -32.0, 31.0);
        let stored = (sc + 32.0) as u8;
        block[2 + p / 4] |= (stored >> 4) << (2 * (p % 4));
        block[4 + p / 2] |= (stored & 15) << (4 * (p % 2));
        let step = inverse(d * sc);
        let q = std::array::from_fn(|i| nearest(part[i] * step));
        put_nibbles(&q, &mut block[8 + 16 * p..][..16]);
    }
}
