//! Gemma 2 (arXiv:2408.00118) and the text part of Gemma 3 (arXiv:2503.19786): norms before and after each part, GeGLU,
//! scaled embeddings, layers with a sliding window among those without. Gemma 2 caps scores and logits; Gemma 3 has a norm
//! for each head instead, and rotary frequencies of their own in sliding layers.

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

pub(super) const GEMMA2: Architecture = Architecture {
    name: "gemma2",
    model_types: &["gemma2"],
    layer_types: &[],
    rope_neox: true,
    window_pattern: Some(2),
    rules: RULES,
    fields: &[
        ("attn_logit_softcapping", &["attn_logit_softcapping"]),
        ("final_logit_softcapping", &["final_logit_softcapping"]),
    ],
    read: |keys, config| {
        // GGUF files of the first weeks leave the caps out; they are those of every Gemma 2.
        let usual = |cap: f32| keys.source().folder().is_none().then_some(cap);
        Ok(Box::new(Gemma {
            sliding_rope: config.rope,
            head_norms: false,
            scale: scale(keys, config, 46)?,
            attention_softcap: cap(keys, "attn_logit_softcapping", usual(50.0))?,
            logits_softcap: cap(keys, "final_logit_softcapping", usual(30.0))?,
        }))
    },
};

pub(super) const GEMMA3: Architecture = Architecture {
    name: "gemma3",
    model_types: &["gemma3_text"],
    layer_types: &[],
    rope_neox: true,
    window_pattern: Some(6),
    rules: RULES,
    // The field `attn_logit_softcapping` is not among them: transformers knows it but leaves it out of account.
    fields: &[
        ("attention.sliding_window_pattern", &["sliding_window_pattern", "_sliding_window_pattern"]),
        ("rope.freq_base_swa", &["rope_local_base_freq"]),
        ("final_logit_softcapping", &["final_logit_softcapping"]),
    ],
    read: |keys, config| {
        Ok(Box::new(Gemma {
            sliding_rope: config.rope.read_sliding(keys, config.head_dim, config.n_ctx_train)?,
            head_norms: true,
            scale: scale(keys, config, 62)?,
            attention_softcap: None,
            logits_softcap: cap(keys, "final_logit_softcapping", None)?,
        }))
    },
};

#[derive(Debug)]
struct Gemma {
    /// Rotation in layers with a sliding window.
    sliding_rope: RopeConfig,
    /// Whether each head of queries and keys has a norm.
    head_norms: bool,
    /// Factor on the scores.
    scale: f32,
    attention_softcap: Option<f32>,
    logits_softcap: Option<f32>,
}

/// The factor on the scores, `1 / sqrt(query_pre_attn_scalar)`. GGUF files do not say that number: it is the head size, but
/// for the 27B models, which are known by their blocks, where it is the width for each query head.
fn scale(keys: &Keys<'_>, c: &ModelConfig, blocks_of_27b: usize) -> Result<f32, Error> {
    const FIELD: &str = "query_pre_attn_scalar";
    keys.expect(&["hidden_activation", "hidden_act"], "gelu_pytorch_tanh")?;
    // What transformers takes for missing ones is one model's own, not what other fields imply.
    for field in ["head_dim", FIELD] {
        if keys.source().folder().is_some() && keys.json::<f32>(field)?.is_none() {
            return Err(keys.fail_at(field, "is missing; the file is incomplete".into()));
        }
    }
    let usual = if c.n_layers == blocks_of_27b { c.n_embd / c.n_heads } else { c.head_dim };
    let divisor = keys.json::<f32>(FIELD)?.unwrap_or(usual as f32);
    if divisor > 0.0 && divisor.is_finite() {
        return Ok(1.0 / divisor.sqrt());
    }
    Err(keys.fail_at(FIELD, format!("is {divisor}; it must be positive")))
}

/// A soft cap; zero stands for none.
fn cap(keys: &Keys<'_>, key: &str, default: Option<f32>) -> Result<Option<f32>, Error> {
    match keys.find::<f32>(key)?.or(default) {
        Some(cap) if cap != 0.0 => keys.positive(key, Some(cap)).map(Some),
        _ => Ok(None),
    }
}

impl Gemma {
    fn attention(&self, c: &ModelConfig, layer: usize) -> Attention {
        let plain = Attention::of_layer(c, layer);
        let rope = if plain.attend.window.is_some() { self.sliding_rope } else { c.rope };
        let attend = Attend { scale: self.scale, softcap: self.attention_softcap, ..plain.attend };
        Attention { rope, attend, head_norms: self.head_norms }
    }
}

impl Graph for Gemma {
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
