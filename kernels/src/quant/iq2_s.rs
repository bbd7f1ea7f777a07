//! IQ2_S: 256 values in 82 bytes, sixteen parts of 16. `value = (d * (2 sc[i / 16] + 1) / 8) * grid * sign`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `d`: f16 |
//! | 2..34 | low eight bits of the index of each eight values in [`grid::IQ2_S`] |
//! | 34..66 | signs: byte `s`, bit `j` is set where value `8 s + j` is negative |
//! | 66..74 | high two bits of the indices, from the low bits up |
//! | 74..82 | `sc[s]`: four bits, from the low bits up |

use super::codes::{GROUP, Scales};
use super::grid;
use super::iq2_xs::scales;

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    let index = |eight: usize| {
        let high = block[66 + part] >> (2 * eight) & 3;
        usize::from(block[2 + 4 * part + eight]) | usize::from(high) << 8
    };
    let q = grid::eights(&grid::IQ2_S, index, |eight| block[34 + 4 * part + eight]);
    (scales(block, block[74 + part]), q)
}
