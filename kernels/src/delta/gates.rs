//! Gates: how fast a delta net's state decays and how much of an error it takes in; and factors by a sigmoid.

use crate::cpu::multiversion;
use crate::error::{ShapeError, same};
use crate::math::{exp, sigmoid};

/// For each row and head, the factor on the state and the step size of the delta rule:
/// `decay = exp(rate[h] * softplus(a[h] + dt_bias[h]))` and `beta = sigmoid(b[h])`, with
/// `softplus(x) = ln(1 + exp(x))`. `rate` is `-exp(A_log)`.
///
/// `a` and `b` are `[rows][heads]`, `rate` and `dt_bias` `[heads]`, `out` is `[rows][2][heads]`: decays, then betas.
///
/// # Errors
/// When a size does not fit the others.
pub fn delta_gates(
    a: &[f32],
    b: &[f32],
    rate: &[f32],
    dt_bias: &[f32],
    out: &mut [f32],
) -> Result<(), ShapeError> {
    const OP: &str = "delta_gates";
    let heads = rate.len();
    same(OP, "number of biases", heads, dt_bias.len())?;
    let rows = a.len().checked_div(heads).unwrap_or(0);
    same(OP, "number of decay inputs", rows * heads, a.len())?;
    same(OP, "number of beta inputs", a.len(), b.len())?;
    same(OP, "number of outputs", 2 * a.len(), out.len())?;
    let inputs = a.chunks_exact(heads.max(1)).zip(b.chunks_exact(heads.max(1)));
    for ((a, b), out) in inputs.zip(out.chunks_exact_mut(2 * heads.max(1))) {
        let (decays, betas) = out.split_at_mut(heads);
        for (h, decay) in decays.iter_mut().enumerate() {
            *decay = exp(rate[h] * softplus(a[h] + dt_bias[h]));
        }
        for (beta, b) in betas.iter_mut().zip(b) {
            *beta = sigmoid(*b);
        }
    }
    Ok(())
}

/// `x[i] *= sigmoid(gate[i / width])`, with `sigmoid(x) = 1 / (1 + exp(-x))`: one gate for each `width` values.
///
/// # Errors
/// When there are not `width` values for each gate.
pub fn sigmoid_gate(x: &mut [f32], gate: &[f32], width: usize) -> Result<(), ShapeError> {
    same("sigmoid_gate", "number of values", gate.len().saturating_mul(width), x.len())?;
    if width == 1 {
        each(x, gate);
    } else {
        for (x, gate) in x.chunks_exact_mut(width.max(1)).zip(gate) {
            scale(x, sigmoid(*gate));
        }
    }
    Ok(())
}

multiversion! {
    fn each(x: &mut [f32], gate: &[f32]) {
        for (x, gate) in x.iter_mut().zip(gate) {
            *x *= sigmoid(*gate);
        }
    }
}

multiversion! {
    fn scale(x: &mut [f32], factor: f32) {
        for x in x {
            *x *= factor;
        }
    }
}

/// `ln(1 + exp(x))`, within a few roundings: `max(x, 0) + ln(1 + t)` with `t = exp(-|x|)`, and
/// `ln(1 + t) = 2 artanh(t / (2 + t))`, whose argument is at most a third.
fn softplus(x: f32) -> f32 {
    let t = f64::from(exp(-x.abs()));
    let s = t / (2.0 + t);
    // Terms `s^(2i) / (2i + 1)` for `i < 9`: the next is below 1e-9 of the first.
    let series = (0..9).rev().fold(0.0, |sum, i| sum * (s * s) + 1.0 / f64::from(2 * i + 1));
    (f64::from(x.max(0.0)) + 2.0 * s * series) as f32 + if x.is_nan() { x } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softplus_matches_f64() {
        for i in -2000..2000 {
            let x = i as f32 * 0.05;
            let want = f64::from(x).exp().ln_1p();
            let got = f64::from(softplus(x));
            // `exp` is within 1.5 units in the last place; below 1e-37 it is denormal.
            assert!((got - want).abs() <= 3e-7 * want + 1e-37, "{x}: {got:e} {want:e}");
        }
        assert_eq!(softplus(f32::INFINITY), f32::INFINITY);
        assert_eq!(softplus(f32::NEG_INFINITY), 0.0);
        assert!(softplus(f32::NAN).is_nan());
    }

    #[test]
    fn decays_and_betas_lie_where_they_should() {
        let (a, b) = ([0.0, 100.0, -50.0, 1.0], [0.0, 100.0, -80.0, 1.0]);
        let mut out = [f32::NAN; 8];
        delta_gates(&a, &b, &[-1.0, -2.0], &[0.0, 0.5], &mut out).unwrap();
        let last = (-2.0 * 1.5f64.exp().ln_1p()).exp();
        let want = [0.5, 0.0, 0.5, 1.0, 1.0, last, (-80f64).exp(), 1.0 / (1.0 + (-1f64).exp())];
        for (got, want) in out.iter().zip(want) {
            assert!((f64::from(*got) - want).abs() <= 1e-6 * want, "{out:?}");
        }
    }

    #[test]
    fn one_gate_serves_one_value_or_a_row() {
        let mut x = [1.0f32, -2.0, 3.0, 4.0];
        sigmoid_gate(&mut x, &[0.0; 4], 1).unwrap();
        assert_eq!(x, [0.5, -1.0, 1.5, 2.0]);
        sigmoid_gate(&mut x, &[0.0, 200.0], 2).unwrap();
        assert_eq!(x, [0.25, -0.5, 1.5, 2.0]);
        sigmoid_gate(&mut [], &[], 0).unwrap();
    }

    #[test]
    fn sizes_that_do_not_fit_are_errors() {
        assert!(sigmoid_gate(&mut [0.0; 4], &[0.0; 3], 1).is_err());
        assert!(sigmoid_gate(&mut [0.0; 4], &[0.0; 3], 2).is_err());
        let gates = |a: usize, b: usize, rate: usize, bias: usize, out: usize| {
            let zeros = |n| vec![0f32; n];
            delta_gates(&zeros(a), &zeros(b), &zeros(rate), &zeros(bias), &mut zeros(out))
        };
        assert!(gates(4, 4, 2, 2, 8).is_ok());
        assert!(gates(0, 0, 0, 0, 0).is_ok());
        for sizes in [(4, 4, 2, 1, 8), (3, 3, 2, 2, 6), (4, 2, 2, 2, 8), (4, 4, 2, 2, 4), (4, 4, 0, 0, 8)] {
            assert!(gates(sizes.0, sizes.1, sizes.2, sizes.3, sizes.4).is_err(), "{sizes:?}");
        }
    }
}
