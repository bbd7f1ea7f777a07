//! Q4_1: 32 values in 20 bytes. `value = d * q + m`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..4 | `m`: f16 |
//! | 4..20 | byte `i`: `q[i]` in the low four bits, `q[16 + i]` in the high ones |

use super::{Codes, f16_at, inverse, put_f16};

pub(super) fn codes(block: &[u8]) -> Codes {
    let q = std::array::from_fn(|i| (block[4 + i % 16] >> (4 * (i / 16)) & 15) as i8);
    Codes { q, scale: [f16_at(block, 0); 2], min: Some(f16_at(block, 2)) }
}

/// The smallest value becomes 0 and the largest 15. `q` is chosen with scale and minimum before their own rounding
/// to f16, as the `gguf` package does.
pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let min = values.iter().copied().fold(f32::INFINITY, f32::min);
    let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let d = (max - min) / 15.0;
    let scale = inverse(d);
    put_f16(block, 0, d);
    put_f16(block, 2, min);
    let q = |i: usize| (((values[i] - min) * scale + 0.5) as u8).min(15);
    for i in 0..16 {
        block[4 + i] = q(i) | q(16 + i) << 4;
    }
}
