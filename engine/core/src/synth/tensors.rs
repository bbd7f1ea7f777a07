//! The tensors of real shapes: names, dimensions, types and widths.

use super::shape::{Arch, Shape};
use super::{Plan, Quant, Role};
use memra_kernels::DType;

/// How much wider logits are than the rest of the network: the likeliest token should stand out.
const HEAD_WIDTH: f32 = 4.0;
/// Width of the rows of an embedding that is the head as well, in units of a matrix's. A token's own row is in what the
/// layers add to, and a wide one would make every token its own likeliest successor. The last norm makes up for it.
const TIED_WIDTH: f32 = 0.25;

impl Plan {
    /// A matrix, or a stack of them, with rows of `dims[0]`: a uniform value of half-width √3 has variance one, and a
    /// product over `k` terms keeps it when each is scaled by √k.
    pub(super) fn matrix(name: String, dims: &[usize], dtype: DType) -> Plan {
        let spread = 3f32.sqrt() / (dims[0] as f32).sqrt();
        Plan { name, dims: dims.to_vec(), dtype, mean: 0.0, spread }
    }

    /// The weights of a norm of `n` values.
    pub(super) fn norm(name: String, n: usize) -> Plan {
        Plan { name, dims: vec![n], dtype: DType::F32, mean: 1.0, spread: 0.2 }
    }
}

/// Every tensor, in the order of the file.
pub(super) fn plans(shape: &Shape, quant: Quant) -> Vec<Plan> {
    let n_vocab = shape.n_vocab();
    let matrix = |name: &str, role, dims: &[usize]| {
        Plan::matrix(format!("{name}.weight"), dims, quant.dtype(role, shape.n_layers, dims[0]))
    };
    let embedding = matrix("token_embd", Role::Embedding { is_head: shape.tied }, &[shape.n_embd, n_vocab]);
    let mut plans = Vec::new();
    let mut output_norm = Plan::norm("output_norm.weight".into(), shape.n_embd);
    if shape.tied {
        plans.push(Plan { spread: TIED_WIDTH * embedding.spread, ..embedding });
        output_norm.mean *= HEAD_WIDTH / TIED_WIDTH;
        output_norm.spread *= HEAD_WIDTH / TIED_WIDTH;
    } else {
        let head = matrix("output", Role::Head, &[shape.n_embd, n_vocab]);
        plans.push(Plan { spread: HEAD_WIDTH * head.spread, ..head });
        plans.push(Plan { spread: 3f32.sqrt(), ..embedding });
    }
    for layer in 0..shape.n_layers {
        attention(&mut plans, shape, quant, layer);
        feed_forward(&mut plans, shape, quant, layer);
    }
    plans.push(output_norm);
    plans
}

fn attention(plans: &mut Vec<Plan>, shape: &Shape, quant: Quant, layer: usize) {
    let &Shape { arch, n_layers, n_embd, n_heads, n_kv_heads, head_dim, .. } = shape;
    let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
    let matrix = |tensor, role, k, n| Plan::matrix(name(tensor), &[k, n], quant.dtype(role, n_layers, k));
    plans.extend([
        Plan::norm(name("attn_norm"), n_embd),
        matrix("attn_q", Role::Matrix, n_embd, n_heads * head_dim),
        matrix("attn_k", Role::Matrix, n_embd, n_kv_heads * head_dim),
        matrix("attn_v", Role::Value { layer }, n_embd, n_kv_heads * head_dim),
        matrix("attn_output", Role::Matrix, n_heads * head_dim, n_embd),
    ]);
    if arch != Arch::Llama {
        plans.extend(["attn_q_norm", "attn_k_norm"].map(|tensor| Plan::norm(name(tensor), head_dim)));
    }
    if arch == Arch::Gemma3 {
        plans.push(Plan::norm(name("post_attention_norm"), n_embd));
    }
}

fn feed_forward(plans: &mut Vec<Plan>, shape: &Shape, quant: Quant, layer: usize) {
    let &Shape { arch, n_layers, n_embd, n_ff, moe, .. } = shape;
    let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
    let matrix =
        |tensor, role, dims: &[usize]| Plan::matrix(name(tensor), dims, quant.dtype(role, n_layers, dims[0]));
    plans.push(Plan::norm(name("ffn_norm"), n_embd));
    match moe {
        None => plans.extend([
            matrix("ffn_gate", Role::Matrix, &[n_embd, n_ff]),
            matrix("ffn_up", Role::Matrix, &[n_embd, n_ff]),
            matrix("ffn_down", Role::Down { layer }, &[n_ff, n_embd]),
        ]),
        Some(moe) => plans.extend([
            matrix("ffn_gate_inp", Role::Router, &[n_embd, moe.n_experts]),
            matrix("ffn_gate_exps", Role::Matrix, &[n_embd, moe.n_ff, moe.n_experts]),
            matrix("ffn_up_exps", Role::Matrix, &[n_embd, moe.n_ff, moe.n_experts]),
            matrix("ffn_down_exps", Role::Down { layer }, &[moe.n_ff, n_embd, moe.n_experts]),
        ]),
    }
    if arch == Arch::Gemma3 {
        plans.push(Plan::norm(name("post_ffw_norm"), n_embd));
    }
}
