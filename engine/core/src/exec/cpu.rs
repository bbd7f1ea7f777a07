//! The CPU executor: interprets a Program, op by op, allocating nothing per step.

use super::Step;
use super::delta::{conv_weights, delta_shape};
use crate::Error;
use crate::cache::Cache;
use crate::model::{Model, Weight};
use crate::program::{
    Attend, BufferId, BufferSpec, Extent, Op, OpKind, Program, Rope, StateSpec, Storage, WeightId,
};
use crate::session::{OpTime, SessionOptions};
use memra_kernels::activation::{geglu, swiglu};
use memra_kernels::attention::{AttentionShape, attention};
use memra_kernels::cpu::Pool;
use memra_kernels::delta::{ConvWeights, DeltaShape};
use memra_kernels::family::family;
use memra_kernels::matmul::{self, Activations, MatmulConfig, Q8Rows};
use memra_kernels::moe::Routes;
use memra_kernels::rope::{Pairing, RopeTable};
use memra_kernels::{ShapeError, elementwise, fault, norm};
use std::mem;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Values below which a row-wise op is not worth handing to other threads.
const SERIAL: usize = 16 * 1024;

/// What a kernel call comes to.
pub(super) type Outcome = Result<(), ShapeError>;

/// Work on some rows of an op's result: the index of the first, and their values.
pub(super) type RowTask<'a> = dyn Fn(usize, &mut [f32]) -> Outcome + Sync + 'a;

/// The same, with the same rows of an input before them.
type PairTask<'a> = dyn Fn(&[f32], &mut [f32]) -> Outcome + Sync + 'a;

/// A gated activation of `gate` and `up`.
type Glu = fn(&[f32], &[f32], &mut [f32]) -> Outcome;

/// A Program with its buffers, weights and kernel configurations.
pub(crate) struct CpuExecutor {
    program: Program,
    weights: Vec<Arc<Weight>>,
    buffers: Vec<Buffer>,
    /// One for each op.
    ready: Vec<Ready>,
    scratch: Vec<f32>,
    wrong: Option<String>,
    times: Option<Vec<(Duration, u64)>>,
}

pub(super) enum Buffer {
    F32(Vec<f32>),
    Q8(Q8Rows),
    Routes(Routes),
}

/// What an op needs that was decided before the first step.
pub(super) enum Ready {
    Nothing,
    Matmul(MatmulConfig),
    Rope(Arc<RopeTable>),
    Attention(AttentionShape),
    Conv(ConvWeights),
    Delta(DeltaShape),
}

impl CpuExecutor {
    pub(crate) fn new(
        program: Program,
        model: &Model,
        options: &SessionOptions,
        threads: usize,
        tables: &mut RopeTables,
    ) -> Result<Self, Error> {
        let weights = model.resolve(&program)?;
        let mut ready = Vec::with_capacity(program.ops.len());
        let mut scratch = 0;
        for op in &program.ops {
            ready.push(match op.kind {
                OpKind::Matmul { .. } | OpKind::Experts { .. } => Ready::Matmul(matmul_config(op, options)?),
                OpKind::Rope { rope, .. } => {
                    let factors = rope.factors.map_or(&[][..], |id| weights[id.0 as usize].vector());
                    Ready::Rope(tables.get(op, rope, factors)?)
                }
                OpKind::ShortConv { weight, .. } => {
                    Ready::Conv(conv_weights(op, &weights, &program, weight)?)
                }
                OpKind::DeltaScan { net, .. } => {
                    let shape = delta_shape(net);
                    scratch = scratch.max(shape.scratch_len(threads));
                    Ready::Delta(shape)
                }
                OpKind::Attention { state, attend, .. } => {
                    let StateSpec::Kv { heads: n_kv_heads, head_dim, .. } = program.states[state.0 as usize]
                    else {
                        return Err(Error::Argument(format!("op {} has no keys and values", op.name)));
                    };
                    let Attend { heads: n_heads, scale, window, softcap } = attend;
                    let shape = AttentionShape { n_heads, n_kv_heads, head_dim, scale, window, softcap };
                    scratch = scratch.max(shape.scratch_len(threads, program.bucket.context));
                    Ready::Attention(shape)
                }
                _ => Ready::Nothing,
            });
        }
        let allocate = |spec: &BufferSpec| {
            let rows = spec.rows(&program.bucket);
            match spec.storage {
                Storage::F32 => Buffer::F32(vec![0.0; rows * spec.width]),
                Storage::Q8 => Buffer::Q8(Q8Rows::with_capacity(rows, spec.width)),
                Storage::Routes { experts } => {
                    Buffer::Routes(Routes::with_capacity(rows, spec.width, experts))
                }
            }
        };
        Ok(CpuExecutor {
            buffers: program.buffers.iter().map(allocate).collect(),
            weights,
            ready,
            scratch: vec![0.0; scratch],
            wrong: options.fault.wrong.clone(),
            times: None,
            program,
        })
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Starts from zero, or stops.
    pub(crate) fn profile(&mut self, on: bool) {
        self.times = on.then(|| vec![(Duration::ZERO, 0); self.program.ops.len()]);
    }

    pub(crate) fn times(&self) -> impl Iterator<Item = OpTime> + '_ {
        let ops = self.program.ops.iter().zip(self.times.iter().flatten());
        ops.map(|(op, &(total, calls))| OpTime {
            bucket: self.program.bucket,
            name: op.name.clone(),
            family: op.kind.family(),
            total,
            calls,
        })
    }

