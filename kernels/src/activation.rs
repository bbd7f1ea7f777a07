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
}
