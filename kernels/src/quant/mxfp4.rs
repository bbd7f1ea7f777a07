//! MXFP4: 32 values in 17 bytes. `value = 2^(e - 128) * doubled[q]`, the type of the OCP microscaling formats.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | `e`: u8; 255, a NaN in the OCP document, is a power like the others, as in ggml |
//! | 1..17 | byte `i`: `q[i]` in the low four bits, `q[16 + i]` in the high ones |
//!
//! `doubled` is [`e2m1::DOUBLED`], which is why the power is half of what E8M0 says.

use super::codes::{GROUP, Scales, put_nibbles};
use super::e2m1;

/// The bf16 bits of `2^(e - 128)`: the two smallest are denormal.
fn half_power(e: u8) -> u16 {
    if e < 2 { 0x20 << e } else { u16::from(e - 1) << 7 }
}

pub(super) fn read(block: &[u8]) -> (Scales, [i8; GROUP]) {
    (Scales { d: [half_power(block[0]); 2], ..Scales::default() }, e2m1::doubled(&block[1..]))
}

/// The largest magnitude lies below twice the power that code 4 (2.0) stands for, as the OCP document has it, so it
/// may be cut to 1.5 times that power. The bits of the `gguf` package.
pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let largest = values.iter().fold(0f32, |a, v| a.max(v.abs()));
    // Its exponent, less the two of the largest code.
    block[0] = (largest.to_bits() >> 23).saturating_sub(2) as u8;
    let d = f32::from_bits(u32::from(half_power(block[0])) << 16);
    put_nibbles(&std::array::from_fn(|i| e2m1::nearest(values[i], d)), &mut block[1..]);
}