    /// The first `rows` rows of logits of the last step.
    pub(crate) fn logits(&self, rows: usize) -> &[f32] {
        &self.f32s(self.program.logits)[..rows * self.width(self.program.logits)]
    }

    /// The state of the first `rows` rows of the last step, where it is kept.
    pub(crate) fn hidden(&self, rows: usize) -> &[f32] {
        self.program.hidden.map_or(&[], |id| &self.f32s(id)[..rows * self.width(id)])
    }

    /// Runs one step.
    pub(crate) fn run(&mut self, pool: &Pool, step: &Step<'_>, cache: &mut Cache) -> Result<(), Error> {
        for at in 0..self.program.ops.len() {
            let start = self.times.is_some().then(Instant::now);
            self.op(at, pool, step, cache)
                .map_err(|source| Error::Kernel { op: self.program.ops[at].name.clone(), source })?;
            if let (Some(start), Some(times)) = (start, &mut self.times) {
                times[at].0 += start.elapsed();
                times[at].1 += 1;
            }
        }
        Ok(())
    }

    /// Runs op `at` over the rows that the step fills.
    fn op(&mut self, at: usize, pool: &Pool, step: &Step<'_>, cache: &mut Cache) -> Outcome {
        let kind = self.program.ops[at].kind;
        match kind {
            OpKind::KvAppend { k, v, state } => {
                let (k, v) = (self.row_iter(k), self.row_iter(v));
                for ((row, k), v) in step.rows.iter().zip(k).zip(v) {
                    cache.write_kv(state, row.seq, row.position, k, v)?;
                }
                Ok(())
            }
            _ => {
                let Some(id) = kind.writes() else { return Ok(()) };
                let rows = self.rows(id, step);
                let (mut taken, mut scratch) = (self.take(id), mem::take(&mut self.scratch));
                let result = match &mut taken {
                    Buffer::F32(values) if rows > 0 => {
                        let out = &mut values[..rows * self.width(id)];
                        let result = self.compute(at, pool, step, cache, out, &mut scratch);
                        if self.wrong.as_deref() == Some(kind.family()) {
                            fault::corrupt(out);
                        }
                        result
                    }
                    Buffer::F32(_) => Ok(()),
                    Buffer::Q8(q8) => self.round(kind, pool, rows, q8),
                    Buffer::Routes(routes) => self.route(kind, rows, routes),
                };
                self.buffers[id.0 as usize] = taken;
                self.scratch = scratch;
                result
            }
        }
    }

