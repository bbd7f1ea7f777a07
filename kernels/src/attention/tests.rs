//! The vector versions against the documented order of operations, one value at a time, and against f64.

use super::*;
use crate::DType;
use crate::math::{exp, tanh};
use crate::testdata::Random;
use half::f16;

struct Fixture {
    shape: AttentionShape,
    keys: KvStore,
    values: KvStore,
    pages: Vec<u32>,
    /// `[position][n_kv_heads][head_dim]`, as stored.
    k: Vec<f32>,
    v: Vec<f32>,
    q: Vec<f32>,
}

impl Fixture {
    fn new(dtype: DType, (n_heads, n_kv_heads, head_dim): (usize, usize, usize), positions: usize) -> Self {
        let scale = 1.0 / (head_dim as f32).sqrt();
        let shape = AttentionShape { n_heads, n_kv_heads, head_dim, scale, window: None, softcap: None };
        let mut random = Random::new(7);
        let used = positions.div_ceil(PAGE);
        // Pages out of order, and one unused in the store.
        let pages: Vec<u32> = (0..used as u32).rev().map(|p| p + 1).collect();
        let store = || KvStore::new(dtype, &shape, used + 1).unwrap();
        let (mut keys, mut values) = (store(), store());
        let width = n_kv_heads * head_dim;
        let mut draw =
            |n: usize, size: f32| -> Vec<f32> { (0..n).map(|_| random.uniform() * size).collect() };
        let (mut k, mut v) = (draw(positions * width, 4.0), draw(positions * width, 1.0));
        let q = draw(positions * n_heads * head_dim, 4.0);
        for p in 0..positions {
            keys.write(Side::Keys, &shape, &pages, p, &k[p * width..][..width]).unwrap();
            values.write(Side::Values, &shape, &pages, p, &v[p * width..][..width]).unwrap();
        }
        if dtype == DType::F16 {
            k.iter_mut().chain(&mut v).for_each(|x| *x = f16::from_f32(*x).to_f32());
        }
        Fixture { shape, keys, values, pages, k, v, q }
    }

    fn view(&self) -> KvView<'_> {
        KvView { keys: &self.keys, values: &self.values, pages: &self.pages }
    }

    fn attention(&self, pool: &Pool, start: usize, rows: usize) -> Vec<f32> {
        let row = self.shape.n_heads * self.shape.head_dim;
        let q = &self.q[start * row..][..rows * row];
        let mut out = vec![f32::NAN; q.len()];
        let mut scratch = vec![f32::NAN; self.shape.scratch_len(pool.threads(), start + rows)];
        attention(pool, pool.threads(), &self.shape, start, q, &self.view(), &mut scratch, &mut out).unwrap();
        out
    }

    /// One row of one query head in the documented order, and in f64.
    fn reference(&self, position: usize, head: usize) -> (Vec<f32>, Vec<f64>) {
        let AttentionShape { n_heads, n_kv_heads, head_dim, scale, window, softcap } = self.shape;
        let first = window.map_or(0, |window| (position + 1).saturating_sub(window));
        let q = &self.q[(position * n_heads + head) * head_dim..][..head_dim];
        let at = |j: usize| (j * n_kv_heads + head / self.shape.group()) * head_dim;
        let mut scores = Vec::new();
        let mut wide = Vec::new();
        for j in first..=position {
            let k = &self.k[at(j)..][..head_dim];
            let score = scale * q.iter().zip(k).fold(0f32, |sum, (q, k)| q.mul_add(*k, sum));
            scores.push(softcap.map_or(score, |cap| cap * tanh(score / cap)));
            let score =
                f64::from(scale) * q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum::<f64>();
            wide.push(softcap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh()));
        }
        let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let wide_max = wide.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        scores.iter_mut().for_each(|s| *s = exp(*s - max));
        wide.iter_mut().for_each(|s| *s = (*s - wide_max).exp());
        let mut sums = [0f32; 16];
        (first..).zip(&scores).for_each(|(j, w)| sums[j % 16] += w);
        let (total, wide_total) = (sums.iter().sum::<f32>(), wide.iter().sum::<f64>());
        let value = |d: usize| {
            (first..).zip(&scores).fold(0f32, |sum, (j, w)| w.mul_add(self.v[at(j) + d], sum)) / total
        };
        let wide_value = |d: usize| {
            (first..).zip(&wide).map(|(j, w)| w * f64::from(self.v[at(j) + d])).sum::<f64>() / wide_total
        };
        ((0..head_dim).map(value).collect(), (0..head_dim).map(wide_value).collect())
    }
}

const SHAPES: [(usize, usize, usize); 6] =
    [(9, 3, 64), (4, 4, 80), (8, 1, 16), (5, 1, 40), (2, 2, 7), (14, 2, 128)];

