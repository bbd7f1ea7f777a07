//! Gemma 3, text (arXiv:2503.19786): norms before and after each part, norms of each head, GeGLU, scaled embeddings; five
//! of six layers see a sliding window, with rotary frequencies of their own.

use super::blocks::{self, Attention};
use super::source::{Keys, Rule, norm_less_one};
use super::{Architecture, Graph, ModelConfig, RopeConfig};
use crate::Error;
use crate::program::{Attend, Builder, Value};

/// In folders a norm's weight is what is added to one; in GGUF files the one is in it.
const RULES: &[Rule] = &[
    norm_less_one("model.norm", &["output_norm"]),
    norm_less_one("model.layers.*.input_layernorm", &["blk.*.attn_norm"]),
    norm_less_one("model.layers.*.self_attn.q_norm", &["blk.*.attn_q_norm"]),
    norm_less_one("model.layers.*.self_attn.k_norm", &["blk.*.attn_k_norm"]),
    norm_less_one("model.layers.*.post_attention_layernorm", &["blk.*.post_attention_norm"]),
    norm_less_one("model.layers.*.pre_feedforward_layernorm", &["blk.*.ffn_norm"]),
    norm_less_one("model.layers.*.post_feedforward_layernorm", &["blk.*.post_ffw_norm"]),
];

pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "gemma3",
    model_types: &["gemma3_text"],
    rope_neox: true,
    window_pattern: Some(6),
    rules: RULES,
    fields: &[
        ("attention.sliding_window_pattern", &["sliding_window_pattern", "_sliding_window_pattern"]),
        ("rope.freq_base_swa", &["rope_local_base_freq"]),
        ("attn_logit_softcapping", &["attn_logit_softcapping"]),
        ("final_logit_softcapping", &["final_logit_softcapping"]),
    ],
    read: |keys, config| Ok(Box::new(Gemma3::read(keys, config)?)),
};

#[derive(Debug)]
struct Gemma3 {
    /// Rotation in layers with a sliding window.
    sliding_rope: RopeConfig,
    /// Factor on the scores.
    scale: f32,
    attention_softcap: Option<f32>,
    logits_softcap: Option<f32>,
}

/// Blocks of the 27B model.
const BLOCKS_OF_27B: usize = 62;

impl Gemma3 {
    fn read(keys: &Keys<'_>, c: &ModelConfig) -> Result<Self, Error> {
        keys.expect(&["hidden_activation", "hidden_act"], "gelu_pytorch_tanh")?;
        // Transformers' defaults of these are one model's own, not what other fields imply.
        for field in ["head_dim", "query_pre_attn_scalar"] {
            if keys.source().folder().is_some() && keys.json::<f32>(field)?.is_none() {
                return Err(keys.fail_at(field, "is missing; the file is incomplete".into()));
            }
        }
        // GGUF files do not say: it is the head size, but for the 27B model, where it is the width for each query head.
        let usual = if c.n_layers == BLOCKS_OF_27B { c.n_embd / c.n_heads } else { c.head_dim };
        let divisor = keys.json::<f32>("query_pre_attn_scalar")?.unwrap_or(usual as f32);
        if !(divisor > 0.0 && divisor.is_finite()) {
            return Err(keys.fail_at("query_pre_attn_scalar", format!("is {divisor}; it must be positive")));
        }
        let cap = |key: &str| match keys.find::<f32>(key)? {
            Some(cap) if cap != 0.0 => keys.positive(key, None).map(Some),
            _ => Ok::<_, Error>(None),
        };
        Ok(Gemma3 {
            sliding_rope: c.rope.read_sliding(keys, c.head_dim, c.n_ctx_train)?,
            scale: 1.0 / divisor.sqrt(),
            attention_softcap: cap("attn_logit_softcapping")?,
            logits_softcap: cap("final_logit_softcapping")?,
        })
    }

    fn attention(&self, c: &ModelConfig, layer: usize) -> Attention {
        let plain = Attention::of_layer(c, layer);
        let rope = if plain.attend.window.is_some() { self.sliding_rope } else { c.rope };
        let attend = Attend { scale: self.scale, softcap: self.attention_softcap, ..plain.attend };
        Attention { rope, attend, head_norms: true }
    }
}

impl Graph for Gemma3 {
    fn build(&self, c: &ModelConfig, b: &mut Builder<'_>) -> Result<Value, Error> {
        let mut x = b.embed("token_embd", c.n_vocab, c.n_embd)?;
        // In f32, as references that compute in f32 do; one that computes in bf16 rounds the factor.
        b.scale("embd_scale", x, (c.n_embd as f32).sqrt());
        for layer in 0..c.n_layers {
            b.scope(format!("blk.{layer}."));
            let h = b.rms_norm("attn_norm", x, c.rms_eps)?;
            let a = blocks::attention(c, b, h, &self.attention(c, layer))?;
            let (a, rest) = blocks::wanted(c, b, layer, a, x);
            x = rest;
            let o = b.linear("attn_output", a, c.n_embd)?;
            let o = b.rms_norm("post_attention_norm", o, c.rms_eps)?;
            b.add("attn_residual", x, o);
            let h = b.rms_norm("ffn_norm", x, c.rms_eps)?;
            let (gate, up) = blocks::gate_and_up(c, b, h)?;
            let h = b.geglu("geglu", gate, up);
            let down = b.linear("ffn_down", h, c.n_embd)?;
            let down = b.rms_norm("post_ffw_norm", down, c.rms_eps)?;
            b.add("ffn_residual", x, down);
        }
        let logits = blocks::head(c, b, x)?;
        if let Some(cap) = self.logits_softcap {
            b.softcap("logits_softcap", logits, cap);
        }
        Ok(logits)
    }
}
