//! Causal attention of query rows over a paged KV cache, with grouped query heads.
//!
//! # Order of operations
//! For one query row at position `p` and one head: `s[j] = scale * Σ_d q[d] * k[j][d]` by fused multiply-add in
//! increasing `d` from zero, for the keys `j = 0..=p`, or the last [`AttentionShape::window`] of these; with a soft cap,
//! `s[j]` becomes `cap * tanh(s[j] / cap)`; `w[j] = exp(s[j] - max s)`; `out[d] = (Σ_j w[j] * v[j][d]) / Σ_j w[j]`, the
//! first sum by fused multiply-add in increasing `j` from zero, the second in sixteen interleaved f32 sums (key `j` in sum
//! `j % 16`), these added in order. Keys are visited at fixed absolute positions, so a row's bits depend neither on how a
//! prompt was cut into chunks nor on the other rows of a step nor on threads.

mod family;
mod kernel;
mod store;

pub use family::AttentionFamily;
pub use store::{KvStore, PAGE, Side};

use crate::cpu::{Isa, Pool};
use crate::error::{ShapeError, at_least, same};
use kernel::Launch;

/// Sizes of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionShape {
    /// Query heads.
    pub n_heads: usize,
    /// Key and value heads; divides `n_heads`, and each serves as many consecutive query heads.
    pub n_kv_heads: usize,
    /// Values a head.
    pub head_dim: usize,
    /// What scores are multiplied by, usually `1 / sqrt(head_dim)`.
    pub scale: f32,
    /// Keys a query sees at most, its own included (a sliding window); `None`: all up to its own.
    pub window: Option<usize>,
    /// Keeps scores between minus and plus this value by `cap * tanh(score / cap)` (Gemma 2).
    pub softcap: Option<f32>,
}

impl AttentionShape {
    /// The first position that a query at `position` sees.
    fn first_key(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window))
    }

    /// Query heads that share a key head.
    pub fn group(&self) -> usize {
        self.n_heads / self.n_kv_heads.max(1)
    }

    /// Values of the scratch that [`attention`] needs on `threads` threads for queries at positions below `positions`.
    pub fn scratch_len(&self, threads: usize, positions: usize) -> usize {
        threads.max(1) * self.scores_len(positions)
    }

    /// Scores of one query row and one key head.
    fn scores_len(&self, positions: usize) -> usize {
        self.group() * positions.next_multiple_of(PAGE)
    }
}

/// One layer's cache of one sequence.
#[derive(Clone, Copy, Debug)]
pub struct KvView<'a> {
    /// Keys of the layer, all sequences.
    pub keys: &'a KvStore,
    /// Values of the layer, all sequences.
    pub values: &'a KvStore,
    /// The sequence's pages in order: position `p` lies in page `pages[p / 64]`, at `p % 64`.
    pub pages: &'a [u32],
}

/// Attention of consecutive query rows of one sequence: row `t` of `q` stands at position `start + t` and sees the keys
/// at positions `0..=start + t`, or the last of these that its window holds, which are already in the cache.
///
/// `q` and `out` are `[rows][n_heads][head_dim]`, `scratch` holds [`AttentionShape::scratch_len`] values or more.
///
/// # Errors
/// When a size does not fit the others, a position lies beyond the sequence's pages, or the window holds no key.
#[allow(clippy::too_many_arguments, reason = "a launch: how, where, inputs, scratch, output")]
pub fn attention(
    pool: &Pool,
    threads: usize,
    shape: &AttentionShape,
    start: usize,
    q: &[f32],
    kv: &KvView<'_>,
    scratch: &mut [f32],
    out: &mut [f32],
) -> Result<(), ShapeError> {
    const OP: &str = "attention";
    let row = shape.n_heads.saturating_mul(shape.head_dim);
    let rows = q.len().checked_div(row).unwrap_or(0);
    same(OP, "number of query values", rows * row, q.len())?;
    same(OP, "number of outputs", q.len(), out.len())?;
    let launch = Launch::new(Isa::detect(), shape, kv, start.saturating_add(rows))?;
    let threads = threads.clamp(1, pool.threads());
    let each = shape.scores_len(start + rows);
    at_least(OP, "scratch", threads * each, scratch.len())?;
    let part = shape.group() * shape.head_dim;
    pool.chunks_with_scratch(threads, out, part, scratch, each, &|index, out, scores| {
        let (t, head) = (index / shape.n_kv_heads, index % shape.n_kv_heads);
        launch.run(start + t, head, &q[index * part..][..part], scores, out);
    });
    Ok(())
}

#[cfg(test)]
mod tests;