/// Every instruction set against the references, bit for bit and to 2e-5.
fn check_versions(f: &Fixture) {
    let (kv, group, dim) = (f.view(), f.shape.group(), f.shape.head_dim);
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
        if isa > Isa::detect() {
            eprintln!("not tested: this machine has no {isa}");
            continue;
        }
        let launch = Launch::new(isa, &f.shape, &kv, 131).unwrap();
        for position in [0, 1, 15, 16, 63, 64, 100, 130] {
            for head in 0..f.shape.n_kv_heads {
                let at = (position * f.shape.n_heads + head * group) * dim;
                let mut scores = vec![f32::NAN; f.shape.scores_len(131)];
                let mut out = vec![f32::NAN; group * dim];
                launch.run(position, head, &f.q[at..][..group * dim], &mut scores, &mut out);
                for (g, out) in out.chunks(dim).enumerate() {
                    let (want, exact) = f.reference(position, head * group + g);
                    assert_eq!(out, want, "{:?} {:?} {isa} position {position}", f.keys.dtype(), f.shape);
                    for (a, b) in out.iter().zip(exact) {
                        assert!((f64::from(*a) - b).abs() < 2e-5, "{a} {b}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_version_keeps_the_documented_order() {
    for dtype in [DType::F16, DType::F32] {
        for shape in SHAPES {
            check_versions(&Fixture::new(dtype, shape, 131));
        }
    }
}

#[test]
fn windows_and_caps_keep_it_too() {
    for (window, softcap) in [
        (Some(1), None),
        (Some(17), None),
        (Some(64), None),
        (Some(1000), None),
        (None, Some(2.0)),
        (Some(70), Some(2.0)),
    ] {
        let mut f = Fixture::new(DType::F32, (9, 3, 40), 131);
        (f.shape.window, f.shape.softcap) = (window, softcap);
        check_versions(&f);
    }
}

#[test]
fn rows_do_not_depend_on_chunks_or_threads() {
    let f = Fixture::new(DType::F16, (9, 3, 64), 150);
    let all = f.attention(&Pool::new(2), 0, 150);
    for chunk in [1, 7, 64] {
        let pool = Pool::new(1 + chunk % 3);
        let mut out = Vec::new();
        for start in (0..150).step_by(chunk) {
            out.extend(f.attention(&pool, start, chunk.min(150 - start)));
        }
        assert_eq!(out, all);
    }
}

#[test]
fn a_score_far_above_the_others_takes_all_and_equal_ones_share() {
    let mut f = Fixture::new(DType::F32, (1, 1, 16), 3);
    f.shape.scale = 0.0;
    let out = f.attention(&Pool::new(1), 0, 3);
    for d in 0..16 {
        let mean = (f.v[d] + f.v[16 + d] + f.v[32 + d]) / 3.0;
        assert!((out[32 + d] - mean).abs() < 1e-6);
    }
    f.shape.scale = 1e6;
    assert!(f.attention(&Pool::new(1), 0, 3).iter().all(|v| f.v.contains(v)));
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let f = Fixture::new(DType::F16, (2, 1, 16), 70);
    let pool = Pool::new(1);
    let run = |start: usize, q: &[f32], kv: KvView<'_>, scratch: usize| {
        attention(&pool, 1, &f.shape, start, q, &kv, &mut vec![0.0; scratch], &mut vec![0.0; q.len()])
    };
    let q = [0f32; 32];
    assert!(run(127, &q, f.view(), 256).is_ok());
    assert!(run(128, &q, f.view(), 1024).is_err(), "beyond the pages");
    assert!(run(127, &q, f.view(), 255).is_err(), "scratch too short");
    assert!(run(0, &q[..31], f.view(), 256).is_err(), "half a row");
    assert!(run(0, &q, KvView { pages: &[0, 3], ..f.view() }, 256).is_err(), "page outside the store");
    let blind = AttentionShape { window: Some(0), ..f.shape };
    assert!(attention(&pool, 1, &blind, 0, &q, &f.view(), &mut [0.0; 256], &mut [0.0; 32]).is_err());
    let huge = AttentionShape { n_heads: 1 << 63, n_kv_heads: 1 << 62, ..f.shape };
    assert!(attention(&pool, 1, &huge, 0, &q, &f.view(), &mut [0.0; 256], &mut [0.0; 32]).is_err());
    assert!(run(usize::MAX, &q, f.view(), 256).is_err(), "positions that wrap around");
    assert!(KvStore::new(DType::F16, &huge, 1).is_err());
    let other = KvStore::new(DType::F32, &f.shape, 3).unwrap();
    assert!(run(0, &q, KvView { values: &other, ..f.view() }, 256).is_err(), "types differ");
    assert!(KvStore::new(DType::Q8_0, &f.shape, 1).is_err());
    let mut store = KvStore::new(DType::F16, &f.shape, 1).unwrap();
    assert!(store.write(Side::Keys, &f.shape, &[0], 64, &[0.0; 16]).is_err());
    assert!(store.write(Side::Keys, &f.shape, &[1], 0, &[0.0; 16]).is_err());
    assert!(store.write(Side::Keys, &f.shape, &[0], 0, &[0.0; 15]).is_err());
}
