//! Elementwise operations.

use crate::cpu::multiversion;
use crate::error::{ShapeError, same};
use crate::math::tanh;

/// `x[i] += y[i]`: a residual connection.
///
/// # Errors
/// When the lengths differ.
pub fn add(x: &mut [f32], y: &[f32]) -> Result<(), ShapeError> {
    same("add", "number of addends", x.len(), y.len())?;
    add_all(x, y);
    Ok(())
}

multiversion! {
    fn add_all(x: &mut [f32], y: &[f32]) {
        for (x, y) in x.iter_mut().zip(y) {
            *x += y;
        }
    }
}

/// `x[i] *= factor`: scaled embeddings.
pub fn scale(x: &mut [f32], factor: f32) {
    scale_all(x, factor);
}

/// `x[i] = cap * tanh(x[i] / cap)`: keeps values between `-cap` and `cap`, and small ones nearly as they are (Gemma 2,
/// arXiv:2408.00118, section 2).
pub fn softcap(x: &mut [f32], cap: f32) {
    softcap_all(x, cap);
}

multiversion! {
    fn scale_all(x: &mut [f32], factor: f32) {
        for x in x {
            *x *= factor;
        }
    }
}

multiversion! {
    fn softcap_all(x: &mut [f32], cap: f32) {
        for x in x {
            *x = cap * tanh(*x / cap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_never_passed_and_small_values_stay() {
        let mut x = [0.0, 1e-3, -5.0, 1e6, -1e6];
        softcap(&mut x, 30.0);
        assert_eq!((x[0], x[3], x[4]), (0.0, 30.0, -30.0));
        assert!((x[1] - 1e-3).abs() < 1e-9);
        assert!((f64::from(x[2]) + 30.0 * (5f64 / 30.0).tanh()).abs() < 1e-6);
    }
}
