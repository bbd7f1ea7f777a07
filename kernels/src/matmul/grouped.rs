//! Products of a mixture of experts: each expert's matrix times the slots that go to it.

#![allow(unsafe_code, reason = "threads write disjoint columns of one output through a pointer")]

pub(crate) mod family;

use super::drive::{Launch, Rows};
use super::{Activations, MatmulConfig, Q8Rows, Weights, columns};
use crate::cpu::{Isa, Pool};
use crate::error::{ShapeError, same};
use crate::moe::Routes;

/// The matrices of all experts, one of each, all of one type and shape.
pub trait ExpertWeights: Sync {
    /// How many experts there are.
    fn experts(&self) -> usize;

    /// The matrix of expert `expert`, where there is one.
    fn expert(&self, expert: usize) -> Option<Weights<'_>>;
}

impl ExpertWeights for [super::PackedMatrix] {
    fn experts(&self) -> usize {
        self.len()
    }

    fn expert(&self, expert: usize) -> Option<Weights<'_>> {
        self.get(expert).map(Weights::Packed)
    }
}

/// `out[slot][o] = Σ_k w[expert of slot][o][k] * x[slot][k]`: `x` and `out` have one row for each slot of `routes`, in its
/// order; `out` is `[slots][n]`.
///
/// Each output has the bits that [`matmul`](super::matmul) gives for its expert and its row alone. One parallel region
/// covers all experts that have slots.
///
/// # Errors
/// When a size does not fit the others, or experts differ in type or shape; `out` is then untouched.
pub fn experts<W: ExpertWeights + ?Sized>(
    pool: &Pool,
    config: &MatmulConfig,
    weights: &W,
    routes: &Routes,
    x: &Activations<'_>,
    out: &mut [f32],
) -> Result<(), ShapeError> {
    const OP: &str = "experts";
    same(OP, "number of experts", routes.experts(), weights.experts())?;
    same(OP, "number of slots", routes.slots(), x.rows())?;
    let Some(&first) = routes.active().first() else {
        return same(OP, "number of outputs", 0, out.len());
    };
    let shape = |expert: u32| {
        let missing =
            ShapeError { op: OP, what: "number of experts", want: expert as usize + 1, got: expert as usize };
        let w = weights.expert(expert as usize).ok_or(missing)?;
        Ok((w.dtype(), w.n(), w.k()))
    };
    let (dtype, n, k) = shape(first)?;
    for &expert in routes.active() {
        let (other, rows, values) = shape(expert)?;
        same(OP, "place in `DType::ALL` of an expert's type", dtype as usize, other as usize)?;
        same(OP, "rows of an expert", n, rows)?;
        same(OP, "values of an expert's row", k, values)?;
    }
    match x {
        Activations::F32 { x, rows } => same(OP, "number of activations", rows.saturating_mul(k), x.len())?,
        Activations::Q8(q) => same(OP, "activations a slot", k, q.k())?,
    }
    same(OP, "number of outputs", routes.slots().saturating_mul(n), out.len())?;
    let quantised = matches!(x, Activations::Q8(_));
    let columns = columns(k, dtype, config.planted);
    let launch = Launch::new(Isa::detect(), config, (dtype, n, k), quantised, columns);
    let (rows, units) = (Rows::new(x, k, out), launch.units());
    pool.run(config.threads, routes.active().len() * units, &|task, _| {
        // Borrowed whole: the closure must not take its pointers apart.
        let rows = &rows;
        let expert = routes.active()[task / units] as usize;
        let part = rows.part(routes.slots_of(expert), n);
        // There is one: its shape was checked above.
        let Some(weights) = weights.expert(expert) else { return };
        // SAFETY: sizes were checked above, slots of an expert lie within the slots of `x` and `out`, slots of different
        // experts are different, and each unit of an expert is handed out once.
        unsafe { launch.unit(&weights, task % units, part) };
    });
    Ok(())
}

/// Rounded rows to slots, without rounding them again.
///
/// # Errors
/// As [`Q8Rows::gather`].
pub fn gather_q8(routes: &Routes, x: &Q8Rows, out: &mut Q8Rows) -> Result<(), ShapeError> {
    same("gather_slots", "number of rows", routes.rows(), x.rows())?;
    out.gather(x, routes.sources())
}

#[cfg(test)]
mod tests;
