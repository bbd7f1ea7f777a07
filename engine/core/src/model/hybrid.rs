//! Qwen3-Next and Qwen3.5, text: layers of gated delta nets (arXiv:2412.06464) with every few of them one of gated
//! attention, whose heads rotate in part; feed-forward networks dense or mixtures of experts.

use super::blocks;
use super::experts::{self, Experts};
use super::source::{Field, Keys, Rule, negative_exp, norm_less_one, renamed};
use super::{Architecture, Graph, ModelConfig};
use crate::Error;
use crate::program::{Attend, Builder, DeltaNet, Value};

pub(super) const QWEN3NEXT: Architecture = Architecture {
    name: "qwen3next",
    model_types: &["qwen3_next"],
    layer_types: &[LINEAR],
    rope_neox: true,
    window_pattern: None,
    rules: &RULES,
    fields: &FIELDS,
    read: |keys, c| Ok(Box::new(Hybrid::read(keys, c, false, Some(Experts::read(keys)?))?)),
};

pub(super) const QWEN35: Architecture = Architecture {
    name: "qwen35",
    model_types: &["qwen3_5_text"],
    read: |keys, c| Ok(Box::new(Hybrid::read(keys, c, true, None)?)),
    ..QWEN3NEXT
};

pub(super) const QWEN35MOE: Architecture = Architecture {
    name: "qwen35moe",
    model_types: &["qwen3_5_moe_text"],
    read: |keys, c| Ok(Box::new(Hybrid::read(keys, c, true, Some(Experts::read(keys)?))?)),
    ..QWEN3NEXT
};

const LINEAR: &str = "linear_attention";

/// In folders a norm's weight is what is added to one, but for the norm at the end of a delta net, and a decay's rate is
/// the logarithm of its negative.
const RULES: [Rule; 30] = {
    let mut rules = [renamed("", &[]); 30];
    let own = [
        norm_less_one("model.norm", &["output_norm"]),
        norm_less_one("model.layers.*.input_layernorm", &["blk.*.attn_norm"]),
        norm_less_one("model.layers.*.post_attention_layernorm", &["blk.*.post_attention_norm"]),
        norm_less_one("model.layers.*.self_attn.q_norm", &["blk.*.attn_q_norm"]),
        norm_less_one("model.layers.*.self_attn.k_norm", &["blk.*.attn_k_norm"]),
        renamed("model.layers.*.linear_attn.in_proj_qkv", &["blk.*.attn_qkv"]),
        renamed("model.layers.*.linear_attn.in_proj_z", &["blk.*.attn_gate"]),
        renamed("model.layers.*.linear_attn.in_proj_a", &["blk.*.ssm_alpha"]),
        renamed("model.layers.*.linear_attn.in_proj_b", &["blk.*.ssm_beta"]),
        renamed("model.layers.*.linear_attn.in_proj_ba", &["blk.*.ssm_ba"]),
        // No GGUF file has it: converters cut it up.
        renamed("model.layers.*.linear_attn.in_proj_qkvz", &["blk.*.ssm_qkvz"]),
        renamed("model.layers.*.linear_attn.conv1d", &["blk.*.ssm_conv1d"]),
        negative_exp("model.layers.*.linear_attn.A_log", &["blk.*.ssm_a"]),
        renamed("model.layers.*.linear_attn.dt_bias", &["blk.*.ssm_dt.bias"]),
        renamed("model.layers.*.linear_attn.norm", &["blk.*.ssm_norm"]),
        renamed("model.layers.*.linear_attn.out_proj", &["blk.*.ssm_out"]),
        renamed("mtp.fc", &["mtp.0.nextn.eh_proj"]),
        norm_less_one("mtp.pre_fc_norm_embedding", &["mtp.0.nextn.enorm"]),
        norm_less_one("mtp.pre_fc_norm_hidden", &["mtp.0.nextn.hnorm"]),
        norm_less_one("mtp.norm", &["mtp.0.nextn.shared_head_norm"]),
    ];
    let mut i = 0;
    while i < 20 {
        rules[i] = own[i];
        i += 1;
    }
    while i < 30 {
        rules[i] = experts::RULES[i - 20];
        i += 1;
    }
    rules
};

const FIELDS: [Field; 11] = [
    ("ssm.conv_kernel", &["linear_conv_kernel_dim"]),
    ("ssm.state_size", &["linear_key_head_dim"]),
    ("ssm.group_count", &["linear_num_key_heads"]),
    ("ssm.time_step_rank", &["linear_num_value_heads"]),
    ("full_attention_interval", &["full_attention_interval"]),
    ("nextn_predict_layers", &["mtp_num_hidden_layers"]),
    experts::FIELDS[0],
    experts::FIELDS[1],
    experts::FIELDS[2],
    experts::FIELDS[3],
    experts::FIELDS[4],
];

#[derive(Debug)]
struct Hybrid {
    /// Of each layer, whether it is a delta net.
    recurrent: Vec<bool>,
    net: DeltaNet,
    /// Rows that the short convolution mixes.
    taps: usize,
    /// The feed-forward networks, where they are not dense.
    experts: Option<Experts>,
}

