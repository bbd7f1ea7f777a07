//! The families of this module as the kernel check and the planner see them.

use super::{ConvWeights, DeltaShape, KeyHead, SlotStep};
use super::{delta_gates, delta_scan, gated_rms_norm, short_conv, sigmoid_gate};
use crate::family::ops::{FEW, Inputs, Op, ROWS, cost};
use crate::{Cost, DType, KernelKey, NumericClass};

/// Slots of a sequence that lives in slot 0 and has a past.
fn steps(rows: usize) -> Vec<SlotStep> {
    vec![SlotStep { from: Some(0), to: 0 }; rows]
}

/// `n` channels with filters of `k`; the first `k - 1` rows of the first input are the state.
pub(crate) static SHORT_CONV: &Op = &Op {
    name: "short_conv",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: &[(1, 1, 1), (300, 4, 9), (1024, 4, 1), (600, 2, 65), (17, 3, 9)],
    lengths: |key| [(key.m + key.k - 1) * key.n, key.k * key.n],
    cost: |key| {
        let state = 2 * (key.k - 1) * key.n;
        let Cost { bytes, .. } = cost(key.m * key.n + key.k * key.n + state, key.m * key.n, 0);
        Cost { bytes, flops: ((2 * key.k + 4) * key.m * key.n) as u64 }
    },
    run: |inputs, pool, out| {
        let KernelKey { n, k, m, .. } = inputs.key;
        let (state, x) = inputs.a.split_at((k - 1) * n);
        let weights = ConvWeights::new(&inputs.b, n, k)?;
        short_conv(pool, &weights, &steps(m), x, &mut state.to_vec(), out)
    },
    reference: |inputs| {
        let KernelKey { n, k, m, .. } = inputs.key;
        let value = |i: usize| {
            let (t, c) = (i / n, i % n);
            let terms = (0..k).map(|j| f64::from(inputs.b[c * k + j]) * f64::from(inputs.a[(t + j) * n + c]));
            let (sum, size) = terms.fold((0f64, 0f64), |(sum, size), v| (sum + v, size + v.abs()));
            // The slope of `silu` is below 1.1.
            (sum / (1.0 + (-sum).exp()), size * FEW + 1e-37)
        };
        (0..m * n).map(value).collect()
    },
};

/// Heads of the delta net that is checked: two value heads share a key head.
const KEY_HEADS: usize = 2;
const VALUE_HEADS: usize = 4;

fn delta_shape(key: &KernelKey) -> DeltaShape {
    // Both orders of heads occur.
    let key_head = if key.m.is_multiple_of(2) { KeyHead::Tiled } else { KeyHead::Grouped };
    DeltaShape {
        key_heads: KEY_HEADS,
        value_heads: VALUE_HEADS,
        key_dim: key.k,
        value_dim: key.n / VALUE_HEADS,
        key_head,
        eps: 1e-6,
    }
}

/// `m` rows of `n` heads: inputs of decays, then of betas; the second input holds rates and biases.
pub(crate) static DELTA_GATES: &Op = &Op {
    name: "delta_gates",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: &[(2, 1, 1), (64, 32, 1), (8, 4, 9), (64, 32, 65)],
    lengths: |key| [key.m * key.n, key.n],
    cost: |key| cost(key.m * key.n + key.n, key.m * key.n, 20),
    run: |inputs, _, out| {
        let (a, b) = inputs.a.split_at(inputs.a.len() / 2);
        let (rate, bias) = rates(inputs);
        delta_gates(a, b, &rate, bias, out)
    },
    reference: |inputs| {
        let heads = inputs.key.n / 2;
        let (a, b) = inputs.a.split_at(inputs.a.len() / 2);
        let (rate, bias) = rates(inputs);
        let value = |i: usize| {
            let (t, h) = (i / (2 * heads), i % heads);
            if i % (2 * heads) < heads {
                let x = f64::from(a[t * heads + h] + bias[h]);
                let rate = f64::from(rate[h]);
                let exponent = rate * (x.max(0.0) + (-x.abs()).exp().ln_1p());
                // An exponent is off by a few roundings, and so is what it gives, relatively.
                (exponent.exp(), exponent.exp() * (1.0 - exponent) * FEW + 1e-37)
            } else {
                let value = 1.0 / (1.0 + (-f64::from(b[t * heads + h])).exp());
                (value, value * FEW)
            }
        };
        (0..inputs.key.m * inputs.key.n).map(value).collect()
    },
};

/// Rates, which are negative, and biases.
fn rates(inputs: &Inputs) -> (Vec<f32>, &[f32]) {
    let (rate, bias) = inputs.b.split_at(inputs.b.len() / 2);
    (rate.iter().map(|v| -v.abs()).collect(), bias)
}

