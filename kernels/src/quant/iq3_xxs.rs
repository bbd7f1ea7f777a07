//! IQ3_XXS: 256 values in 98 bytes, eight parts of 32. `value = (d * (2 sc[p] + 1) / 4) * grid * sign`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..66 | index of each four values in [`grid::IQ3_XXS`] |
//! | 66..98 | a u32 for each part: four times 7 bits of signs (see [`grid::signs`]), then `sc[p]` in the top four |

use super::codes::{GROUP, Scales, u32_at};
use super::grid;

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    let word = u32_at(block, 66 + 4 * part);
    let sc = 2 * (word >> 28) as i8 + 1;
    let index = |j: usize| usize::from(block[2 + 8 * part + j]);
    let signs = |eight: usize| grid::signs(word >> (7 * eight));
    let q = grid::fours(&grid::IQ3_XXS, &grid::IQ3_XXS_LEVELS, index, signs);
    (Scales { sc: [sc; 2], ..Scales::d(block) }, q)
}
