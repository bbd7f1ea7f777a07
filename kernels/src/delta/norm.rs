//! The norm at the end of a delta net layer, gated by the layer's input.

use crate::cpu::multiversion;
use crate::error::{ShapeError, same};
use crate::math::exp;

/// Partial sums of a row: value `i` goes to sum `i % LANES`.
const LANES: usize = 8;

/// `out = x / sqrt(mean(x²) + eps) * weight * silu(gate)` for each row of `weight.len()` values, with
/// `silu(x) = x / (1 + exp(-x))`: the norm comes first, then the gate.
///
/// All but `exp` is in f64, from left to right, and rounded at the end: rows may be short, and what nearly cancelled out in
/// them is blown up here. Squares are added in eight interleaved sums. `x`, `gate` and `out` hold the same number of rows.
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
    const OP: &str = "gated_rms_norm";
    same(OP, "number of gates", x.len(), gate.len())?;
    same(OP, "number of outputs", x.len(), out.len())?;
    let rows = x.len().checked_div(weight.len()).unwrap_or(0);
    same(OP, "number of inputs", rows * weight.len(), x.len())?;
    rows_of(x, gate, weight, eps, out);
    Ok(())
}

multiversion! {
    fn rows_of(x: &[f32], gate: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        let k = weight.len().max(1);
        let inputs = x.chunks_exact(k).zip(gate.chunks_exact(k));
        for ((x, gate), out) in inputs.zip(out.chunks_exact_mut(k)) {
            let mut sums = [0f64; LANES];
            let (blocks, tail) = x.as_chunks::<LANES>();
            for block in blocks {
                for (sum, v) in sums.iter_mut().zip(block) {
                    *sum += f64::from(*v) * f64::from(*v);
                }
            }
            for (sum, v) in sums.iter_mut().zip(tail) {
                *sum += f64::from(*v) * f64::from(*v);
            }
            let mean = sums.iter().sum::<f64>() / k as f64;
            let scale = 1.0 / (mean + f64::from(eps)).sqrt();
            for (((out, x), gate), w) in out.iter_mut().zip(x).zip(gate).zip(weight) {
                let silu = f64::from(*gate) / (1.0 + f64::from(exp(-*gate)));
                *out = (f64::from(*x) * scale * f64::from(*w) * silu) as f32;
            }
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
