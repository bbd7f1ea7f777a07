//! FP4 E2M1, the values of MXFP4 and NVFP4: sign, two bits of exponent, one of mantissa.

use super::codes::{GROUP, nibble};

/// Twice the value of each code, so that all are integers. Code 8 reads as plain zero, as ggml has it.
pub(crate) const DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The largest doubled value.
pub(super) const LARGEST: f32 = 12.0;

/// Where one doubled magnitude gives way to the next.
const BETWEEN: [f32; 7] = [0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0];

/// The code whose doubled value times `d` is nearest to `value`; halfway, the smaller magnitude. `d` is not negative,
/// and where it is zero so is the code.
pub(super) fn nearest(value: f32, d: f32) -> u8 {
    if d == 0.0 {
        return 0;
    }
    let magnitude = BETWEEN.iter().filter(|between| value.abs() > d * **between).count() as u8;
    if value < 0.0 && magnitude > 0 { 8 + magnitude } else { magnitude }
}

/// The doubled values of 32 codes in 16 bytes.
pub(super) fn doubled(run: &[u8]) -> [i8; GROUP] {
    std::array::from_fn(|i| DOUBLED[usize::from(nibble(run, i))])
}
