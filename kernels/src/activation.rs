//! Gated activations.

use crate::cpu::multiversion;
use crate::error::{ShapeError, same};
use crate::math::exp;

/// `out[i] = silu(gate[i]) * up[i]`, with `silu(x) = x / (1 + exp(-x))`.
///
/// # Errors
/// When the lengths differ.
pub fn swiglu(gate: &[f32], up: &[f32], out: &mut [f32]) -> Result<(), ShapeError> {
    same("swiglu", "values of `up`", gate.len(), up.len())?;
    same("swiglu", "number of outputs", gate.len(), out.len())?;
    swiglu_all(gate, up, out);
    Ok(())
}

multiversion! {
    fn swiglu_all(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
            *out = gate / (1.0 + exp(-gate)) * up;
        }
    }
}

/// `out[i] = gelu(gate[i]) * up[i]`, with the tanh form of GELU: `gelu(x) = x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`
/// (Hendrycks and Gimpel, arXiv:1606.08415), computed as `x / (1 + exp(-2√(2/π) (x + 0.044715 x³)))`, which is the same.
///
/// # Errors
/// When the lengths differ.
pub fn geglu(gate: &[f32], up: &[f32], out: &mut [f32]) -> Result<(), ShapeError> {
    same("geglu", "values of `up`", gate.len(), up.len())?;
    same("geglu", "number of outputs", gate.len(), out.len())?;
    geglu_all(gate, up, out);
    Ok(())
}

/// `2 √(2/π)`.
const GELU_SCALE: f32 = 1.595_769;

multiversion! {
    fn geglu_all(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
            let inner = GELU_SCALE * (gate + 0.044_715 * gate * gate * gate);
            *out = gate / (1.0 + exp(-inner)) * up;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::Random;

    #[test]
    fn swiglu_matches_f64() {
        let mut random = Random::new(1);
        let gate: Vec<f32> = (0..1000).map(|_| random.uniform() * 30.0).chain([200.0, -200.0, 0.0]).collect();
        let up: Vec<f32> = gate.iter().map(|_| random.uniform()).collect();
        let mut out = vec![f32::NAN; gate.len()];
        swiglu(&gate, &up, &mut out).unwrap();
        for ((g, u), out) in gate.iter().zip(&up).zip(&out) {
            let g = f64::from(*g);
            let want = g / (1.0 + (-g).exp()) * f64::from(*u);
            assert!((f64::from(*out) - want).abs() <= 5e-7 * want.abs() + 1e-37, "{g}: {out} {want}");
        }
    }

    #[test]
    fn geglu_matches_f64() {
        let mut random = Random::new(2);
        let gate: Vec<f32> = (0..1000).map(|_| random.uniform() * 12.0).chain([200.0, -200.0, 0.0]).collect();
        let up: Vec<f32> = gate.iter().map(|_| random.uniform()).collect();
        let mut out = vec![f32::NAN; gate.len()];
        geglu(&gate, &up, &mut out).unwrap();
        for ((g, u), out) in gate.iter().zip(&up).zip(&out) {
            let g = f64::from(*g);
            let tanh = ((2.0 / std::f64::consts::PI).sqrt() * (g + 0.044715 * g.powi(3))).tanh();
            let want = 0.5 * g * (1.0 + tanh) * f64::from(*u);
            assert!((f64::from(*out) - want).abs() <= 1e-6 * want.abs() + 1e-7, "{g}: {out} {want}");
        }
        assert!(geglu(&gate, &up[1..], &mut out).is_err());
    }
}
