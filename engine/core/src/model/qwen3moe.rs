//! Qwen3 MoE: Qwen3 with a mixture of experts for each feed-forward network.

use super::blocks::{self, Attention};
use super::experts::{self, Experts};
use super::{Architecture, Graph, ModelConfig};
use crate::Error;
use crate::program::{Builder, Value};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "qwen3moe",
    model_types: &["qwen3_moe"],
    layer_types: &[],
    rope_neox: true,
    window_pattern: None,
    rules: &experts::RULES,
    fields: &experts::FIELDS,
    read: |keys, _| Ok(Box::new(Qwen3Moe { experts: Experts::read(keys)? })),
};

#[derive(Debug)]
struct Qwen3Moe {
    experts: Experts,
}

impl Graph for Qwen3Moe {
    fn build(&self, c: &ModelConfig, b: &mut Builder<'_>) -> Result<Value, Error> {
        let mut x = b.embed("token_embd", c.n_vocab, c.n_embd)?;
        for layer in 0..c.n_layers {
            b.scope(format!("blk.{layer}."));
            let attention = Attention { head_norms: true, ..Attention::of_layer(c, layer) };
            let h = b.rms_norm("attn_norm", x, c.rms_eps)?;
            let a = blocks::attention(c, b, h, &attention)?;
            let (a, rest) = blocks::wanted(c, b, layer, a, x);
            x = rest;
            let o = b.linear("attn_output", a, c.n_embd)?;
            b.add("attn_residual", x, o);
            let h = b.rms_norm("ffn_norm", x, c.rms_eps)?;
            let y = self.experts.build(b, h)?;
            b.add("ffn_residual", x, y);
        }
        blocks::head(c, b, x)
    }
}
