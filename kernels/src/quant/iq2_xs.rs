//! IQ2_XS: 256 values in 74 bytes, sixteen parts of 16. `value = (d * (2 sc[i / 16] + 1) / 8) * grid * sign`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..66 | a u16 for each eight values: their index in [`grid::IQ2_XS`] in the low nine bits, then 7 bits of signs (see [`grid::signs`]) |
//! | 66..74 | `sc[s]`: four bits, from the low bits up |

use super::codes::{GROUP, Scales, u16_at};
use super::grid;

/// Scales of two parts of 16, from their byte.
pub(super) fn scales(block: &[u8], byte: u8) -> Scales {
    Scales { sc: [byte & 15, byte >> 4].map(|sc| 2 * sc as i8 + 1), ..Scales::d(block) }
}

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    let word = |eight: usize| u16_at(block, 2 + 2 * (4 * part + eight));
    let index = |eight: usize| usize::from(word(eight) & 511);
    let q = grid::eights(&grid::IQ2_XS, index, |eight| grid::signs(u32::from(word(eight) >> 9)));
    (scales(block, block[66 + part]), q)
}
