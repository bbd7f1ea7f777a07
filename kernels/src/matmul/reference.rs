//! What a matrix product means: a scalar version with the exact order of operations, and one in f64.

use super::{Activations, Q8Block, Weights};
use crate::quant::{self, GROUP};

/// The product with the reduction order of the family, one output at a time: bit for bit what every version gives.
///
/// Sizes must agree.
pub(super) fn ordered(w: &Weights<'_>, x: &Activations<'_>, out: &mut [f32]) {
    let (n, k) = (w.n(), w.k());
    let mut row = vec![0f32; k];
    for o in 0..n {
        // The size was checked by the caller.
        let _ = w.row_decode(o, &mut row);
        for t in 0..x.rows() {
            out[t * n + o] = match x {
                Activations::F32 { x, .. } => dot_f32(&row, &x[t * k..][..k]),
                Activations::Q8(x) if w.dtype().is_quantised() => dot_q8(w, o, x.row(t)),
                Activations::Q8(x) => dot_float_q8(&row, x.row(t)),
            };
        }
    }
}

/// Products and sums in f64, in increasing k.
fn dot_f32(w: &[f32], x: &[f32]) -> f32 {
    w.iter().zip(x).fold(0f64, |sum, (w, x)| f64::from(*w).mul_add(f64::from(*x), sum)) as f32
}

/// Float weights with quantised activations: the codes of a group are summed by fused multiply-add in increasing k, and
/// folded with their scale.
fn dot_float_q8(w: &[f32], x: &[Q8Block]) -> f32 {
    let mut acc = 0f32;
    for (w, x) in w.chunks(GROUP).zip(x) {
        let sum = w.iter().zip(&x.codes).fold(0f32, |sum, (w, q)| w.mul_add(f32::from(*q), sum));
        acc = x.scale.mul_add(sum, acc);
    }
    acc
}

fn dot_q8(w: &Weights<'_>, row: usize, x: &[Q8Block]) -> f32 {
    let halved = quant::rule(w.dtype()).halved();
    let mut acc = 0f32;
    for (group, x) in x.iter().enumerate() {
        let Some(codes) = w.codes(row, group) else { continue };
        let sum = |range: std::ops::Range<usize>| -> i32 {
            range.map(|i| i32::from(codes.q[i]) * i32::from(x.codes[i])).sum()
        };
        let mut fold = |half: usize, sum: i32, x_sum: f32| {
            let (scale, sum) = (codes.scale[half], sum as f32);
            let term = match codes.min {
                Some(min) => scale.mul_add(sum, min[half] * x_sum),
                None => scale * sum,
            };
            acc = x.scale.mul_add(term, acc);
        };
        if halved {
            (0..2).for_each(|half| fold(half, sum(16 * half..16 * half + 16), x.halves[half]));
        } else {
            fold(0, sum(0..GROUP), x.sum);
        }
    }
    acc
}

/// The product in f64, from the decoded weights and the activations as they are held, with the sum of the terms'
/// magnitudes: `(value, magnitude)` for each output, `[rows][n]`.
pub(super) fn exact(w: &Weights<'_>, x: &Activations<'_>) -> Vec<(f64, f64)> {
    let (n, k, rows) = (w.n(), w.k(), x.rows());
    let x: Vec<f64> = match x {
        Activations::F32 { x, .. } => x.iter().map(|v| f64::from(*v)).collect(),
        Activations::Q8(q) => (0..rows).flat_map(|t| dequantised(q.row(t), k)).collect(),
    };
    let mut row = vec![0f32; k];
    let mut out = vec![(0f64, 0f64); rows * n];
    for o in 0..n {
        // The size is `k` by construction.
        let _ = w.row_decode(o, &mut row);
        for t in 0..rows {
            let terms = row.iter().zip(&x[t * k..][..k]).map(|(w, x)| f64::from(*w) * x);
            out[t * n + o] = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
        }
    }
    out
}

fn dequantised(blocks: &[Q8Block], k: usize) -> impl Iterator<Item = f64> + '_ {
    let values = blocks.iter().flat_map(|b| b.codes.iter().map(|q| f64::from(*q) * f64::from(b.scale)));
    values.take(k)
}
