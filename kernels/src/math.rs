//! Elementary functions with the same bits on every machine.

/// `e^x`, within 1.5 units in the last place of normal results; smaller ones go through denormals to zero, larger
/// than f32 to infinity, and NaN stays NaN.
///
/// `x = n ln 2 + r` with `|r| <= ln 2 / 2`; `e^r` is a polynomial of degree 6 with relative error 3e-9; the power of two
/// is multiplied in halves, so that denormal results round once more. Only additions and multiplications, no branch: a
/// loop over it vectorises, and the bits do not depend on how.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    /// `1.5 * 2^23`: adding it leaves the nearest integer in the low bits.
    const SHIFT: f32 = 12_582_912.0;
    /// `ln 2` in two parts; the first has few enough bits that its product with `n` is exact.
    const LN2_HIGH: f32 = 355.0 / 512.0;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    /// `(e^r - 1 - r) / r²` on the range, least relative error in `e^r`.
    const C: [f32; 5] = [0.499_999_94, 0.166_665_21, 0.041_668_39, 0.008_368_745, 0.001_381_454_2];
    // Beyond these the result is infinity or zero all the same. A NaN passes.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let tail = C[0] + r * (C[1] + r * (C[2] + r * (C[3] + r * C[4])));
    let value = 1.0 + (r + r * r * tail);
    let n = shifted.to_bits().wrapping_sub(SHIFT.to_bits()) as i32;
    let half = n >> 1;
    value * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// The hyperbolic tangent, within 3 units in the last place; NaN stays NaN.
///
/// Near zero `x + x³ P(x²)` with a polynomial of degree 4 and relative error 2e-8, beyond it `1 - 2 / (e^(2|x|) + 1)` with
/// the sign of `x`. Both are computed and one is taken, so that a loop over it vectorises.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    /// `(tanh x / x - 1) / x²` as a polynomial in `x²`, up to `x² = 0.4`.
    const C: [f32; 5] = [-0.333_333_28, 0.133_327_19, -0.053_843_264, 0.020_961_33, -0.006_045_165];
    let square = x * x;
    let near = x + x * square * (C[0] + square * (C[1] + square * (C[2] + square * (C[3] + square * C[4]))));
    let far = (1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0)).copysign(x);
    if square < 0.4 { near } else { far }
}

/// `1 / (1 + e^-x)`, within a few units in the last place.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `2^n` for `-126 <= n <= 127`.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_its_bound_of_f64() {
        let mut worst = 0f64;
        for bits in (0..=0x42b1_7217u32).step_by(1009) {
            for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                let want = f64::from(x).exp();
                if want < f64::from(f32::MIN_POSITIVE) {
                    continue;
                }
                // An ulp of a result in [2^e, 2^(e+1)).
                let ulp = 2f64.powi(want.log2().floor() as i32 - 23);
                worst = worst.max((f64::from(exp(x)) - want).abs() / ulp);
            }
        }
        assert!(worst < 1.5, "{worst} ulp");
        assert!(worst > 0.4, "the test compares nothing: {worst} ulp");
    }

    #[test]
    fn tanh_is_within_its_bound_of_f64() {
        let mut worst = 0f64;
        for bits in (f32::MIN_POSITIVE.to_bits()..=20f32.to_bits()).step_by(1009) {
            for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                let want = f64::from(x).tanh();
                let ulp = 2f64.powi(want.abs().log2().floor() as i32 - 23);
                worst = worst.max((f64::from(tanh(x)) - want).abs() / ulp);
            }
        }
        assert!(worst < 3.0, "{worst} ulp");
        assert!(worst > 0.4, "the test compares nothing: {worst} ulp");
        assert_eq!((tanh(0.0), tanh(1e30), tanh(f32::NEG_INFINITY)), (0.0, 1.0, -1.0));
        assert!(tanh(f32::NAN).is_nan());
    }

    #[test]
    fn exp_of_special_values() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(88.73), f32::INFINITY);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e30), 0.0);
        assert!(exp(f32::NAN).is_nan());
        let denormal = exp(-100.0);
        assert!((f64::from(denormal) - (-100f64).exp()).abs() <= 2f64.powi(-149), "{denormal:e}");
    }
}
