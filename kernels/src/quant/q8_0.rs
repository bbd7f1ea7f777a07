//! Q8_0: 32 values in 34 bytes. `value = d * q`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..34 | `q[0..32]`: i8 |

use super::codes::{GROUP, Scales, put_f16};
use super::fit::inverse;

pub(super) fn read(block: &[u8]) -> (Scales, [i8; GROUP]) {
    (Scales::d(block), std::array::from_fn(|i| block[2 + i] as i8))
}

/// The largest magnitude becomes ±127; halves round away from zero. `q` is chosen with the scale before its own
/// rounding to f16, as the `gguf` package does.
pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let largest = values.iter().fold(0f32, |a, v| a.max(v.abs()));
    let d = largest / 127.0;
    let scale = inverse(d);
    put_f16(block, 0, d);
    for i in 0..GROUP {
        block[2 + i] = (values[i] * scale).round() as i8 as u8;
    }
}
