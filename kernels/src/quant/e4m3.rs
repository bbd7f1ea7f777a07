//! FP8 E4M3 as safetensors' `F8_E4M3` has it: sign, four bits of exponent (bias 7), three of mantissa, no infinities.
//! Exponent and mantissa all ones are NaN; exponent zero is denormal, in units of 2^-9.

/// The largest finite value.
pub(super) const LARGEST: f32 = 448.0;

/// The value of a byte, exact.
pub(crate) fn to_f32(byte: u8) -> f32 {
    let (sign, magnitude) = (u32::from(byte & 0x80) << 24, byte & 0x7f);
    let value = match magnitude {
        0x7f => f32::NAN,
        0..8 => f32::from(magnitude) / 512.0,
        // The same fields in f32's places, the bias moved from 7 to 127.
        _ => f32::from_bits((u32::from(magnitude) << 20) + (120 << 23)),
    };
    f32::from_bits(value.to_bits() | sign)
}

/// The nearest byte, halfway to even; what would round above the largest value is NaN, infinity too.
pub(super) fn from_f32(value: f32) -> u8 {
    let sign = (value.to_bits() >> 24) as u8 & 0x80;
    let size = value.abs();
    let magnitude = if size.is_nan() || size > 464.0 {
        0x7f
    } else if size < 1.0 / 64.0 {
        (size * 512.0).round_ties_even() as u8
    } else {
        let bits = size.to_bits();
        (((bits + 0x7_ffff + (bits >> 20 & 1)) >> 20) - (120 << 3)) as u8
    };
    sign | magnitude
}