impl Hybrid {
    /// `tiled`: in which order GGUF files have value heads; folders have those that share a key head side by side.
    fn read(
        keys: &Keys<'_>,
        c: &ModelConfig,
        tiled: bool,
        experts: Option<Experts>,
    ) -> Result<Hybrid, Error> {
        keys.expect(&["hidden_act"], "silu")?;
        keys.expect(&["mamba_ssm_dtype"], "float32")?;
        if keys.json::<bool>("attn_output_gate")? == Some(false) {
            return Err(
                keys.fail_at("attn_output_gate", "is false, which this build does not support".into())
            );
        }
        // A text's positions are the same in every section.
        keys.gguf::<Vec<i32>>("rope.dimension_sections")?;
        let key_heads = keys.count("ssm.group_count")?;
        let value_heads = keys.count("ssm.time_step_rank")?;
        if !value_heads.is_multiple_of(key_heads) {
            let problem = format!("is {value_heads}; it must be a multiple of the {key_heads} key heads");
            return Err(keys.fail("ssm.time_step_rank", problem));
        }
        let net = DeltaNet {
            key_heads,
            value_heads,
            key_dim: keys.count("ssm.state_size")?,
            value_dim: value_dim(keys, value_heads)?,
            tiled: tiled && keys.source().folder().is_none(),
            // That of transformers, whatever the eps of the norms.
            eps: 1e-6,
        };
        let taps = keys.count("ssm.conv_kernel")?;
        Ok(Hybrid { recurrent: recurrent_layers(keys, c.n_layers)?, net, taps, experts })
    }

    /// Attention on normed rows with a gate for each value, up to the output projection: the result, and the gate.
    fn attention(&self, c: &ModelConfig, b: &mut Builder<'_>, h: Value) -> Result<(Value, Value), Error> {
        let (heads, dim) = (c.n_heads, c.head_dim);
        let both = b.linear("attn_q", h, 2 * heads * dim)?;
        let q = b.columns("attn_q_query", both, 2 * dim, 0, dim);
        let gate = b.columns("attn_q_gate", both, 2 * dim, dim, dim);
        let k = b.linear("attn_k", h, c.n_kv_heads * dim)?;
        let v = b.linear("attn_v", h, c.n_kv_heads * dim)?;
        let q = b.rms_norm_heads("attn_q_norm", q, dim, c.rms_eps)?;
        let k = b.rms_norm_heads("attn_k_norm", k, dim, c.rms_eps)?;
        b.rope("rope_q", q, c.rope.of(heads, dim));
        b.rope("rope_k", k, c.rope.of(c.n_kv_heads, dim));
        let kv = b.kv(c.n_kv_heads, dim);
        b.kv_append("kv_append", k, v, kv);
        let scale = 1.0 / (dim as f32).sqrt();
        let a = b.attention("attn", q, kv, Attend { heads, scale, window: None, softcap: None });
        Ok((a, gate))
    }

    /// A delta net on normed rows, up to the gated norm: the result of the rule, and the gate.
    fn delta_net(&self, b: &mut Builder<'_>, h: Value) -> Result<(Value, Value), Error> {
        let DeltaNet { key_heads, value_heads, key_dim, value_dim, .. } = self.net;
        let (keys, values) = (key_heads * key_dim, value_heads * value_dim);
        let (qkv, z) = if b.has_scoped("ssm_qkvz.weight") {
            // For each key head its query, key, values and gates.
            let each = values / key_heads;
            let every = 2 * (key_dim + each);
            let all = b.linear("ssm_qkvz", h, key_heads * every)?;
            let q = b.columns("qkvz_q", all, every, 0, key_dim);
            let k = b.columns("qkvz_k", all, every, key_dim, key_dim);
            let v = b.columns("qkvz_v", all, every, 2 * key_dim, each);
            let z = b.columns("qkvz_z", all, every, 2 * key_dim + each, each);
            let qk = b.concat("qkvz_qk", q, k);
            (b.concat("qkvz_qkv", qk, v), z)
        } else {
            (b.linear("attn_qkv", h, 2 * keys + values)?, b.linear("attn_gate", h, values)?)
        };
        let (beta, alpha) = if b.has_scoped("ssm_ba.weight") {
            let each = value_heads / key_heads;
            let both = b.linear("ssm_ba", h, 2 * value_heads)?;
            (
                b.columns("ssm_ba_b", both, 2 * each, 0, each),
                b.columns("ssm_ba_a", both, 2 * each, each, each),
            )
        } else {
            (b.linear("ssm_beta", h, value_heads)?, b.linear("ssm_alpha", h, value_heads)?)
        };
        let mixed = b.short_conv("ssm_conv1d", qkv, self.taps)?;
        let gates = b.delta_gates("delta_gates", alpha, beta)?;
        Ok((b.delta_scan("delta_scan", mixed, gates, self.net), z))
    }

