//! IQ3_S: 256 values in 110 bytes, eight parts of 32. `value = (d * (2 sc[p] + 1)) * grid * sign`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..66 | low eight bits of the index of each four values in [`grid::IQ3_S`] |
//! | 66..74 | byte `p`, bit `j`: the high bit of index `8 p + j` |
//! | 74..106 | signs: byte `s`, bit `j` is set where value `8 s + j` is negative |
//! | 106..110 | `sc[p]`: four bits, from the low bits up |

use super::codes::{GROUP, Scales};
use super::grid;

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    let sc = 2 * (block[106 + part / 2] >> (4 * (part % 2)) & 15) as i8 + 1;
    let index = |j: usize| usize::from(block[2 + 8 * part + j]) | usize::from(block[66 + part] >> j & 1) << 8;
    let signs = |eight: usize| block[74 + 4 * part + eight];
    (Scales { sc: [sc; 2], ..Scales::d(block) }, grid::fours(&grid::IQ3_S, &grid::IQ3_S_LEVELS, index, signs))
}
