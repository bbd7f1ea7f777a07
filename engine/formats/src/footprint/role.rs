//! What tensors are for, by their names: those of GGUF and those of safetensors checkpoints.

/// What a tensor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role<'a> {
    /// Token embeddings: a row of them for each token, and all of them for logits where they are tied.
    Embedding,
    /// Another table of which a token reads one row, such as learned positions.
    Lookup,
    /// The matrix that gives logits, and what belongs to it.
    Output,
    /// Part of block `index`, under this name in it.
    Block { index: u32, name: &'a str },
    /// Read whole in every step: the last norm, rotary factors.
    Whole,
    /// Not read when text is decoded: what sees or hears, and what drafts.
    Beside,
    /// Nothing that is known here.
    Unknown,
}

/// What a tensor of a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Read whole in every step.
    Dense,
    /// Projects keys or values.
    KeyValue,
    /// All experts of a layer in one tensor; the slowest dimension counts them.
    AllExperts,
    /// One expert.
    Expert(u32),
}

/// The role of a GGUF tensor.
pub(super) fn in_gguf(tensor: &str) -> Role<'_> {
    if let Some(block) = tensor.strip_prefix("blk.") {
        return numbered(block).map_or(Role::Unknown, |(index, name)| Role::Block { index, name });
    }
    let first = tensor.split('.').next().unwrap_or_default();
    match first {
        "token_embd" => Role::Embedding,
        "position_embd" | "per_layer_token_embd" => Role::Lookup,
        "output" => Role::Output,
        "v" | "a" | "mm" => Role::Beside,
        _ => {
            const WHOLE: [&str; 6] =
                ["output_norm", "rope_", "token_embd_norm", "per_layer_", "altup_", "embd_norm"];
            if WHOLE.iter().any(|start| first.starts_with(start)) { Role::Whole } else { Role::Unknown }
        }
    }
}

/// What may stand before the names of a language model's tensors, once or several times.
const WRAPPERS: [&str; 7] =
    ["model.", "language_model.", "text_model.", "transformer.", "gpt_neox.", "backbone.", "decoder."];

/// What names begin with, after the wrappers, that are not read when text is decoded.
const BESIDE: [&str; 14] = [
    "mtp.",
    "visual.",
    "vision_tower.",
    "vision_model.",
    "vision_embed_tokens.",
    "multi_modal_projector.",
    "mm_projector.",
    "audio_tower.",
    "audio_model.",
    "embed_vision.",
    "embed_audio.",
    "patch_merger.",
    "image_newline",
    "eagle_module.",
];

/// The role of a tensor of a safetensors checkpoint, as the transformers library names them.
pub(super) fn in_checkpoint(tensor: &str) -> Role<'_> {
    let mut name = tensor;
    while let Some(inner) = WRAPPERS.iter().find_map(|wrapper| name.strip_prefix(wrapper)) {
        name = inner;
    }
    if BESIDE.iter().any(|start| name.starts_with(start)) {
        return Role::Beside;
    }
    let (first, rest) = name.split_once('.').unwrap_or((name, ""));
    match first {
        "layers" | "h" | "blocks" => {
            numbered(rest).map_or(Role::Unknown, |(index, name)| Role::Block { index, name })
        }
        "embed_tokens" | "wte" | "embed_in" | "word_embeddings" | "embeddings" => Role::Embedding,
        "wpe" | "embed_positions" | "embed_tokens_per_layer" => Role::Lookup,
        "lm_head" | "embed_out" => Role::Output,
        "norm"
        | "ln_f"
        | "final_layernorm"
        | "final_layer_norm"
        | "norm_f"
        | "embedding_norm"
        | "word_embeddings_layernorm"
        | "rotary_emb"
        | "per_layer_model_projection"
        | "per_layer_projection_norm"
        | "altup_projections"
        | "altup_unembed_projections" => Role::Whole,
        _ => Role::Unknown,
    }
}

