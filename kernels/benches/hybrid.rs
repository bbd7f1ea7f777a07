//! One layer of a hybrid the size of Qwen3.5-35B-A3B: its delta net's scan and convolution, and its experts' products (256
//! experts of 512, 8 of them used, Q4_K), for one token and for a chunk of a prompt.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use memra_kernels::cpu::{Pool, physical_cores};
use memra_kernels::delta::{ConvWeights, DeltaShape, KeyHead, SlotStep, delta_scan, short_conv};
use memra_kernels::matmul::{self, Activations, Matrix, PackedMatrix, Q8Rows};
use memra_kernels::moe::{Router, Routes, Scoring, route};
use memra_kernels::testdata::{Random, activations, weights};
use memra_kernels::{DType, KernelKey, NumericClass, NumericPath};
use std::hint::black_box;

const SHAPE: DeltaShape = DeltaShape {
    key_heads: 16,
    value_heads: 32,
    key_dim: 128,
    value_dim: 128,
    key_head: KeyHead::Tiled,
    eps: 1e-6,
};
const TAPS: usize = 4;
const ROWS: [usize; 2] = [1, 64];

/// Experts, how many a row uses, width of one, and of the rows.
const EXPERTS: (usize, usize, usize, usize) = (256, 8, 512, 2048);

/// Rows of one sequence with a past.
fn steps(rows: usize) -> Vec<SlotStep> {
    let first = SlotStep { from: Some(0), to: 1 };
    [first].into_iter().chain((1..rows).map(|_| SlotStep { from: Some(1), to: 1 })).collect()
}

fn delta_net(c: &mut Criterion) {
    let pool = Pool::new(physical_cores());
    let mut random = Random::new(1);
    let channels = SHAPE.row_len();
    let filters = activations(&mut random, 1, channels * TAPS);
    let filters = ConvWeights::new(&filters, channels, TAPS).expect("sizes agree");
    let mut states = vec![0.01; 2 * SHAPE.state_len()];
    let mut inputs = vec![0.0; 2 * filters.state_len()];
    let mut scratch = vec![0.0; SHAPE.scratch_len(pool.threads())];
    for rows in ROWS {
        let x = activations(&mut random, rows, channels);
        let gates = vec![0.5; rows * 2 * SHAPE.value_heads];
        let (mut mixed, mut out) = (vec![0.0; x.len()], vec![0.0; rows * SHAPE.out_len()]);
        let steps = steps(rows);
        let mut group = c.benchmark_group("delta_net");
        group.throughput(Throughput::Elements(rows as u64));
        group.bench_function(format!("short_conv/{rows}"), |b| {
            b.iter(|| short_conv(&pool, &filters, &steps, black_box(&x), &mut inputs, &mut mixed));
        });
        group.bench_function(format!("delta_scan/{rows}"), |b| {
            b.iter(|| {
                let x = black_box(&x);
                delta_scan(&pool, &SHAPE, &steps, x, &gates, &mut states, &mut scratch, &mut out)
            });
        });
    }
}

fn experts(c: &mut Criterion) {
    let (count, used, n, k) = EXPERTS;
    let (pool, mut random) = (Pool::new(physical_cores()), Random::new(1));
    let data = weights(&mut random, DType::Q4_K, n, k).expect("rows fill blocks");
    let matrix = Matrix::new(DType::Q4_K, n, k, &data).expect("sizes agree");
    let matrices = vec![PackedMatrix::pack(&matrix, &pool); count];
    for rows in ROWS {
        let router = Router { scoring: Scoring::Softmax, renormalise: true, scale: 1.0 };
        let mut routes = Routes::with_capacity(rows, used, count);
        route(&router, &activations(&mut random, rows, count), None, &mut routes).expect("sizes agree");
        let mut x = Q8Rows::with_capacity(routes.slots(), k);
        x.quantise(&pool, &activations(&mut random, routes.slots(), k), routes.slots()).expect("it fits");
        let key = KernelKey {
            family: "experts".into(),
            dtype: DType::Q4_K,
            class: NumericClass::Q8,
            path: NumericPath::Decode,
            n,
            k,
            m: routes.slots().div_ceil(routes.active().len()),
        };
        let config = matmul::family().default_for(&key, pool.threads());
        let mut out = vec![0.0; routes.slots() * n];
        let mut group = c.benchmark_group("experts");
        group.throughput(Throughput::Bytes((routes.active().len() * data.len()) as u64));
        group.bench_function(format!("product/{rows}"), |b| {
            b.iter(|| {
                let x = Activations::Q8(black_box(&x));
                matmul::experts(&pool, &config, matrices.as_slice(), &routes, &x, &mut out)
            });
        });
    }
}

criterion_group!(benches, delta_net, experts);
criterion_main!(benches);
