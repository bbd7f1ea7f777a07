//! The gated delta rule over the rows of a step, head by head.

#![allow(unsafe_code, reason = "threads share rows and states by blocks of columns")]

use super::disjoint::Disjoint;
use super::kernel::{self, Columns, SLICE};
use super::{SlotStep, check_slots};
use crate::cpu::{Isa, Pool, multiversion};
use crate::error::{ShapeError, at_least, same};

/// Which key head a value head uses, where there are fewer of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHead {
    /// Key head `h / (value_heads / key_heads)`: neighbours share, as in transformers' weights.
    Grouped,
    /// Key head `h % key_heads`: the order of value heads in GGUF files of Qwen3.5.
    Tiled,
}

/// Sizes of a gated delta net layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeltaShape {
    /// Query and key heads.
    pub key_heads: usize,
    /// Value heads, a multiple of `key_heads`; each has a state of its own.
    pub value_heads: usize,
    /// Values of a query or key head.
    pub key_dim: usize,
    /// Values of a value head.
    pub value_dim: usize,
    /// Which key head serves which value head.
    pub key_head: KeyHead,
    /// Added to the square of a query's or key's length where it is brought to one.
    pub eps: f32,
}

impl DeltaShape {
    /// Values of a row of queries, keys and values.
    pub fn row_len(&self) -> usize {
        2 * self.key_heads * self.key_dim + self.out_len()
    }

    /// Values of a row of results.
    pub fn out_len(&self) -> usize {
        self.value_heads * self.value_dim
    }

    /// Values of a state: `[value_heads]` of a matrix `[key_dim][value_dim]`, stored in blocks of 64 columns.
    pub fn state_len(&self) -> usize {
        self.value_heads.saturating_mul(self.key_dim).saturating_mul(self.value_dim)
    }

    /// Values of the scratch that [`delta_scan`] needs on `threads` threads.
    pub fn scratch_len(&self, threads: usize) -> usize {
        threads.max(1) * 2 * self.key_dim
    }

    fn key_head_of(&self, value_head: usize) -> usize {
        match self.key_head {
            KeyHead::Grouped => value_head / (self.value_heads / self.key_heads),
            KeyHead::Tiled => value_head % self.key_heads,
        }
    }
}

