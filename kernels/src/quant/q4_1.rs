//! Q4_1: 32 values in 20 bytes. `value = d * q + m`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..4 | `m`: f16 |
//! | 4..20 | byte `i`: `q[i]` in the low four bits, `q[16 + i]` in the high ones |

use super::codes::{GROUP, Scales, nibble, put_f16, put_nibbles, u16_at};
use super::fit;

pub(super) fn read(block: &[u8]) -> (Scales, [i8; GROUP]) {
    let scales = Scales { m: u16_at(block, 2), ..Scales::d(block) };
    (scales, std::array::from_fn(|i| nibble(&block[4..], i) as i8))
}

/// The bits of the `gguf` package, see [`fit::spread`].
pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let (d, m, q) = fit::spread(values, 15);
    put_f16(block, 0, d);
    put_f16(block, 2, m);
    put_nibbles(&q, &mut block[4..]);
}
