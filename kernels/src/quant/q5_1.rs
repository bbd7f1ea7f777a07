//! Q5_1: 32 values in 24 bytes. `value = d * q + m`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..4 | `m`: f16 |
//! | 4..8 | bit `i`: the high bit of `q[i]` |
//! | 8..24 | byte `i`: the low four bits of `q[i]` in the low half, of `q[16 + i]` in the high one |

use super::codes::{GROUP, Scales, put_f16, put_nibbles, u16_at, u32_at};
use super::fit;
use super::q5_0::{five_bits, high_bits};

pub(super) fn read(block: &[u8]) -> (Scales, [i8; GROUP]) {
    let scales = Scales { m: u16_at(block, 2), ..Scales::d(block) };
    let high = u32_at(block, 4);
    (scales, std::array::from_fn(|i| five_bits(high, &block[8..], i) as i8))
}

/// The bits of the `gguf` package, see [`fit::spread`].
pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let (d, m, q) = fit::spread(values, 31);
    put_f16(block, 0, d);
    put_f16(block, 2, m);
    block[4..8].copy_from_slice(&high_bits(&q));
    put_nibbles(&q, &mut block[8..]);
}
