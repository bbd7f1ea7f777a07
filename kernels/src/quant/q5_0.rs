//! Q5_0: 32 values in 22 bytes. `value = d * (q - 16)`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..6 | bit `i`: the high bit of `q[i]` |
//! | 6..22 | byte `i`: the low four bits of `q[i]` in the low half, of `q[16 + i]` in the high one |

use super::codes::{GROUP, Scales, nibble, put_f16, put_nibbles, u32_at};
use super::fit;

/// The five bits of value `i`: `high` holds the high bits, `low` the rest.
pub(super) fn five_bits(high: u32, low: &[u8], i: usize) -> u8 {
    nibble(low, i) | ((high >> i & 1) as u8) << 4
}

/// The high bits of 32 codes.
pub(super) fn high_bits(q: &[u8; GROUP]) -> [u8; 4] {
    let bits = q.iter().enumerate().fold(0u32, |bits, (i, q)| bits | u32::from(q >> 4 & 1) << i);
    bits.to_le_bytes()
}

pub(super) fn read(block: &[u8]) -> (Scales, [i8; GROUP]) {
    let high = u32_at(block, 2);
    (Scales::d(block), std::array::from_fn(|i| five_bits(high, &block[6..], i) as i8 - 16))
}

/// The bits of the `gguf` package, see [`fit::centred`].
pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let (d, q) = fit::centred(values, 16);
    put_f16(block, 0, d);
    block[2..6].copy_from_slice(&high_bits(&q));
    put_nibbles(&q, &mut block[6..]);
}