/// Four value heads of `n / 4` over two key heads of `k`, from a state of zeros. The second input becomes gates below one.
pub(crate) static DELTA_SCAN: &Op = &Op {
    name: "delta_scan",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: &[(512, 128, 1), (512, 128, 9), (64, 16, 65), (256, 48, 10), (332, 20, 9)],
    lengths: |key| [key.m * delta_shape(key).row_len(), key.m * 2 * VALUE_HEADS],
    cost: |key| {
        let shape = delta_shape(key);
        let reads = key.m * (shape.row_len() + 2 * VALUE_HEADS) + shape.state_len();
        let Cost { bytes, .. } = cost(reads, key.m * key.n + shape.state_len(), 0);
        Cost { bytes, flops: (7 * key.m * shape.state_len()) as u64 }
    },
    run: |inputs, pool, out| {
        let shape = delta_shape(&inputs.key);
        let mut steps = steps(inputs.key.m);
        steps[0].from = None;
        let (mut state, mut scratch) =
            (vec![0.0; shape.state_len()], vec![0.0; shape.scratch_len(pool.threads())]);
        delta_scan(pool, &shape, &steps, &inputs.a, &scan_gates(inputs), &mut state, &mut scratch, out)
    },
    reference: |inputs| {
        let heads = (0..VALUE_HEADS).map(|head| scan_head(inputs, head)).collect::<Vec<_>>();
        let width = inputs.key.n / VALUE_HEADS;
        let value = |i: usize| heads[i % inputs.key.n / width][i / inputs.key.n * width + i % width];
        // Values are below 16, and what a state holds of them is bounded; roundings of `k` terms mostly cancel out.
        let tolerance = 16.0 * FEW * (1.0 + inputs.key.k as f64 / 64.0);
        (0..inputs.key.m * inputs.key.n).map(|i| (value(i), tolerance)).collect()
    },
};

fn scan_gates(inputs: &Inputs) -> Vec<f32> {
    inputs.b.iter().map(|v| v.abs().fract()).collect()
}

/// The results of one head in f64: `[rows][n / 4]`.
fn scan_head(inputs: &Inputs, head: usize) -> Vec<f64> {
    let shape = delta_shape(&inputs.key);
    let DeltaShape { key_dim, value_dim, .. } = shape;
    let key = match shape.key_head {
        KeyHead::Grouped => head / (VALUE_HEADS / KEY_HEADS),
        KeyHead::Tiled => head % KEY_HEADS,
    };
    let gates = scan_gates(inputs);
    let mut state = vec![0f64; key_dim * value_dim];
    let mut out = Vec::with_capacity(inputs.key.m * value_dim);
    for (row, gates) in inputs.a.chunks_exact(shape.row_len()).zip(gates.chunks_exact(2 * VALUE_HEADS)) {
        let unit = |start: usize, scale: f64| {
            let x: Vec<f64> = row[start..][..key_dim].iter().map(|v| f64::from(*v)).collect();
            let length = (x.iter().map(|v| v * v).sum::<f64>() + 1e-6).sqrt();
            x.into_iter().map(|v| v / length * scale).collect::<Vec<_>>()
        };
        let q = unit(key * key_dim, 1.0 / (key_dim as f64).sqrt());
        let k = unit((KEY_HEADS + key) * key_dim, 1.0);
        let (decay, beta) = (f64::from(gates[head]), f64::from(gates[VALUE_HEADS + head]));
        for j in 0..value_dim {
            let column = |i: usize| i * value_dim + j;
            let held: f64 = (0..key_dim).map(|i| decay * state[column(i)] * k[i]).sum();
            let v = f64::from(row[2 * KEY_HEADS * key_dim + head * value_dim + j]);
            (0..key_dim).for_each(|i| state[column(i)] = decay * state[column(i)] + k[i] * beta * (v - held));
            out.push((0..key_dim).map(|i| state[column(i)] * q[i]).sum());
        }
    }
    out
}

/// `m` rows of `k` values and as many gates; the weight is the end of the second input.
pub(crate) static GATED_RMS_NORM: &Op = &Op {
    name: "gated_rms_norm",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: ROWS,
    lengths: |key| [key.m * key.k, (key.m + 1) * key.k],
    cost: |key| cost((2 * key.m + 1) * key.k, key.m * key.k, 9),
    run: |inputs, _, out| {
        let (gate, weight) = inputs.b.split_at(inputs.a.len());
        gated_rms_norm(&inputs.a, gate, weight, 1e-5, out)
    },
    reference: |inputs| {
        let k = inputs.key.k;
        let (gates, weight) = inputs.b.split_at(inputs.a.len());
        let row = |(x, gate): (&[f32], &[f32])| {
            let mean = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / k as f64;
            let scale = 1.0 / (mean + f64::from(1e-5f32)).sqrt();
            let tolerance = 2.0 * FEW + k as f64 / 16.0 * f64::from(f32::EPSILON);
            let value = |i: usize| {
                let gate = f64::from(gate[i]);
                let value = f64::from(x[i]) * scale * f64::from(weight[i]) * gate / (1.0 + (-gate).exp());
                (value, value.abs() * tolerance + 1e-37)
            };
            (0..k).map(value).collect::<Vec<_>>()
        };
        inputs.a.chunks_exact(k).zip(gates.chunks_exact(k)).flat_map(row).collect()
    },
};

/// `m` rows of `n` values; `k` values share a gate.
pub(crate) static SIGMOID_GATE: &Op = &Op {
    name: "sigmoid_gate",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: &[(576, 1, 1), (17, 1, 9), (576, 576, 9), (64, 1, 65), (64, 64, 65)],
    lengths: |key| [key.m * key.n, key.m * key.n / key.k],
    cost: |key| cost(key.m * key.n + key.m * key.n / key.k, key.m * key.n, if key.k == 1 { 4 } else { 1 }),
    run: |inputs, _, out| {
        out.copy_from_slice(&inputs.a);
        sigmoid_gate(out, &inputs.b, inputs.key.k)
    },
    reference: |inputs| {
        let value = |(i, x): (usize, &f32)| {
            let gate = f64::from(inputs.b[i / inputs.key.k]);
            let value = f64::from(*x) / (1.0 + (-gate).exp());
            (value, value.abs() * FEW)
        };
        inputs.a.iter().enumerate().map(value).collect()
    },
};
