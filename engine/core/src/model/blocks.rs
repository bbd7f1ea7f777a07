//! Parts of Programs that architectures share. Names of weights are within the builder's scope.

use super::ModelConfig;
use crate::Error;
use crate::program::{Attend, Builder, Rope, Value};

/// What a layer's attention adds to the plain one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Attention {
    /// Rotation of the heads.
    pub(super) rope: super::RopeConfig,
    /// Factor on the scores, window, soft cap.
    pub(super) attend: Attend,
    /// Whether each head of queries and keys has an RMS norm, before it is rotated.
    pub(super) head_norms: bool,
}

impl Attention {
    /// Scores scaled by `1 / sqrt(head_dim)`, the window of the layer.
    pub(super) fn of_layer(c: &ModelConfig, layer: usize) -> Attention {
        let attend = Attend {
            heads: c.n_heads,
            scale: 1.0 / (c.head_dim as f32).sqrt(),
            window: c.windows.get(layer).copied().flatten(),
            softcap: None,
        };
        Attention { rope: c.rope, attend, head_norms: false }
    }
}

/// Grouped-query attention on normed rows, up to the output projection, which is the caller's.
pub(super) fn attention(
    c: &ModelConfig,
    b: &mut Builder<'_>,
    h: Value,
    attention: &Attention,
) -> Result<Value, Error> {
    let Attention { rope, attend, head_norms } = *attention;
    let mut q = b.linear("attn_q", h, c.n_heads * c.head_dim)?;
    let mut k = b.linear("attn_k", h, c.n_kv_heads * c.head_dim)?;
    let v = b.linear("attn_v", h, c.n_kv_heads * c.head_dim)?;
    if head_norms {
        q = b.rms_norm_heads("attn_q_norm", q, c.head_dim, c.rms_eps)?;
        k = b.rms_norm_heads("attn_k_norm", k, c.head_dim, c.rms_eps)?;
    }
    let factors = b.vector("rope_freqs.weight", rope.dims / 2)?;
    b.rope("rope_q", q, Rope { factors, ..rope.of(c.n_heads, c.head_dim) });
    b.rope("rope_k", k, Rope { factors, ..rope.of(c.n_kv_heads, c.head_dim) });
    let kv = b.kv(c.n_kv_heads, c.head_dim);
    b.kv_append("kv_append", k, v, kv);
    Ok(b.attention("attn", q, kv, attend))
}

/// In the last layer, attention's result and the residual stream of the rows whose logits are wanted: past the last
/// attention only these matter. In other layers, both as they are.
pub(super) fn wanted(
    c: &ModelConfig,
    b: &mut Builder<'_>,
    layer: usize,
    attended: Value,
    x: Value,
) -> (Value, Value) {
    if layer + 1 < c.n_layers {
        return (attended, x);
    }
    (b.gather("gather_attn", attended), b.gather("gather_x", x))
}

/// A gated feed-forward network's two inner products.
pub(super) fn gate_and_up(c: &ModelConfig, b: &mut Builder<'_>, h: Value) -> Result<(Value, Value), Error> {
    Ok((b.linear("ffn_gate", h, c.n_ff)?, b.linear("ffn_up", h, c.n_ff)?))
}

/// The last norm and the output head: a matrix of its own, or the embedding table.
pub(super) fn head(c: &ModelConfig, b: &mut Builder<'_>, x: Value) -> Result<Value, Error> {
    b.scope(String::new());
    let h = b.rms_norm("output_norm", x, c.rms_eps)?;
    logits(c, b, h)
}

/// The output head on normed rows.
pub(super) fn logits(c: &ModelConfig, b: &mut Builder<'_>, h: Value) -> Result<Value, Error> {
    let head = if b.has("output.weight") { "output" } else { "token_embd" };
    b.linear_by("output", head, h, c.n_vocab)
}
