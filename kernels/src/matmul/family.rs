//! The matrix product as the tuner sees it.

use super::config::{default_config, planted_space, space};
use super::{Activations, MatmulConfig, Matrix, PackedMatrix, Q8Rows, Weights, matmul, reference};
use crate::cpu::Pool;
use crate::family::{Case, Family, Launch};
use crate::space::{Config, Space};
use crate::testdata::{self, Random};
use crate::{Cost, DType, KernelKey, NumericClass, NumericPath};
use std::sync::Arc;

/// Name of the family.
const NAME: &str = "matmul";

/// The family `matmul`.
#[derive(Clone, Copy, Debug)]
pub struct MatmulFamily;

/// The family `matmul`.
pub fn family() -> MatmulFamily {
    MatmulFamily
}

impl MatmulFamily {
    /// The default configuration in its typed form.
    pub fn default_for(&self, key: &KernelKey, threads: usize) -> MatmulConfig {
        default_config(key, threads)
    }
}

impl Family for MatmulFamily {
    fn name(&self) -> &'static str {
        NAME
    }

    fn space(&self, key: &KernelKey, threads: usize) -> Space {
        space(key, threads)
    }

    fn space_with_planted(&self, key: &KernelKey, threads: usize) -> Space {
        planted_space(key, threads)
    }

    fn default_config(&self, key: &KernelKey, threads: usize) -> Config {
        default_config(key, threads).into()
    }

    fn cost(&self, key: &KernelKey) -> Cost {
        let (n, k, m) = (key.n as u64, key.k as u64, key.m as u64);
        let weights = key.dtype.row_bytes(key.k).map_or(0, |b| b as u64) * n;
        let activations = match key.class {
            NumericClass::F32 => 4 * k,
            NumericClass::Q8 => 48 * k.div_ceil(32),
        };
        Cost { bytes: weights + m * (activations + 4 * n), flops: 2 * n * k * m }
    }

    fn source_hash(&self) -> &'static str {
        env!("MEMRA_MATMUL_SOURCE_HASH")
    }

    fn check_keys(&self) -> Vec<KernelKey> {
        let mut keys = Vec::new();
        for dtype in DType::all() {
            let block = dtype.block_len();
            let columns = if block == 256 { 768 } else { 576 };
            // Rows of float types need not fill groups of 32.
            let tail = if block == 1 { 33 } else { block };
            let mut shapes = vec![(1, tail, 1), (33, 2 * tail, 65)];
            shapes.extend((1..=9).map(|m| (17, 3 * tail, m)));
            shapes.extend([
                (192, columns, 1),
                (columns, columns, 65),
                (1536, columns, 1),
                (columns, 1536, 4),
            ]);
            for class in NumericClass::ALL {
                keys.extend(shapes.iter().map(|&(n, k, m)| KernelKey {
                    family: NAME.to_owned(),
                    dtype,
                    class,
                    path: if m > 9 { NumericPath::Prompt } else { NumericPath::Decode },
                    n,
                    k,
                    m,
                }));
            }
        }
        keys
    }

    fn case(&self, key: &KernelKey, seed: u64, pool: &Pool) -> Result<Box<dyn Case>, String> {
        let mut random = Random::new(seed);
        let data = testdata::weights(&mut random, key.dtype, key.n, key.k).map_err(|e| e.to_string())?;
        let matrix = Matrix::new(key.dtype, key.n, key.k, &data).map_err(|e| e.to_string())?;
        let x = testdata::activations(&mut random, key.m, key.k);
        let mut q8 = Q8Rows::with_capacity(key.m, key.k);
        q8.quantise(pool, &x, key.m).map_err(|e| e.to_string())?;
        let packed = PackedMatrix::pack(&matrix, pool);
        Ok(Box::new(MatmulCase { class: key.class, rows: key.m, packed, x: x.into(), q8: Arc::new(q8) }))
    }
}

#[derive(Clone)]
struct MatmulCase {
    class: NumericClass,
    rows: usize,
    packed: PackedMatrix,
    x: Arc<[f32]>,
    q8: Arc<Q8Rows>,
}

impl MatmulCase {
    fn weights(&self) -> Weights<'_> {
        Weights::Packed(&self.packed)
    }

    fn activations(&self) -> Activations<'_> {
        match self.class {
            NumericClass::F32 => Activations::F32 { x: &self.x, rows: self.rows },
            NumericClass::Q8 => Activations::Q8(&self.q8),
        }
    }
}

impl Case for MatmulCase {
    fn out_len(&self) -> usize {
        self.rows * self.packed.n()
    }

    fn ready(&self, config: &Config) -> Result<Launch<'_>, String> {
        let config = MatmulConfig::try_from(config)?;
        Ok(Box::new(move |pool, out| matmul(pool, &config, &self.weights(), &self.activations(), out)))
    }

    fn copy(&self) -> Box<dyn Case> {
        Box::new(self.clone())
    }

    /// The tolerance covers two roundings a group of 32 of terms no larger than the sum of magnitudes, and those of
    /// the decoded weights.
    fn reference(&self) -> Vec<(f64, f64)> {
        let steps = (self.packed.k().div_ceil(32) + 34) as f64 * f64::from(f32::EPSILON);
        let exact = reference::exact(&self.weights(), &self.activations());
        exact.into_iter().map(|(value, size)| (value, size * steps + 1e-30)).collect()
    }

    fn ordered(&self) -> Option<Vec<f32>> {
        let mut out = vec![0f32; self.out_len()];
        reference::ordered(&self.weights(), &self.activations(), &mut out);
        Some(out)
    }

    fn inputs_hash(&self) -> u64 {
        let mut hash = testdata::Hash::default();
        hash.bytes(self.packed.bytes());
        hash.floats(&self.x);
        for block in self.q8.blocks() {
            hash.floats(&[block.scale, block.sum, block.halves[0], block.halves[1]]);
            hash.bytes(&block.codes.map(|q| q as u8));
        }
        hash.finish()
    }
}