/// The gated delta rule. For each row and value head, with the state `S` (`[key_dim][value_dim]`) before it, `q` and `k`
/// of its key head brought to length one (`x / sqrt(Σ x² + eps)`), `q` divided by `sqrt(key_dim)` as well, and its
/// `decay` and `beta`:
///
/// `S ← decay · S`, `d[j] = beta · (v[j] - Σ_i S[i][j] k[i])`, `S[i][j] ← S[i][j] + k[i] d[j]`,
/// `out[j] = Σ_i S[i][j] q[i]`.
///
/// Both sums are taken in f64 in increasing `i` and rounded at the end, since what they add up nearly cancels out at times;
/// the update is a fused multiply-add. Columns do not depend on each other, so threads share
/// them in blocks, and rows follow each other in order: the result is the same however a sequence is cut into steps.
///
/// `qkv` is `[rows]` of `[key_heads][key_dim]` queries, as many keys, and `[value_heads][value_dim]` values; `gates` is
/// `[rows][2][value_heads]`, decays then betas; `out` is `[rows][value_heads][value_dim]`; `states` is a store of slots of
/// [`DeltaShape::state_len`] values, `scratch` holds [`DeltaShape::scratch_len`] values or more.
///
/// # Errors
/// When a size does not fit the others, or a slot lies beyond the store; nothing has then been written.
#[allow(clippy::too_many_arguments, reason = "a launch: where, shape, rows, inputs, state, scratch, output")]
pub fn delta_scan(
    pool: &Pool,
    shape: &DeltaShape,
    steps: &[SlotStep],
    qkv: &[f32],
    gates: &[f32],
    states: &mut [f32],
    scratch: &mut [f32],
    out: &mut [f32],
) -> Result<(), ShapeError> {
    const OP: &str = "delta_scan";
    let DeltaShape { key_heads, value_heads, key_dim, value_dim, .. } = *shape;
    let rows = steps.len();
    let shared = value_heads.checked_div(key_heads).unwrap_or(0);
    same(OP, "number of value heads", key_heads * shared, value_heads)?;
    same(OP, "number of queries, keys and values", rows.saturating_mul(shape.row_len()), qkv.len())?;
    same(OP, "number of gates", rows.saturating_mul(2 * value_heads), gates.len())?;
    same(OP, "number of outputs", rows.saturating_mul(shape.out_len()), out.len())?;
    if shape.state_len() == 0 {
        out.fill(0.0);
        return Ok(());
    }
    check_slots(OP, steps, shape.state_len(), states.len())?;
    let each = 2 * key_dim;
    let threads = pool.threads().min(value_heads * blocks(value_dim));
    at_least(OP, "scratch", threads * each, scratch.len())?;
    let isa = Isa::detect();
    let (states, out, scratch) = (Disjoint::new(states), Disjoint::new(out), Disjoint::new(scratch));
    pool.run(threads, value_heads * blocks(value_dim), &|task, thread| {
        let head = task / blocks(value_dim);
        let (first, columns) = block(task % blocks(value_dim), value_dim);
        // SAFETY: `thread` is below `threads` and no two concurrent tasks share it.
        let scratch = unsafe { scratch.part(thread * each, each) };
        let key = shape.key_head_of(head) * key_dim;
        let (unit_q, unit_k) = scratch.split_at_mut(key_dim);
        for (t, step) in steps.iter().enumerate() {
            let row = &qkv[t * shape.row_len()..][..shape.row_len()];
            unit(&row[key..][..key_dim], shape.eps, 1.0 / (key_dim as f64).sqrt(), unit_q);
            unit(&row[key_heads * key_dim + key..][..key_dim], shape.eps, 1.0, unit_k);
            let column = head * value_dim + first;
            let gates = &gates[t * 2 * value_heads..][..2 * value_heads];
            let part = |slot: u32| slot as usize * shape.state_len() + column * key_dim;
            let len = columns * key_dim;
            let columns = Columns {
                q: unit_q,
                k: unit_k,
                v: &row[2 * key_heads * key_dim + column..][..columns],
                decay: gates[head],
                beta: gates[value_heads + head],
                // SAFETY: this task alone has these columns of any slot, and the slots differ.
                old: step
                    .from
                    .filter(|from| *from != step.to)
                    .map(|from| unsafe { states.read(part(from), len) }),
                fresh: step.from.is_none(),
                // SAFETY: as above.
                state: unsafe { states.part(part(step.to), len) },
                // SAFETY: this task alone has these columns of any row.
                out: unsafe { out.part(t * shape.out_len() + column, columns) },
            };
            kernel::step(isa, columns);
        }
    });
    Ok(())
}

/// Blocks that a head's columns are cut into; the last may be narrower.
fn blocks(value_dim: usize) -> usize {
    value_dim.div_ceil(SLICE)
}

/// First column and number of columns of block `index`.
fn block(index: usize, value_dim: usize) -> (usize, usize) {
    (index * SLICE, SLICE.min(value_dim - index * SLICE))
}

multiversion! {
    /// `out = x * (scale / sqrt(Σ x² + eps))` in f64, rounded at the end; squares are added in eight interleaved sums.
    fn unit(x: &[f32], eps: f32, scale: f64, out: &mut [f32]) {
        let mut sums = [0f64; 8];
        let (blocks, tail) = x.as_chunks::<8>();
        for block in blocks {
            for (sum, v) in sums.iter_mut().zip(block) {
                *sum += f64::from(*v) * f64::from(*v);
            }
        }
        for (sum, v) in sums.iter_mut().zip(tail) {
            *sum += f64::from(*v) * f64::from(*v);
        }
        let factor = scale / (sums.iter().sum::<f64>() + f64::from(eps)).sqrt();
        for (out, x) in out.iter_mut().zip(x) {
            *out = (f64::from(*x) * factor) as f32;
        }
    }
}

#[cfg(test)]
mod tests;
