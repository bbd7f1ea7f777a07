//! F32, F16, BF16 and F8_E4M3: little-endian values without blocks.

use super::e4m3;
use crate::DType;
use half::f16;

/// The value of one stored element.
pub(crate) fn load(dtype: DType, bytes: &[u8]) -> f32 {
    match (dtype, bytes) {
        (DType::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
        (DType::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f32(),
        (_, &[a, b]) => f32::from_bits(u32::from(u16::from_le_bytes([a, b])) << 16),
        (_, &[byte]) => e4m3::to_f32(byte),
        _ => 0.0,
    }
}

pub(super) fn decode(dtype: DType, data: &[u8], out: &mut [f32]) {
    for (bytes, value) in data.chunks_exact(dtype.block_bytes()).zip(out) {
        *value = load(dtype, bytes);
    }
}

pub(super) fn encode(dtype: DType, values: &[f32], data: &mut [u8]) {
    for (bytes, &value) in data.chunks_exact_mut(dtype.block_bytes()).zip(values) {
        match dtype {
            DType::F32 => bytes.copy_from_slice(&value.to_le_bytes()),
            DType::F16 => bytes.copy_from_slice(&f16::from_f32(value).to_le_bytes()),
            DType::F8_E4M3 => bytes[0] = e4m3::from_f32(value),
            _ => bytes.copy_from_slice(&bf16_bits(value).to_le_bytes()),
        }
    }
}

/// Rounds to nearest even; a NaN stays one (quiet).
fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}
