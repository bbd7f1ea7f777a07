//! IQ2_XXS: 256 values in 66 bytes, eight parts of 32. `value = (d * (2 sc[p] + 1) / 8) * grid * sign`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..66 | eight bytes a part: the index of each eight values in [`grid::IQ2_XXS`], then a u32 as in IQ3_XXS |

use super::codes::{GROUP, Scales, u32_at};
use super::grid;

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    let at = 2 + 8 * part;
    let word = u32_at(block, at + 4);
    let sc = 2 * (word >> 28) as i8 + 1;
    let index = |eight: usize| usize::from(block[at + eight]);
    let q = grid::eights(&grid::IQ2_XXS, index, |eight| grid::signs(word >> (7 * eight)));
    (Scales { sc: [sc; 2], ..Scales::d(block) }, q)
}
