//! Q4_0: 32 values in 18 bytes. `value = d * (q - 8)`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..18 | byte `i`: `q[i]` in the low four bits, `q[16 + i]` in the high ones |

use super::codes::{GROUP, Scales, nibble, put_f16, put_nibbles};
use super::fit;

pub(super) fn read(block: &[u8]) -> (Scales, [i8; GROUP]) {
    (Scales::d(block), std::array::from_fn(|i| nibble(&block[2..], i) as i8 - 8))
}

/// The bits of the `gguf` package, see [`fit::centred`].
pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let (d, q) = fit::centred(values, 8);
    put_f16(block, 0, d);
    put_nibbles(&q, &mut block[2..]);
}
