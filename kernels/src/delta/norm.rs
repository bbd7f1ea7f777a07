//! The norm at the end of a delta net layer, gated by the layer's input.

use crate::cpu::multiversion;
use crate::error::{ShapeError, same};
use crate::math::exp;
use crate::norm::rms_norm;

/// `out = x / sqrt(mean(x²) + eps) * weight * silu(gate)` for each row of `weight.len()` values, with
/// `silu(x) = x / (1 + exp(-x))`: the norm comes first, then the gate.
///
/// The norm is [`rms_norm`]'s, bit for bit; `x`, `gate` and `out` hold the same number of rows.
///
/// # Errors
/// When `x` is no whole number of rows, or `gate` or `out` of another length.
pub fn gated_rms_norm(
    x: &[f32],
    gate: &[f32],
    weight: &[f32],
    eps: f32,
    out: &mut [f32],
) -> Result<(), ShapeError> {
    same("gated_rms_norm", "number of gates", x.len(), gate.len())?;
    rms_norm(x, weight, eps, out)?;
    multiply_silu(gate, out);
    Ok(())
}

multiversion! {
    fn multiply_silu(gate: &[f32], out: &mut [f32]) {
        for (out, gate) in out.iter_mut().zip(gate) {
            *out *= gate / (1.0 + exp(-gate));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_norm_comes_before_the_gate() {
        let (x, gate) = ([3.0f32, -4.0], [1.0f32, -200.0]);
        let mut out = [f32::NAN; 2];
        gated_rms_norm(&x, &gate, &[2.0, 1.0], 0.0, &mut out).unwrap();
        let want = 3.0 / 12.5f64.sqrt() * 2.0 * (1.0 / (1.0 + (-1f64).exp()));
        assert!((f64::from(out[0]) - want).abs() < 1e-6, "{out:?}");
        assert_eq!(out[1], 0.0);
        assert!(gated_rms_norm(&x, &gate[..1], &[2.0, 1.0], 0.0, &mut out).is_err());
        assert!(gated_rms_norm(&x, &gate, &[2.0, 1.0, 1.0], 0.0, &mut out).is_err());
    }
}
