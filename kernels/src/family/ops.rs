//! The families without a tuning space: one version each, plain inputs. Those of other modules are with these.

use super::{Case, Family, Launch};
use crate::cpu::Pool;
use crate::error::same;
use crate::matmul::{Matrix, PackedMatrix, Q8Rows};
use crate::quant::GROUP;
use crate::rope::{Pairing, RopeTable, Scaling};
use crate::space::Config;
use crate::testdata::{self, Hash, Random};
use crate::{Cost, DType, KernelKey, NumericClass, NumericPath, ShapeError};
use crate::{activation, elementwise, norm};

/// A family described by functions of the key (`n` outputs and `k` inputs a row, `m` rows) and two f32 inputs.
pub(crate) struct Op {
    pub(crate) name: &'static str,
    pub(crate) class: NumericClass,
    pub(crate) dtypes: &'static [DType],
    /// (n, k, m) worth checking.
    pub(crate) shapes: &'static [(usize, usize, usize)],
    /// Lengths of the two inputs.
    pub(crate) lengths: fn(&KernelKey) -> [usize; 2],
    pub(crate) cost: fn(&KernelKey) -> Cost,
    pub(crate) run: fn(&Inputs, &Pool, &mut [f32]) -> Result<(), ShapeError>,
    /// Each output in f64 with its tolerance.
    pub(crate) reference: fn(&Inputs) -> Vec<(f64, f64)>,
}

#[derive(Clone)]
pub(crate) struct Inputs {
    pub(crate) key: KernelKey,
    pub(crate) a: Vec<f32>,
    pub(crate) b: Vec<f32>,
    /// The weights of families that have some, as the file stores them.
    pub(crate) table: Vec<u8>,
}

struct OpCase {
    op: &'static Op,
    inputs: Inputs,
}

impl Family for &'static Op {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cost(&self, key: &KernelKey) -> Cost {
        (self.cost)(key)
    }

    fn source_hash(&self) -> &'static str {
        env!("MEMRA_OPS_SOURCE_HASH")
    }

    fn check_keys(&self) -> Vec<KernelKey> {
        let key = |dtype: DType, &(n, k, m): &(usize, usize, usize)| KernelKey {
            family: self.name.to_owned(),
            dtype,
            class: self.class,
            path: if m > 9 { NumericPath::Prompt } else { NumericPath::Decode },
            n,
            k,
            m,
        };
        self.dtypes.iter().flat_map(|dtype| self.shapes.iter().map(|shape| key(*dtype, shape))).collect()
    }

    fn case(&self, key: &KernelKey, seed: u64, _pool: &Pool) -> Result<Box<dyn Case>, String> {
        let mut random = Random::new(seed);
        let [a, b] = (self.lengths)(key);
        let (a, b) = (testdata::activations(&mut random, 1, a), testdata::activations(&mut random, 1, b));
        let rows = if self.name == EMBED.name { key.n } else { 0 };
        let table = testdata::weights(&mut random, key.dtype, rows, key.k).map_err(|e| e.to_string())?;
        Ok(Box::new(OpCase { op: self, inputs: Inputs { key: key.clone(), a, b, table } }))
    }
}

impl Case for OpCase {
    fn out_len(&self) -> usize {
        self.inputs.key.m * if self.op.name == EMBED.name { self.inputs.key.k } else { self.inputs.key.n }
    }

    fn ready(&self, config: &Config) -> Result<Launch<'_>, String> {
        if *config != Config::default() {
            return Err(format!("{} has no parameters, but {config} was given", self.op.name));
        }
        Ok(Box::new(|pool, out| {
            same(self.op.name, "number of outputs", self.out_len(), out.len())?;
            (self.op.run)(&self.inputs, pool, out)
        }))
    }

    fn copy(&self) -> Box<dyn Case> {
        Box::new(OpCase { op: self.op, inputs: self.inputs.clone() })
    }

    fn reference(&self) -> Vec<(f64, f64)> {
        (self.op.reference)(&self.inputs)
    }

    fn inputs_hash(&self) -> u64 {
        let mut hash = Hash::default();
        hash.floats(&self.inputs.a);
        hash.floats(&self.inputs.b);
        hash.bytes(&self.inputs.table);
        hash.finish()
    }
}

/// `reads` and `writes` f32 values, `flops` operations a value written.
pub(crate) fn cost(reads: usize, writes: usize, flops: u64) -> Cost {
    Cost { bytes: 4 * (reads + writes) as u64, flops: flops * writes as u64 }
}

/// Rows of any width.
pub(crate) const ROWS: &[(usize, usize, usize)] =
    &[(576, 576, 1), (1536, 1536, 1), (1, 1, 3), (17, 17, 9), (100, 100, 2), (576, 576, 65)];

/// Relative error of a few roundings.
pub(crate) const FEW: f64 = 4.0 * f32::EPSILON as f64;

