//! The matrix products of one step of SmolLM2-135M (Q4_1 layers, Q8_0 head): every layer has weights of its own, so the
//! caches see what they see in a real step.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use memra_kernels::cpu::{Pool, physical_cores};
use memra_kernels::matmul::{self, Activations, MatmulConfig, Matrix, PackedMatrix, Q8Rows, Weights};
use memra_kernels::testdata::{Random, activations, weights};
use memra_kernels::{DType, KernelKey, NumericClass, NumericPath};
use std::hint::black_box;

const LAYERS: usize = 30;

/// (n, k) of a layer's products.
const LAYER: [(usize, usize); 7] =
    [(576, 576), (192, 576), (192, 576), (576, 576), (1536, 576), (1536, 576), (576, 1536)];

const HEAD: (usize, usize) = (49152, 576);

struct Step {
    pool: Pool,
    products: Vec<(PackedMatrix, MatmulConfig)>,
    x: [(usize, Q8Rows); 2],
    out: Vec<f32>,
}

impl Step {
    fn new(m: usize, head: bool) -> Step {
        let pool = Pool::new(physical_cores());
        let mut random = Random::new(1);
        let mut products = Vec::new();
        let shapes = [LAYER; LAYERS].into_iter().flatten().map(|shape| (DType::Q4_1, shape));
        let head = head.then_some((DType::Q8_0, HEAD));
        let mut source = (DType::F32, (0, 0), Vec::new());
        for (dtype, (n, k)) in shapes.chain(head) {
            if (source.0, source.1) != (dtype, (n, k)) {
                source = (dtype, (n, k), weights(&mut random, dtype, n, k).expect("shapes fill blocks"));
            }
            let matrix = Matrix::new(dtype, n, k, &source.2).expect("sizes agree");
            let key = KernelKey {
                family: "matmul".into(),
                dtype,
                class: NumericClass::Q8,
                path: NumericPath::Decode,
                n,
                k,
                m,
            };
            let config = matmul::family().default_for(&key, pool.threads());
            products.push((PackedMatrix::pack(&matrix, &pool), config));
        }
        let x = [576, 1536].map(|k| {
            let mut rows = Q8Rows::with_capacity(m, k);
            rows.quantise(&pool, &activations(&mut random, m, k), m).expect("capacity fits");
            (k, rows)
        });
        let widest = products.iter().map(|(w, _)| w.n()).max().unwrap_or(0);
        Step { pool, products, x, out: vec![0.0; m * widest] }
    }

    fn bytes(&self) -> u64 {
        self.products.iter().map(|(w, _)| w.bytes().len() as u64).sum()
    }

    fn run(&mut self) {
        for (w, config) in &self.products {
            let (_, x) = &self.x[usize::from(w.k() == self.x[1].0)];
            let out = &mut self.out[..x.rows() * w.n()];
            matmul::matmul(&self.pool, config, &Weights::Packed(w), &Activations::Q8(x), out)
                .expect("sizes agree");
            black_box(out);
        }
    }
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("smollm2-matmul");
    for m in [1, 4] {
        let mut step = Step::new(m, true);
        group.throughput(Throughput::Bytes(step.bytes()));
        group.bench_function(format!("decode/{m}"), |b| b.iter(|| step.run()));
    }
    let mut step = Step::new(512, false);
    group.sample_size(10).throughput(Throughput::Elements(512));
    group.bench_function("prompt/512", |b| b.iter(|| step.run()));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
