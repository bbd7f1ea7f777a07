//! The plain decoder: pre-norm blocks of grouped-query attention with rotary positions and a SwiGLU feed-forward network.
//! Llama and its kin differ from it in little.

use super::blocks::{self, Attention};
use super::source::Keys;
use super::{Graph, ModelConfig};
use crate::Error;
use crate::program::{Builder, Value};

/// How an architecture differs from the plain decoder.
#[derive(Clone, Debug, Default)]
pub(super) struct Dense {
    /// Tensors that every block must have, and plain ones lack.
    pub(super) required: &'static [&'static str],
    /// Whether each head of queries and keys has a norm.
    pub(super) head_norms: bool,
}

/// Biases of the attention's projections.
pub(super) const QKV_BIASES: &[&str] = &["attn_q.bias", "attn_k.bias", "attn_v.bias"];

impl Dense {
    /// Checks what plain decoders' folders say beyond what is shared. Biases are read wherever the model has them; what the
    /// file promises must be there.
    ///
    /// # Errors
    /// Another activation than SiLU.
    pub(super) fn read(mut self, keys: &Keys<'_>) -> Result<Box<dyn Graph>, Error> {
        const ALL: &[&str] = &["attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias"];
        const BOTH: &[&str] = &[
            "attn_q.bias",
            "attn_k.bias",
            "attn_v.bias",
            "attn_output.bias",
            "ffn_gate.bias",
            "ffn_up.bias",
            "ffn_down.bias",
        ];
        keys.expect(&["hidden_act"], "silu")?;
        let attention = keys.json::<bool>("attention_bias")?.unwrap_or(false);
        let mlp = keys.json::<bool>("mlp_bias")?.unwrap_or(false);
        self.required = match (attention, mlp) {
            (false, false) => self.required,
            (true, false) => ALL,
            (false, true) => &BOTH[4..],
            (true, true) => BOTH,
        };
        Ok(Box::new(self))
    }
}

impl Graph for Dense {
    fn build(&self, c: &ModelConfig, b: &mut Builder<'_>) -> Result<Value, Error> {
        let mut x = b.embed("token_embd", c.n_vocab, c.n_embd)?;
        for layer in 0..c.n_layers {
            b.scope(format!("blk.{layer}."));
            self.required.iter().try_for_each(|tensor| b.require(tensor))?;
            let attention = Attention { head_norms: self.head_norms, ..Attention::of_layer(c, layer) };
            let h = b.rms_norm("attn_norm", x, c.rms_eps)?;
            let a = blocks::attention(c, b, h, &attention)?;
            let (a, rest) = blocks::wanted(c, b, layer, a, x);
            x = rest;
            let o = b.linear("attn_output", a, c.n_embd)?;
            b.add("attn_residual", x, o);
            let h = b.rms_norm("ffn_norm", x, c.rms_eps)?;
            let (gate, up) = blocks::gate_and_up(c, b, h)?;
            let h = b.swiglu("swiglu", gate, up);
            let down = b.linear("ffn_down", h, c.n_embd)?;
            b.add("ffn_residual", x, down);
        }
        blocks::head(c, b, x)
    }
}