pub(super) static RMS_NORM: &Op = &Op {
    name: "rms_norm",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: ROWS,
    lengths: |key| [key.m * key.k, key.k],
    cost: |key| cost(key.m * key.k + key.k, key.m * key.k, 4),
    run: |inputs, _, out| norm::rms_norm(&inputs.a, &inputs.b, 1e-5, out),
    reference: |inputs| {
        let row = |x: &[f32]| {
            let mean = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / x.len() as f64;
            let scale = 1.0 / (mean + f64::from(1e-5f32)).sqrt();
            // Sums of sixteenths of the row are rounded as often as they have terms.
            let tolerance = FEW + x.len() as f64 / 16.0 * f64::from(f32::EPSILON);
            let value = |(x, w): (&f32, &f32)| f64::from(*x) * scale * f64::from(*w);
            x.iter().zip(&inputs.b).map(value).map(|v| (v, v.abs() * tolerance)).collect::<Vec<_>>()
        };
        inputs.a.chunks_exact(inputs.key.k).flat_map(row).collect()
    },
};

pub(super) static SWIGLU: &Op = &Op {
    name: "swiglu",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: ROWS,
    lengths: |key| [key.m * key.k; 2],
    cost: |key| cost(2 * key.m * key.k, key.m * key.k, 24),
    run: |inputs, _, out| activation::swiglu(&inputs.a, &inputs.b, out),
    reference: |inputs| {
        let value = |(gate, up): (&f32, &f32)| {
            let gate = f64::from(*gate);
            let value = gate / (1.0 + (-gate).exp()) * f64::from(*up);
            (value, value.abs() * FEW + 1e-37)
        };
        inputs.a.iter().zip(&inputs.b).map(value).collect()
    },
};

pub(super) static GEGLU: &Op = &Op {
    name: "geglu",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: ROWS,
    lengths: |key| [key.m * key.k; 2],
    cost: |key| cost(2 * key.m * key.k, key.m * key.k, 29),
    run: |inputs, _, out| activation::geglu(&inputs.a, &inputs.b, out),
    reference: |inputs| {
        let value = |(gate, up): (&f32, &f32)| {
            let gate = f64::from(*gate);
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (gate + 0.044715 * gate.powi(3));
            let value = 0.5 * gate * (1.0 + inner.tanh()) * f64::from(*up);
            // Far below zero the exponential turns roundings of its argument into relative errors.
            (value, value.abs() * FEW * (1.0 + inner.abs()) + 1e-15)
        };
        inputs.a.iter().zip(&inputs.b).map(value).collect()
    },
};

/// By the square root of 640.
pub(super) static SCALE: &Op = &Op {
    name: "scale",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: ROWS,
    lengths: |key| [key.m * key.k, 0],
    cost: |key| cost(key.m * key.k, key.m * key.k, 1),
    run: |inputs, _, out| {
        out.copy_from_slice(&inputs.a);
        elementwise::scale(out, 25.298_221);
        Ok(())
    },
    reference: |inputs| {
        let value = |x: &f32| f64::from(*x) * f64::from(25.298_221f32);
        inputs.a.iter().map(value).map(|v| (v, v.abs() * FEW)).collect()
    },
};

/// To 5, which some of the inputs pass and others do not reach.
pub(super) static SOFTCAP: &Op = &Op {
    name: "softcap",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: ROWS,
    lengths: |key| [key.m * key.k, 0],
    cost: |key| cost(key.m * key.k, key.m * key.k, 37),
    run: |inputs, _, out| {
        out.copy_from_slice(&inputs.a);
        elementwise::softcap(out, 5.0);
        Ok(())
    },
    reference: |inputs| {
        let value = |x: &f32| 5.0 * (f64::from(*x) / 5.0).tanh();
        inputs.a.iter().map(value).map(|v| (v, v.abs() * FEW)).collect()
    },
};

pub(super) static ADD: &Op = &Op {
    name: "add",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: ROWS,
    lengths: |key| [key.m * key.k; 2],
    cost: |key| cost(2 * key.m * key.k, key.m * key.k, 1),
    run: |inputs, _, out| {
        out.copy_from_slice(&inputs.a);
        elementwise::add(out, &inputs.b)
    },
    reference: |inputs| {
        let value = |(x, y): (&f32, &f32)| f64::from(*x) + f64::from(*y);
        inputs.a.iter().zip(&inputs.b).map(value).map(|v| (v, v.abs() * FEW)).collect()
    },
};

