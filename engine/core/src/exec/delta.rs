//! Ops of gated delta nets, gates, and ops on columns.

use super::Step;
use super::cpu::{CpuExecutor, Outcome, Ready, by_rows};
use crate::Error;
use crate::cache::Cache;
use crate::model::Weight;
use crate::program::{DeltaNet, Op, OpKind, Program, WeightId};
use memra_kernels::cpu::Pool;
use memra_kernels::delta::{
    ConvWeights, DeltaShape, KeyHead, delta_gates, delta_scan, gated_rms_norm, short_conv, sigmoid_gate,
};
use std::sync::Arc;

impl CpuExecutor {
    /// Ops with recurrent state, or that start from a step's own; `out` as in [`CpuExecutor::plain`].
    pub(super) fn delta(
        &self,
        at: usize,
        pool: &Pool,
        step: &Step<'_>,
        cache: &mut Cache,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Outcome {
        match self.ready(at) {
            (OpKind::ShortConv { x, state, .. }, Ready::Conv(weights)) => {
                let x = &self.f32s(x)[..out.len()];
                short_conv(pool, weights, step.slots, x, cache.recurrent(state), out)
            }
            (OpKind::DeltaScan { qkv, gates, state, .. }, Ready::Delta(shape)) => {
                let rows = step.rows.len();
                let qkv = &self.f32s(qkv)[..rows * self.width(qkv)];
                let gates = &self.f32s(gates)[..rows * self.width(gates)];
                delta_scan(pool, shape, step.slots, qkv, gates, cache.recurrent(state), scratch, out)
            }
            (OpKind::Hidden { .. }, _) => {
                out.copy_from_slice(&step.hidden[..out.len()]);
                Ok(())
            }
            (kind, _) => self.plain(kind, pool, out),
        }
    }

    /// Ops that need nothing but their operands; `out` holds the rows that the step fills, and the old values of what changes
    /// in place.
    pub(super) fn plain(&self, kind: OpKind, pool: &Pool, out: &mut [f32]) -> Outcome {
        match kind {
            OpKind::Columns { x, every, from, out: id } => {
                let len = self.width(id) / (self.width(x) / every.max(1)).max(1);
                let parts = self.f32s(x).chunks_exact(every.max(1));
                for (out, part) in out.chunks_exact_mut(len.max(1)).zip(parts) {
                    out.copy_from_slice(&part[from..from + len]);
                }
                Ok(())
            }
            OpKind::Concat { a, b, out: id } => {
                let rows = self.row_iter(a).zip(self.row_iter(b));
                for (out, (a, b)) in out.chunks_exact_mut(self.width(id)).zip(rows) {
                    let (first, second) = out.split_at_mut(a.len());
                    first.copy_from_slice(a);
                    second.copy_from_slice(b);
                }
                Ok(())
            }
            OpKind::DeltaGates { a, b, rate, bias, .. } => {
                let len = out.len() / 2;
                let (a, b) = (&self.f32s(a)[..len], &self.f32s(b)[..len]);
                delta_gates(a, b, self.vector(rate), self.vector(bias), out)
            }
            OpKind::GatedRmsNorm { x, gate, weight, eps, .. } => {
                let (width, weight) = (self.width(x), self.vector(weight));
                let (x, gate) = (self.f32s(x), self.f32s(gate));
                by_rows(pool, out, width, &|first, out| {
                    let range = first * width..first * width + out.len();
                    gated_rms_norm(&x[range.clone()], &gate[range], weight, eps, out)
                })
            }
            OpKind::SigmoidGate { x, gate } => {
                let (width, gates, gate) = (self.width(x), self.width(gate), self.f32s(gate));
                by_rows(pool, out, width, &|first, out| {
                    let rows = out.len() / width.max(1);
                    sigmoid_gate(out, &gate[first * gates..][..rows * gates], width / gates.max(1))
                })
            }
            _ => self.mixed(kind, pool, out),
        }
    }
}

/// A delta net's sizes, as its kernel takes them.
pub(super) fn delta_shape(net: DeltaNet) -> DeltaShape {
    let DeltaNet { key_heads, value_heads, key_dim, value_dim, tiled, eps } = net;
    let key_head = if tiled { KeyHead::Tiled } else { KeyHead::Grouped };
    DeltaShape { key_heads, value_heads, key_dim, value_dim, key_head, eps }
}

/// The filters of a convolution, laid out for its kernel.
pub(super) fn conv_weights(
    op: &Op,
    weights: &[Arc<Weight>],
    program: &Program,
    id: WeightId,
) -> Result<ConvWeights, Error> {
    let spec = &program.weights[id.0 as usize];
    ConvWeights::new(weights[id.0 as usize].vector(), spec.n * spec.stack, spec.k)
        .map_err(|source| Error::Kernel { op: op.name.clone(), source })
}
