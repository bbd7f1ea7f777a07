//! IQ4_NL: 32 values in 18 bytes. `value = d * LEVELS[q]`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..18 | byte `i`: `q[i]` in the low four bits, `q[16 + i]` in the high ones |

use super::codes::{GROUP, Scales, nibble, put_f16, put_nibbles};
use super::fit::{self, inverse};

/// What the codes stand for: levels that lie closer around zero, where most weights are.
pub(crate) const LEVELS: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// The levels of 32 codes in 16 bytes.
pub(super) fn levels(run: &[u8]) -> [i8; GROUP] {
    std::array::from_fn(|i| LEVELS[usize::from(nibble(run, i))])
}

/// Twice the middle between each two levels.
const MIDDLES: [f32; 15] = {
    let mut middles = [0.0; 15];
    let mut i = 0;
    while i < 15 {
        middles[i] = (LEVELS[i] as i32 + LEVELS[i + 1] as i32) as f32;
        i += 1;
    }
    middles
};

/// The code of the level nearest to `value`.
pub(super) fn nearest(value: f32) -> u8 {
    MIDDLES.iter().map(|middle| u8::from(2.0 * value > *middle)).sum()
}

/// The level nearest to `value`: the steps between levels that lie below it, summed.
fn nearest_level(value: f32) -> f32 {
    let step = |i: usize| {
        if 2.0 * value > MIDDLES[i] { f32::from(LEVELS[i + 1]) - f32::from(LEVELS[i]) } else { 0.0 }
    };
    (0..15).fold(f32::from(LEVELS[0]), |level, i| level + step(i))
}

/// A scale that loses little, see [`fit::uneven_scale`].
pub(super) fn fit_scale(values: &[f32]) -> f32 {
    let ends = [LEVELS[0], LEVELS[15]].map(f32::from);
    fit::uneven_scale(values, ends, nearest_level)
}

pub(super) fn read(block: &[u8]) -> (Scales, [i8; GROUP]) {
    (Scales::d(block), levels(&block[2..]))
}

pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let step = inverse(put_f16(block, 0, fit_scale(values)));
    put_nibbles(&std::array::from_fn(|i| nearest(values[i] * step)), &mut block[2..]);
}
