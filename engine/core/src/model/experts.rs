//! Mixture-of-experts feed-forward networks, of which each row uses a few of many; beside them perhaps a shared one.

use super::source::{Field, Keys, Rule, renamed};
use crate::Error;
use crate::program::{Builder, Routing, Value};

/// Hyperparameters of a mixture of experts.
pub(super) const FIELDS: [Field; 5] = [
    ("expert_count", &["num_experts", "num_local_experts"]),
    ("expert_used_count", &["num_experts_per_tok"]),
    ("expert_feed_forward_length", &["moe_intermediate_size"]),
    ("expert_shared_feed_forward_length", &["shared_expert_intermediate_size"]),
    // Of no account where every layer has experts, and some models then leave it out.
    ("feed_forward_length", &["intermediate_size", "moe_intermediate_size"]),
];

/// Experts' tensors in folders: each of its own, or all of a layer in one, with gate and up projections on top of each
/// other.
pub(super) const RULES: [Rule; 10] = [
    renamed("model.layers.*.mlp.gate", &["blk.*.ffn_gate_inp"]),
    renamed("model.layers.*.mlp.experts.*.gate_proj", &["blk.*.ffn_gate_exps"]),
    renamed("model.layers.*.mlp.experts.*.up_proj", &["blk.*.ffn_up_exps"]),
    renamed("model.layers.*.mlp.experts.*.down_proj", &["blk.*.ffn_down_exps"]),
    renamed(
        "model.layers.*.mlp.experts.gate_up_proj",
        &["blk.*.ffn_gate_exps.weight", "blk.*.ffn_up_exps.weight"],
    ),
    renamed("model.layers.*.mlp.experts.down_proj", &["blk.*.ffn_down_exps.weight"]),
    renamed("model.layers.*.mlp.shared_expert.gate_proj", &["blk.*.ffn_gate_shexp"]),
    renamed("model.layers.*.mlp.shared_expert.up_proj", &["blk.*.ffn_up_shexp"]),
    renamed("model.layers.*.mlp.shared_expert.down_proj", &["blk.*.ffn_down_shexp"]),
    renamed("model.layers.*.mlp.shared_expert_gate", &["blk.*.ffn_gate_inp_shexp"]),
];

/// A mixture of experts, alike in every layer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Experts {
    /// Experts a layer.
    count: usize,
    /// Width of each.
    width: usize,
    /// Width of the expert that every row uses, where there is one.
    shared: Option<usize>,
    routing: Routing,
}

impl Experts {
    /// Reads a mixture whose router is a softmax, the weights of the chosen experts adding up to one unless
    /// `config.json` says otherwise.
    ///
    /// # Errors
    /// A number that is missing or out of range, or layers without experts.
    pub(super) fn read(keys: &Keys<'_>) -> Result<Experts, Error> {
        keys.expect(&["hidden_act"], "silu")?;
        let (count, used) = (keys.count("expert_count")?, keys.count("expert_used_count")?);
        if used > count {
            let problem = format!("is {used}; there are only {count} experts");
            return Err(keys.fail("expert_used_count", problem));
        }
        if keys.json::<usize>("decoder_sparse_step")?.is_some_and(|step| step != 1) {
            return Err(keys.fail_at("decoder_sparse_step", NOT_EVERY.into()));
        }
        if keys.json::<Vec<usize>>("mlp_only_layers")?.is_some_and(|layers| !layers.is_empty()) {
            return Err(keys.fail_at("mlp_only_layers", NOT_EVERY.into()));
        }
        let renormalise = keys.json("norm_topk_prob")?.unwrap_or(true);
        let width = keys.count("expert_feed_forward_length")?;
        let shared = keys.optional("expert_shared_feed_forward_length")?.filter(|width| *width > 0);
        let routing = Routing { used, sigmoid: false, renormalise, scale: 1.0 };
        Ok(Experts { count, width, shared, routing })
    }

    /// The feed-forward network of normed rows.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(super) fn build(&self, b: &mut Builder<'_>, h: Value) -> Result<Value, Error> {
        let width = b.width(h);
        // The choice of experts is all or nothing: it sees rows that are not rounded.
        let logits = b.linear_f32("ffn_gate_inp", h, self.count)?;
        let routes = b.route("route", logits, self.routing)?;
        let x = b.gather_slots("ffn_slots", h, routes);
        let gate = b.experts("ffn_gate_exps", x, routes, self.width)?;
        let up = b.experts("ffn_up_exps", x, routes, self.width)?;
        let inner = b.swiglu("swiglu_exps", gate, up);
        let down = b.experts("ffn_down_exps", inner, routes, width)?;
        let out = b.combine("ffn_combine", down, routes);
        if let Some(shared) = self.shared {
            let gate = b.linear("ffn_gate_shexp", h, shared)?;
            let up = b.linear("ffn_up_shexp", h, shared)?;
            let inner = b.swiglu("swiglu_shexp", gate, up);
            let down = b.linear("ffn_down_shexp", inner, width)?;
            let gate = b.linear_f32("ffn_gate_inp_shexp", h, 1)?;
            b.sigmoid_gate("shexp_gate", down, gate);
            b.add("ffn_shared", out, down);
        }
        Ok(out)
    }
}

const NOT_EVERY: &str = "asks for layers without experts, which this build does not support";