/// `n` values a row in heads of `k`, at consecutive positions from 1000 on. Even heads' pairs are interleaved, rows of an
/// odd count of heads are in halves, so that both pairings occur.
pub(super) static ROPE: &Op = &Op {
    name: "rope",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: &[(576, 64, 1), (192, 64, 1), (512, 64, 9), (240, 80, 65), (6, 2, 3)],
    lengths: |key| [key.m * key.n, 0],
    cost: |key| cost(2 * key.m * key.n, key.m * key.n, 3),
    run: |inputs, _, out| {
        let KernelKey { n, k, .. } = inputs.key;
        let table = RopeTable::new(k, 1e5, &Scaling::None, None, ROPE_START + inputs.key.m)?;
        out.copy_from_slice(&inputs.a);
        let mut rows = out.chunks_exact_mut(n).zip(ROPE_START..);
        rows.try_for_each(|(row, position)| table.apply(rope_pairing(&inputs.key), row, k, position))
    },
    reference: |inputs| {
        let KernelKey { n, k, .. } = inputs.key;
        let pairing = rope_pairing(&inputs.key);
        let value = |i: usize| {
            let (row, d) = (i / n, i % n % k);
            let (pair, first, distance) = match pairing {
                Pairing::Interleaved => (d / 2, d % 2 == 0, 1),
                Pairing::Halves => (d % (k / 2), d < k / 2, k / 2),
            };
            let angle = (ROPE_START + row) as f64 * 1e5f64.powf(-2.0 * pair as f64 / k as f64);
            let at = |i: usize| f64::from(inputs.a[i]);
            let (here, other) = (at(i), if first { -at(i + distance) } else { at(i - distance) });
            (here * angle.cos() + other * angle.sin(), (here.abs() + other.abs()) * FEW)
        };
        (0..inputs.a.len()).map(value).collect()
    },
};

const ROPE_START: usize = 1000;

fn rope_pairing(key: &KernelKey) -> Pairing {
    if (key.n / key.k).is_multiple_of(2) { Pairing::Interleaved } else { Pairing::Halves }
}

/// Activation rows to 8-bit blocks; the output is what they stand for.
pub(super) static QUANTISE: &Op = &Op {
    name: "quantise",
    class: NumericClass::Q8,
    dtypes: &[DType::F32],
    shapes: ROWS,
    lengths: |key| [key.m * key.k, 0],
    cost: |key| Cost {
        bytes: (key.m * (4 * key.k + 48 * key.k.div_ceil(GROUP))) as u64,
        flops: 3 * (key.m * key.k) as u64,
    },
    run: |inputs, pool, out| {
        let KernelKey { k, m, .. } = inputs.key;
        let mut rows = Q8Rows::with_capacity(m, k);
        rows.quantise(pool, &inputs.a, m)?;
        let blocks = rows.blocks().chunks_exact(k.div_ceil(GROUP));
        for (out, blocks) in out.chunks_exact_mut(k).zip(blocks) {
            let values = blocks.iter().flat_map(|b| b.codes.iter().map(|q| b.scale * f32::from(*q)));
            out.iter_mut().zip(values).for_each(|(out, value)| *out = value);
        }
        Ok(())
    },
    reference: |inputs| {
        let block = |x: &[f32]| {
            let largest = x.iter().fold(0f64, |a, v| a.max(f64::from(v.abs())));
            // Half a step, and the roundings of scale and product.
            let tolerance = largest / 127.0 * (0.5 + 128.0 * FEW);
            x.iter().map(|v| (f64::from(*v), tolerance)).collect::<Vec<_>>()
        };
        inputs.a.chunks_exact(inputs.key.k).flat_map(|row| row.chunks(GROUP).flat_map(block)).collect()
    },
};

/// `m` rows of a table of `n` rows of `k` values, from its packed form.
pub(super) static EMBED: &Op = &Op {
    name: "embed",
    class: NumericClass::F32,
    dtypes: &DType::ALL,
    shapes: &[(40, 768, 1), (33, 256, 9)],
    lengths: |_| [0; 2],
    cost: |key| Cost {
        bytes: (key.m * (key.dtype.row_bytes(key.k).unwrap_or(0) + 4 * key.k)) as u64,
        flops: 2 * (key.m * key.k) as u64,
    },
    run: |inputs, pool, out| {
        let KernelKey { n, k, dtype, .. } = inputs.key;
        let Ok(table) = Matrix::new(dtype, n, k, &inputs.table) else { return Ok(()) };
        let table = PackedMatrix::pack(&table, pool);
        out.chunks_exact_mut(k).enumerate().try_for_each(|(t, row)| table.row_decode(embed_token(t, n), row))
    },
    reference: |inputs| {
        let KernelKey { n, k, m, dtype, .. } = inputs.key;
        let mut values = vec![0f32; n * k];
        // The table was made for these sizes.
        let _ = crate::quant::decode(dtype, &inputs.table, &mut values);
        let row = |t: usize| values[embed_token(t, n) * k..][..k].iter().map(|v| (f64::from(*v), 0.0));
        (0..m).flat_map(row).collect()
    },
};

/// The last row first, then some others.
fn embed_token(t: usize, rows: usize) -> usize {
    rows - 1 - t * 7 % rows
}