    /// Ops with a rounded result of `rows` rows.
    fn round(&self, kind: OpKind, pool: &Pool, rows: usize, out: &mut Q8Rows) -> Outcome {
        match kind {
            OpKind::Quantise { x, .. } => out.quantise(pool, &self.f32s(x)[..rows * self.width(x)], rows),
            OpKind::GatherSlots { x, routes, .. } => match (self.routes(routes), &self.buffers[x.0 as usize])
            {
                (Some(routes), Buffer::Q8(x)) => matmul::gather_q8(routes, x, out),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Ops with an f32 result; `out` holds the rows that the step fills, and the old values of what changes in place.
    fn compute(
        &self,
        at: usize,
        pool: &Pool,
        step: &Step<'_>,
        cache: &mut Cache,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Outcome {
        match (self.program.ops[at].kind, &self.ready[at]) {
            (OpKind::Embed { table, out: id }, _) => {
                let Some(table) = self.weights[table.0 as usize].matrix() else { return Ok(()) };
                let width = self.width(id);
                by_rows(pool, out, width, &|first, part| {
                    let rows = part.chunks_exact_mut(width).zip(&step.rows[first..]);
                    rows.into_iter().try_for_each(|(out, row)| table.row_decode(row.token as usize, out))
                })
            }
            (OpKind::RmsNorm { x, weight, eps, .. }, _) => {
                let weight = self.weights[weight.0 as usize].vector();
                self.rowwise(pool, x, out, &|x, out| norm::rms_norm(x, weight, eps, out))
            }
            (OpKind::Matmul { x, weight, bias, .. }, Ready::Matmul(config)) => {
                let Some(weights) = self.weights[weight.0 as usize].matrix() else { return Ok(()) };
                let n = weights.n();
                let x = self.activations(x, out.len() / n);
                matmul::matmul(pool, config, &weights, &x, out)?;
                let bias = bias.map(|bias| self.weights[bias.0 as usize].vector());
                bias.map_or(Ok(()), |bias| {
                    out.chunks_exact_mut(n).try_for_each(|row| elementwise::add(row, bias))
                })
            }
            (OpKind::Rope { x, rope }, Ready::Rope(table)) => {
                let pairing = if rope.neox { Pairing::Halves } else { Pairing::Interleaved };
                let width = self.width(x);
                by_rows(pool, out, width, &|first, part| {
                    let rows = part.chunks_exact_mut(width).zip(&step.rows[first..]);
                    rows.into_iter()
                        .try_for_each(|(x, row)| table.apply(pairing, x, rope.head_dim, row.position))
                })
            }
            (OpKind::Attention { q, state, .. }, Ready::Attention(shape)) => {
                let width = self.width(q);
                let q = self.f32s(q);
                let mut first = 0;
                for run in step.rows.chunk_by(|a, b| a.seq == b.seq && a.position + 1 == b.position) {
                    let view = cache.kv(state, run[0].seq);
                    let (from, to) = (first * width, (first + run.len()) * width);
                    let (q, out) = (&q[from..to], &mut out[from..to]);
                    attention(pool, pool.threads(), shape, run[0].position, q, &view, scratch, out)?;
                    first += run.len();
                }
                Ok(())
            }
            (OpKind::SwiGlu { gate, up, .. }, _) => self.gated(pool, gate, up, out, swiglu),
            (OpKind::GeGlu { gate, up, .. }, _) => self.gated(pool, gate, up, out, geglu),
            (OpKind::Add { y, .. }, _) => self.rowwise(pool, y, out, &|y, x| elementwise::add(x, y)),
            (OpKind::Scale { factor, .. }, _) => in_place(pool, out, &|x| elementwise::scale(x, factor)),
            (OpKind::Softcap { cap, .. }, _) => in_place(pool, out, &|x| elementwise::softcap(x, cap)),
            (OpKind::Gather { x, .. }, _) => {
                let (x, width) = (self.f32s(x), self.width(x));
                for (out, &row) in out.chunks_exact_mut(width).zip(step.wanted) {
                    out.copy_from_slice(&x[row as usize * width..][..width]);
                }
                Ok(())
            }
            (OpKind::Experts { x, routes, weight, .. }, Ready::Matmul(config)) => {
                let Some(routes) = self.routes(routes) else { return Ok(()) };
                let x = self.activations(x, routes.slots());
                matmul::experts(pool, config, &*self.weights[weight.0 as usize], routes, &x, out)
            }
            _ => self.delta(at, pool, step, cache, out, scratch),
        }
    }

    /// Rows of a buffer, as a product takes them.
    fn activations(&self, x: BufferId, rows: usize) -> Activations<'_> {
        match &self.buffers[x.0 as usize] {
            Buffer::Q8(q8) => Activations::Q8(q8),
            _ => Activations::F32 { x: &self.f32s(x)[..rows * self.width(x)], rows },
        }
    }

    /// Calls `task` on the same rows of `x` and `out`, in parallel where it pays.
    fn rowwise(&self, pool: &Pool, x: BufferId, out: &mut [f32], task: &PairTask<'_>) -> Outcome {
        let (x, width) = (self.f32s(x), self.width(x));
        by_rows(pool, out, width, &|first, part| task(&x[first * width..][..part.len()], part))
    }

    /// An activation of `gate`, times `up`.
    fn gated(&self, pool: &Pool, gate: BufferId, up: BufferId, out: &mut [f32], glu: Glu) -> Outcome {
        let (gate, up) = (self.f32s(gate), self.f32s(up));
        by_rows(pool, out, 1, &|first, part| {
            let range = first..first + part.len();
            glu(&gate[range.clone()], &up[range], part)
        })
    }

    fn rows(&self, id: BufferId, step: &Step<'_>) -> usize {
        let BufferSpec { extent, slots, .. } = self.program.buffers[id.0 as usize];
        slots
            * match extent {
                Extent::Rows => step.rows.len(),
                Extent::Logits => step.wanted.len(),
            }
    }

    pub(super) fn width(&self, id: BufferId) -> usize {
        self.program.buffers[id.0 as usize].width
    }

    pub(super) fn f32s(&self, id: BufferId) -> &[f32] {
        match &self.buffers[id.0 as usize] {
            Buffer::F32(values) => values,
            _ => &[],
        }
    }

    pub(super) fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// What op `at` computes, and what was decided for it.
    pub(super) fn ready(&self, at: usize) -> (OpKind, &Ready) {
        (self.program.ops[at].kind, &self.ready[at])
    }

    /// The values of a vector of the model.
    pub(super) fn vector(&self, id: WeightId) -> &[f32] {
        self.weights[id.0 as usize].vector()
    }

    pub(super) fn row_iter(&self, id: BufferId) -> impl Iterator<Item = &[f32]> {
        self.f32s(id).chunks_exact(self.width(id))
    }

    /// Moves a buffer out, so that an op can write it while it reads others.
    fn take(&mut self, id: BufferId) -> Buffer {
        mem::replace(&mut self.buffers[id.0 as usize], Buffer::F32(Vec::new()))
    }
}

/// Calls `task(first row, rows)` on parts of `out` that together are all its rows of `width` values.
pub(super) fn by_rows(pool: &Pool, out: &mut [f32], width: usize, task: &RowTask<'_>) -> Outcome {
    if pool.threads() == 1 || out.len() <= SERIAL {
        return task(0, out);
    }
    let rows = (out.len() / width).div_ceil(4 * pool.threads());
    let failure = OnceLock::new();
    pool.chunks_mut(pool.threads(), out, rows * width, &|index, part| {
        if let Err(e) = task(index * rows, part) {
            // Only the first failure is reported.
            let _ = failure.set(e);
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}

/// Calls `task` on parts of `out`.
fn in_place(pool: &Pool, out: &mut [f32], task: &(dyn Fn(&mut [f32]) + Sync)) -> Outcome {
    by_rows(pool, out, 1, &|_, part| {
        task(part);
        Ok(())
    })
}

fn matmul_config(op: &Op, options: &SessionOptions) -> Result<MatmulConfig, Error> {
    let none = || Error::Argument(format!("op {} has no kernel key", op.name));
    let key = op.key.as_ref().ok_or_else(none)?;
    let choice = options.dispatcher.choose(family(op.kind.family()).ok_or_else(none)?, key);
    MatmulConfig::try_from(&choice.config).map_err(|problem| {
        Error::Argument(format!("op {}: configuration {}: {problem}", op.name, choice.config))
    })
}

/// Rotation tables of a session: one for all ops that rotate alike.
pub(crate) struct RopeTables {
    positions: usize,
    /// With the factors that each was made with; none stands for ones.
    tables: Vec<(Rope, Vec<f32>, Arc<RopeTable>)>,
}

impl RopeTables {
    /// Tables for so many positions, none made yet.
    pub(crate) fn new(positions: usize) -> Self {
        RopeTables { positions, tables: Vec::new() }
    }

    fn get(&mut self, op: &Op, rope: Rope, factors: &[f32]) -> Result<Arc<RopeTable>, Error> {
        let alike = |other: &Rope, by: &[f32]| {
            (other.dims, other.base, other.scaling) == (rope.dims, rope.base, rope.scaling) && by == factors
        };
        if let Some((.., table)) = self.tables.iter().find(|(other, by, _)| alike(other, by)) {
            return Ok(table.clone());
        }
        let divisors = Some(factors).filter(|factors| !factors.is_empty());
        let table = RopeTable::new(rope.dims, rope.base, &rope.scaling, divisors, self.positions)
            .map_err(|source| Error::Kernel { op: op.name.clone(), source })?;
        let table = Arc::new(table);
        self.tables.push((rope, factors.to_vec(), table.clone()));
        Ok(table)
    }
}
