//! NVFP4: 64 values in 36 bytes, four parts of 16. `value = d[i / 16] * doubled[q]`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | `2 d[s]`: E4M3 without its sign, of which the top bit is ignored; 127, a NaN, is zero, as in ggml |
//! | 4..36 | byte `8 s + i`: value `i` of part `s` in the low four bits, value `8 + i` in the high ones |
//!
//! `doubled` is [`e2m1::DOUBLED`]. Files hold one more factor for the whole tensor in a tensor of its own, which is the
//! model's to apply.

use super::codes::{GROUP, Scales};
use super::{e2m1, e4m3};

/// What a scale byte stands for, halved.
fn half_scale(byte: u8) -> f32 {
    match byte {
        0x7f => 0.0,
        // The code after the largest, had it not been taken for a NaN.
        0xff => 240.0,
        _ => e4m3::to_f32(byte & 0x7f) * 0.5,
    }
}

/// Value `i` of part `part` of 32: (byte, shift).
fn place(part: usize, i: usize) -> (usize, usize) {
    (4 + 16 * part + i / 16 * 8 + i % 8, i % 16 / 8 * 4)
}

pub(super) fn read(block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    // At most four significant bits: exact as a bf16.
    let d = [0, 1].map(|h| (half_scale(block[2 * part + h]).to_bits() >> 16) as u16);
    let q = std::array::from_fn(|i| {
        let (byte, shift) = place(part, i);
        e2m1::DOUBLED[usize::from(block[byte] >> shift & 15)]
    });
    (Scales { d, ..Scales::default() }, q)
}

/// The largest magnitude of a part becomes the largest code.
pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    block.fill(0);
    for (s, part) in values.chunks_exact(16).enumerate() {
        let largest = part.iter().fold(0f32, |a, v| a.max(v.abs()));
        block[s] = e4m3::from_f32((2.0 * largest / e2m1::LARGEST).min(e4m3::LARGEST));
        let d = half_scale(block[s]);
        for (i, v) in part.iter().enumerate() {
            let (byte, shift) = place(s / 2, 16 * (s % 2) + i);
            block[byte] |= e2m1::nearest(*v, d) << shift;
        }
    }
}
