//! Q5_K: 256 values in 176 bytes, eight parts of 32. `value = (d * sc[p]) * q - dmin * mn[p]`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..16 | as in Q4_K |
//! | 16..48 | byte `i`, bit `p`: the high bit of value `32 p + i` |
//! | 48..176 | low four bits: as in Q4_K |

use super::codes::{GROUP, Scales};
use super::q4_k;

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    let q = |i: usize| (q4_k::low(&block[48..], part, i) | (block[16 + i] >> part & 1) << 4) as i8;
    (q4_k::scales(block, part), std::array::from_fn(q))
}

pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    q4_k::encode_parts(values, 31.0, block, |block, part, i, q| {
        block[48 + part / 2 * GROUP + i] |= (q & 15) << (4 * (part % 2));
        block[16 + i] |= (q >> 4) << part;
    });
}