/// What a tensor of a block is for, by its name in the block.
pub(super) fn part(name: &str) -> Part {
    let mut words = name.split('.');
    while let Some(word) = words.next() {
        match word {
            // GGUF fuses all experts of a layer (`ffn_up_exps`); files of the first mixtures have them one by one.
            _ if word.ends_with("exps") => return Part::AllExperts,
            "experts" | "ffn_gate" | "ffn_up" | "ffn_down" => {
                match words.clone().next().and_then(|next| next.parse().ok()) {
                    Some(expert) => return Part::Expert(expert),
                    None if word == "experts" => return Part::AllExperts,
                    None => {}
                }
            }
            "attn_k" | "attn_v" | "attn_k_norm" | "attn_v_norm" | "k_proj" | "v_proj" | "k_norm"
            | "v_norm" => return Part::KeyValue,
            _ => {}
        }
    }
    Part::Dense
}

/// `12.attn_q.weight` as 12 and the rest.
fn numbered(name: &str) -> Option<(u32, &str)> {
    let (number, rest) = name.split_once('.')?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| digits).map(|number| (number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_gguf() {
        let block = |index, name| Role::Block { index, name };
        for (tensor, role) in [
            ("blk.12.attn_q.weight", block(12, "attn_q.weight")),
            ("token_embd.weight", Role::Embedding),
            ("token_embd_norm.weight", Role::Whole),
            ("per_layer_token_embd.weight", Role::Lookup),
            ("per_layer_model_proj.weight", Role::Whole),
            ("output.weight", Role::Output),
            ("output_norm.weight", Role::Whole),
            ("rope_freqs.weight", Role::Whole),
            ("v.blk.0.attn_q.weight", Role::Beside),
            ("blk.x.attn_q.weight", Role::Unknown),
            ("blk.+1.attn_q.weight", Role::Unknown),
            ("blk.4294967296.w", Role::Unknown),
            ("blk.", Role::Unknown),
            ("enc.blk.0.attn_q.weight", Role::Unknown),
            ("", Role::Unknown),
        ] {
            assert_eq!(in_gguf(tensor), role, "{tensor}");
        }
    }

    #[test]
    fn names_of_checkpoints() {
        let block = |index, name| Role::Block { index, name };
        for (tensor, role) in [
            ("model.layers.0.self_attn.k_proj.weight", block(0, "self_attn.k_proj.weight")),
            ("model.language_model.layers.7.mlp.gate.weight", block(7, "mlp.gate.weight")),
            ("language_model.model.layers.7.input_layernorm.weight", block(7, "input_layernorm.weight")),
            ("transformer.h.3.attn.c_attn.weight", block(3, "attn.c_attn.weight")),
            ("model.embed_tokens.weight", Role::Embedding),
            ("lm_head.weight_scale", Role::Output),
            ("model.norm.weight", Role::Whole),
            ("mtp.layers.0.mlp.up_proj.weight", Role::Beside),
            ("model.visual.blocks.0.attn.qkv.weight", Role::Beside),
            ("vision_tower.layers.0.w", Role::Beside),
            ("encoder.layers.0.w", Role::Unknown),
        ] {
            assert_eq!(in_checkpoint(tensor), role, "{tensor}");
        }
    }

    #[test]
    fn parts_of_blocks() {
        for (name, expected) in [
            ("attn_q.weight", Part::Dense),
            ("attn_k.weight", Part::KeyValue),
            ("self_attn.v_proj.weight", Part::KeyValue),
            ("ffn_up.weight", Part::Dense),
            ("ffn_up.3.weight", Part::Expert(3)),
            ("ffn_up_exps.weight", Part::AllExperts),
            ("ffn_down_exps.bias", Part::AllExperts),
            ("ffn_up_shexp.weight", Part::Dense),
            ("ffn_gate_inp.weight", Part::Dense),
            ("exp_probs_b.bias", Part::Dense),
            ("mlp.experts.17.up_proj.weight", Part::Expert(17)),
            ("mlp.experts.gate_up_proj", Part::AllExperts),
            ("mlp.shared_experts.up_proj.weight", Part::Dense),
            ("block_sparse_moe.experts.0.w1.weight", Part::Expert(0)),
            ("mlp.gate.weight", Part::Dense),
        ] {
            assert_eq!(part(name), expected, "{name}");
        }
    }
}
