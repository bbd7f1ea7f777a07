//! Llama: pre-norm blocks of grouped-query attention with rotary positions and a SwiGLU feed-forward network.

use super::{Architecture, ModelConfig};
use crate::Error;
use crate::program::{Builder, Rope, Value};

pub(super) const ARCHITECTURE: Architecture = Architecture { name: "llama", rope_neox: false, build };

fn build(c: &ModelConfig, b: &mut Builder<'_>) -> Result<Value, Error> {
    let rope =
        |heads| Rope { heads, head_dim: c.head_dim, dims: c.rope_dims, base: c.rope_base, neox: c.rope_neox };
    let scale = 1.0 / (c.head_dim as f32).sqrt();

    let mut x = b.embed("token_embd", c.n_vocab, c.n_embd)?;
    for layer in 0..c.n_layers {
        b.scope(format!("blk.{layer}."));
        let h = b.rms_norm("attn_norm", x, c.rms_eps)?;
        let q = b.linear("attn_q", h, c.n_heads * c.head_dim)?;
        let k = b.linear("attn_k", h, c.n_kv_heads * c.head_dim)?;
        let v = b.linear("attn_v", h, c.n_kv_heads * c.head_dim)?;
        b.rope("rope_q", q, rope(c.n_heads));
        b.rope("rope_k", k, rope(c.n_kv_heads));
        let kv = b.kv(c.n_kv_heads, c.head_dim);
        b.kv_append("kv_append", k, v, kv);
        let mut a = b.attention("attn", q, kv, c.n_heads, scale);
        if layer + 1 == c.n_layers {
            // Past the last attention only the rows whose logits are wanted matter.
            a = b.gather("gather_attn", a);
            x = b.gather("gather_x", x);
        }
        let o = b.linear("attn_output", a, c.n_embd)?;
        b.add("attn_residual", x, o);
        let h = b.rms_norm("ffn_norm", x, c.rms_eps)?;
        let gate = b.linear("ffn_gate", h, c.n_ff)?;
        let up = b.linear("ffn_up", h, c.n_ff)?;
        let h = b.swiglu("swiglu", gate, up);
        let down = b.linear("ffn_down", h, c.n_embd)?;
        b.add("ffn_residual", x, down);
    }
    b.scope(String::new());
    let h = b.rms_norm("output_norm", x, c.rms_eps)?;
    let head = if b.has("output.weight") { "output" } else { "token_embd" };
    b.linear_by("output", head, h, c.n_vocab)
}
