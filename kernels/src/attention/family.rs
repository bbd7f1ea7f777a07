//! Attention as the kernel check and the planner see it.

use super::{AttentionShape, KvStore, KvView, PAGE, Side, attention};
use crate::cpu::Pool;
use crate::family::{Case, Family, Launch};
use crate::space::Config;
use crate::testdata::{self, Hash, Random};
use crate::{Cost, DType, KernelKey, NumericClass, NumericPath};

/// The family `attention`: `n` query values a row in heads of 64 over one third as many key heads (as many, where three
/// does not divide them), the last `m` of `k` positions; the type is that of the cache. Multiples of eight heads have a
/// window of 50 keys, multiples of five scores capped at 3.
#[derive(Clone, Copy, Debug)]
pub struct AttentionFamily;

const NAME: &str = "attention";
const HEAD_DIM: usize = 64;

fn shape_of(key: &KernelKey) -> AttentionShape {
    let n_heads = key.n / HEAD_DIM;
    let n_kv_heads = if n_heads.is_multiple_of(3) { n_heads / 3 } else { n_heads };
    AttentionShape {
        n_heads,
        n_kv_heads,
        head_dim: HEAD_DIM,
        scale: 0.125,
        window: n_heads.is_multiple_of(8).then_some(50),
        softcap: n_heads.is_multiple_of(5).then_some(3.0),
    }
}

impl Family for AttentionFamily {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cost(&self, key: &KernelKey) -> Cost {
        let shape = shape_of(key);
        let seen = shape.window.map_or(key.k, |window| key.k.min(window + key.m - 1));
        let kv = 2 * shape.n_kv_heads * shape.head_dim * seen * key.dtype.block_bytes();
        Cost { bytes: (kv + 8 * key.m * key.n) as u64, flops: 4 * (key.m * key.n * seen) as u64 }
    }

    fn source_hash(&self) -> &'static str {
        env!("MEMRA_OPS_SOURCE_HASH")
    }

    fn check_keys(&self) -> Vec<KernelKey> {
        let key = |dtype, n, k, m| KernelKey {
            family: NAME.to_owned(),
            dtype,
            class: NumericClass::F32,
            path: if m > 9 { NumericPath::Prompt } else { NumericPath::Decode },
            n,
            k,
            m,
        };
        let shapes = [
            (576, 1, 1),
            (576, 129, 1),
            (576, 130, 65),
            (256, 70, 9),
            (512, 200, 1),
            (512, 129, 65),
            (320, 70, 9),
            (2560, 120, 2),
        ];
        let all = |dtype| shapes.map(|(n, k, m)| key(dtype, n, k, m));
        [DType::F16, DType::F32].into_iter().flat_map(all).collect()
    }

    fn case(&self, key: &KernelKey, seed: u64, _pool: &Pool) -> Result<Box<dyn Case>, String> {
        if key.k < key.m || !key.n.is_multiple_of(HEAD_DIM) {
            return Err(format!("{key}: needs heads of {HEAD_DIM} and no more rows than positions"));
        }
        let shape = shape_of(key);
        let mut random = Random::new(seed);
        let width = shape.n_kv_heads * shape.head_dim;
        let pages: Vec<u32> = (0..key.k.div_ceil(PAGE) as u32).rev().collect();
        let mut side = |side| {
            let rows = testdata::activations(&mut random, key.k, width);
            let mut store = KvStore::new(key.dtype, &shape, pages.len())?;
            for (position, row) in rows.chunks_exact(width).enumerate() {
                store.write(side, &shape, &pages, position, row).map_err(|e| e.to_string())?;
            }
            Ok::<_, String>((store, rows))
        };
        let ((keys, k), (values, v)) = (side(Side::Keys)?, side(Side::Values)?);
        let q = testdata::activations(&mut random, key.m, key.n);
        Ok(Box::new(AttentionCase { shape, start: key.k - key.m, q, keys, values, pages, k, v }))
    }
}

#[derive(Clone)]
struct AttentionCase {
    shape: AttentionShape,
    start: usize,
    q: Vec<f32>,
    keys: KvStore,
    values: KvStore,
    pages: Vec<u32>,
    /// What was written: `[position][n_kv_heads][head_dim]`.
    k: Vec<f32>,
    v: Vec<f32>,
}

impl AttentionCase {
    /// One output head in f64.
    fn head(&self, row: usize, head: usize) -> Vec<f64> {
        let AttentionShape { n_heads, n_kv_heads, head_dim, scale, window, softcap } = self.shape;
        let stored = |x: &f32| match self.keys {
            KvStore::F32(_) => f64::from(*x),
            KvStore::F16(_) => half::f16::from_f32(*x).to_f64(),
        };
        let at = |j: usize| (j * n_kv_heads + head / self.shape.group()) * head_dim;
        let q = &self.q[(row * n_heads + head) * head_dim..][..head_dim];
        let score = |j: usize| {
            let k = &self.k[at(j)..][..head_dim];
            let score =
                f64::from(scale) * q.iter().zip(k).map(|(q, k)| f64::from(*q) * stored(k)).sum::<f64>();
            softcap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh())
        };
        let position = self.start + row;
        let first = window.map_or(0, |window| (position + 1).saturating_sub(window));
        let mut weights: Vec<f64> = (first..=position).map(score).collect();
        let max = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|w| *w = (*w - max).exp());
        let total: f64 = weights.iter().sum();
        let value = |d: usize| {
            (first..).zip(&weights).map(|(j, w)| w * stored(&self.v[at(j) + d])).sum::<f64>() / total
        };
        (0..head_dim).map(value).collect()
    }
}

impl Case for AttentionCase {
    fn out_len(&self) -> usize {
        self.q.len()
    }

    fn ready(&self, config: &Config) -> Result<Launch<'_>, String> {
        if *config != Config::default() {
            return Err(format!("attention has no parameters, but {config} was given"));
        }
        Ok(Box::new(|pool, out| {
            let view = KvView { keys: &self.keys, values: &self.values, pages: &self.pages };
            let positions = self.pages.len() * PAGE;
            let mut scratch = vec![f32::NAN; self.shape.scratch_len(pool.threads(), positions)];
            attention(pool, pool.threads(), &self.shape, self.start, &self.q, &view, &mut scratch, out)
        }))
    }

    fn copy(&self) -> Box<dyn Case> {
        Box::new(self.clone())
    }

    /// Scores of size s are off by about s roundings, which `exp` turns into relative errors of the weights.
    fn reference(&self) -> Vec<(f64, f64)> {
        let rows = self.q.len() / (self.shape.n_heads * self.shape.head_dim);
        let heads = (0..rows).flat_map(|row| (0..self.shape.n_heads).map(move |head| (row, head)));
        heads.flat_map(|(row, head)| self.head(row, head)).map(|v| (v, 2e-4)).collect()
    }

    fn inputs_hash(&self) -> u64 {
        let mut hash = Hash::default();
        hash.floats(&self.q);
        for store in [&self.keys, &self.values] {
            match store {
                KvStore::F32(v) => hash.floats(v),
                KvStore::F16(v) => v.iter().for_each(|x| hash.bytes(&x.to_le_bytes())),
            }
        }
        hash.finish()
    }
}
