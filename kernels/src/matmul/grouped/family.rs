//! The product of experts as the tuner sees it.

use super::super::{MatmulConfig, MatmulFamily, Matrix, PackedMatrix, reference};
use super::{Activations, Q8Rows, Weights, experts, gather_q8};
use crate::cpu::Pool;
use crate::family::{Case, Family, Launch};
use crate::moe::{Router, Routes, Scoring, gather_slots, route};
use crate::space::{Config, Space};
use crate::testdata::{self, Random};
use crate::{Cost, DType, KernelKey, NumericClass, NumericPath, ShapeError};
use std::sync::Arc;

/// The family `experts`: eight experts of `n` rows of `k` values, to each of which `m` rows go on average: `4 m` rows use
/// two experts each.
///
/// What is tuned is the same as for [`MatmulFamily`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpertsFamily;

const NAME: &str = "experts";
const EXPERTS: usize = 8;
const USED: usize = 2;

impl Family for ExpertsFamily {
    fn name(&self) -> &'static str {
        NAME
    }

    fn space(&self, key: &KernelKey, threads: usize) -> Space {
        MatmulFamily.space(key, threads)
    }

    fn space_with_planted(&self, key: &KernelKey, threads: usize) -> Space {
        MatmulFamily.space_with_planted(key, threads)
    }

    fn default_config(&self, key: &KernelKey, threads: usize) -> Config {
        MatmulFamily.default_config(key, threads)
    }

    fn cost(&self, key: &KernelKey) -> Cost {
        let Cost { bytes, flops } = MatmulFamily.cost(key);
        Cost { bytes: EXPERTS as u64 * bytes, flops: EXPERTS as u64 * flops }
    }

    fn source_hash(&self) -> &'static str {
        env!("MEMRA_MATMUL_SOURCE_HASH")
    }

    fn check_keys(&self) -> Vec<KernelKey> {
        let mut keys = Vec::new();
        for dtype in DType::all() {
            let columns = if dtype.block_len() == 1 { 33 } else { dtype.block_len() };
            // Every type once; how slots are cut up is the same for all.
            let mut shapes = vec![(17, columns, 2)];
            if [DType::F32, DType::Q4_K].contains(&dtype) {
                shapes.extend([(1, columns, 1), (64, 2 * columns, 9), (40, columns, 65)]);
            }
            for class in NumericClass::ALL {
                for &(n, k, m) in &shapes {
                    let path = if m > 9 { NumericPath::Prompt } else { NumericPath::Decode };
                    keys.push(KernelKey { family: NAME.to_owned(), dtype, class, path, n, k, m });
                }
            }
        }
        keys
    }

    fn case(&self, key: &KernelKey, seed: u64, pool: &Pool) -> Result<Box<dyn Case>, String> {
        let mut random = Random::new(seed);
        let mut weights = Vec::with_capacity(EXPERTS);
        for _ in 0..EXPERTS {
            let data = testdata::weights(&mut random, key.dtype, key.n, key.k).map_err(|e| e.to_string())?;
            let matrix = Matrix::new(key.dtype, key.n, key.k, &data).map_err(|e| e.to_string())?;
            weights.push(PackedMatrix::pack(&matrix, pool));
        }
        let (routes, x, q8) = slots(&mut random, key, pool).map_err(|e| e.to_string())?;
        let (routes, x, q8) = (Arc::new(routes), x.into(), Arc::new(q8));
        Ok(Box::new(ExpertsCase { class: key.class, weights, routes, x, q8 }))
    }
}

/// Where rows go, and the rows of all slots in both classes.
fn slots(
    random: &mut Random,
    key: &KernelKey,
    pool: &Pool,
) -> Result<(Routes, Vec<f32>, Q8Rows), ShapeError> {
    let rows = key.m * EXPERTS / USED;
    let router = Router { scoring: Scoring::Softmax, renormalise: true, scale: 1.0 };
    let logits = testdata::activations(random, rows, EXPERTS);
    let mut routes = Routes::with_capacity(rows, USED, EXPERTS);
    route(&router, &logits, None, &mut routes)?;
    let values = testdata::activations(random, rows, key.k);
    let mut x = vec![0f32; routes.slots() * key.k];
    gather_slots(pool, &routes, &values, &mut x)?;
    let mut rounded = Q8Rows::with_capacity(rows, key.k);
    rounded.quantise(pool, &values, rows)?;
    let mut q8 = Q8Rows::with_capacity(routes.slots(), key.k);
    gather_q8(&routes, &rounded, &mut q8)?;
    Ok((routes, x, q8))
}

#[derive(Clone)]
struct ExpertsCase {
    class: NumericClass,
    weights: Vec<PackedMatrix>,
    routes: Arc<Routes>,
    x: Arc<[f32]>,
    q8: Arc<Q8Rows>,
}

impl ExpertsCase {
    fn activations(&self) -> Activations<'_> {
        match self.class {
            NumericClass::F32 => Activations::F32 { x: &self.x, rows: self.routes.slots() },
            NumericClass::Q8 => Activations::Q8(&self.q8),
        }
    }

    /// All slots times one expert's matrix.
    fn each<T: Clone>(&self, product: impl Fn(&Weights<'_>) -> Vec<T>) -> Vec<T> {
        let n = self.weights[0].n();
        let mut out = Vec::with_capacity(self.routes.slots() * n);
        for (expert, weights) in self.weights.iter().enumerate() {
            let slots = self.routes.slots_of(expert);
            let all = product(&Weights::Packed(weights));
            out.extend_from_slice(&all[slots.start * n..slots.end * n]);
        }
        out
    }
}

impl Case for ExpertsCase {
    fn out_len(&self) -> usize {
        self.routes.slots() * self.weights[0].n()
    }

    fn ready(&self, config: &Config) -> Result<Launch<'_>, String> {
        let config = MatmulConfig::try_from(config)?;
        Ok(Box::new(move |pool, out| {
            experts(pool, &config, self.weights.as_slice(), &self.routes, &self.activations(), out)
        }))
    }

    fn copy(&self) -> Box<dyn Case> {
        Box::new(self.clone())
    }

    fn reference(&self) -> Vec<(f64, f64)> {
        let steps = (self.weights[0].k().div_ceil(32) + 34) as f64 * f64::from(f32::EPSILON);
        let exact = self.each(|w| reference::exact(w, &self.activations()));
        exact.into_iter().map(|(value, size)| (value, size * steps + 1e-30)).collect()
    }

    fn ordered(&self) -> Option<Vec<f32>> {
        Some(self.each(|w| {
            let mut out = vec![0f32; self.out_len()];
            reference::ordered(w, &self.activations(), &mut out);
            out
        }))
    }

    fn inputs_hash(&self) -> u64 {
        let mut hash = testdata::Hash::default();
        self.weights.iter().for_each(|w| hash.bytes(w.bytes()));
        hash.floats(&self.x);
        for block in self.q8.blocks() {
            hash.floats(&[block.scale, block.sum, block.halves[0], block.halves[1]]);
            hash.bytes(&block.codes.map(|q| q as u8));
        }
        self.routes.sources().iter().for_each(|row| hash.bytes(&row.to_le_bytes()));
        hash.finish()
    }
}