    /// One layer; with `last`, of the rows whose logits are wanted alone, where others no longer matter.
    fn layer(
        &self,
        c: &ModelConfig,
        b: &mut Builder<'_>,
        mut x: Value,
        recurrent: bool,
        last: bool,
    ) -> Result<Value, Error> {
        let h = b.rms_norm("attn_norm", x, c.rms_eps)?;
        let (mut y, mut gate) = if recurrent { self.delta_net(b, h)? } else { self.attention(c, b, h)? };
        if last {
            (y, gate, x) = (b.gather("gather_y", y), b.gather("gather_gate", gate), b.gather("gather_x", x));
        }
        let o = if recurrent {
            let y = b.gated_rms_norm("ssm_norm", y, gate, self.net.value_dim, c.rms_eps)?;
            b.linear("ssm_out", y, c.n_embd)?
        } else {
            b.sigmoid_gate("attn_gate", y, gate);
            b.linear("attn_output", y, c.n_embd)?
        };
        b.add("attn_residual", x, o);
        let h = b.rms_norm("post_attention_norm", x, c.rms_eps)?;
        let y = match &self.experts {
            Some(experts) => experts.build(b, h)?,
            None => {
                let (gate, up) = blocks::gate_and_up(c, b, h)?;
                let h = b.swiglu("swiglu", gate, up);
                b.linear("ffn_down", h, c.n_embd)?
            }
        };
        b.add("ffn_residual", x, y);
        Ok(x)
    }
}

impl Graph for Hybrid {
    fn build(&self, c: &ModelConfig, b: &mut Builder<'_>) -> Result<Value, Error> {
        let mut x = b.embed("token_embd", c.n_vocab, c.n_embd)?;
        for (layer, recurrent) in self.recurrent.iter().enumerate() {
            b.scope(format!("blk.{layer}."));
            let last = layer + 1 == c.n_layers && !b.keeps_hidden();
            x = self.layer(c, b, x, *recurrent, last)?;
        }
        b.scope(String::new());
        let mut h = b.rms_norm("output_norm", x, c.rms_eps)?;
        if b.keeps_hidden() {
            b.keep_hidden(h);
            h = b.gather("gather_hidden", h);
        }
        blocks::logits(c, b, h)
    }

    /// A layer with attention over the next token and the state that predicted it, both normed, as one row; the embedding
    /// table and the output head are the model's.
    fn build_mtp(&self, c: &ModelConfig, b: &mut Builder<'_>) -> Result<Option<Value>, Error> {
        let scopes = ["mtp.0.".to_owned(), format!("blk.{}.", c.n_layers)];
        let found = scopes.into_iter().find(|scope| b.has(&format!("{scope}nextn.eh_proj.weight")));
        let Some(scope) = found else { return Ok(None) };
        let next = b.embed("token_embd", c.n_vocab, c.n_embd)?;
        let state = b.hidden("hidden", c.n_embd);
        b.scope(scope);
        let next = b.rms_norm("nextn.enorm", next, c.rms_eps)?;
        let state = b.rms_norm("nextn.hnorm", state, c.rms_eps)?;
        let both = b.concat("nextn.concat", next, state);
        let x = b.linear("nextn.eh_proj", both, c.n_embd)?;
        let x = self.layer(c, b, x, false, false)?;
        let h = b.rms_norm("nextn.shared_head_norm", x, c.rms_eps)?;
        b.keep_hidden(h);
        b.scope(String::new());
        let h = b.gather("gather_hidden", h);
        blocks::logits(c, b, h).map(Some)
    }
}

/// GGUF files say how wide all value heads are together.
fn value_dim(keys: &Keys<'_>, value_heads: usize) -> Result<usize, Error> {
    if keys.source().folder().is_some() {
        return match keys.json("linear_value_head_dim")? {
            Some(dim) if dim > 0 => Ok(dim),
            other => {
                let problem = format!("is {}; it must be at least 1", other.unwrap_or(0));
                Err(keys.fail_at("linear_value_head_dim", problem))
            }
        };
    }
    let all = keys.count("ssm.inner_size")?;
    if all.is_multiple_of(value_heads) {
        return Ok(all / value_heads);
    }
    let problem = format!("is {all}; it must be a multiple of the {value_heads} value heads");
    Err(keys.fail("ssm.inner_size", problem))
}

/// Which layers are delta nets: as the model lists them, else all but every so many-th.
fn recurrent_layers(keys: &Keys<'_>, n_layers: usize) -> Result<Vec<bool>, Error> {
    const LISTED: &str = "attention.recurrent_layers";
    let interval = keys.optional("full_attention_interval")?.unwrap_or(4);
    // Its length has been checked.
    if let Some(types) = keys.json::<Vec<String>>("layer_types")? {
        return Ok(types.iter().map(|kind| kind == LINEAR).collect());
    }
    match keys.gguf::<Vec<bool>>(LISTED)? {
        Some(listed) if listed.len() < n_layers => {
            let problem = format!("lists {} layers, but the model has {n_layers}", listed.len());
            Err(keys.fail(LISTED, problem))
        }
        // The layer of an MTP head, if there is one, is the last.
        Some(listed) => Ok(listed[..n_layers].to_vec()),
        None => {
            Ok((0..n_layers).map(|layer| interval == 0 || !(layer + 1).is_multiple_of(interval)).collect())
        }
    }
}
