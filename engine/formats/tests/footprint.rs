//! What models need to run: published models by their shapes, with the counts that their makers publish.
//!
//! Files have the headers of the real ones and nothing behind them: data are a hole that is never read.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use common::{Model, experts_of_gpt_oss};
use memra_formats::{CacheBytes, Checkpoint, Footprint};
use memra_kernels::DType;
use std::path::Path;

fn f16(footprint: &Footprint, context: u64) -> CacheBytes {
    footprint.cache.as_ref().unwrap().bytes(context, DType::F16, DType::F16).unwrap()
}

/// A transformer block of plain attention, in GGUF's names.
fn attention(model: &mut Model, layer: usize, n_embd: usize, q: usize, kv: usize) {
    model.gguf(&format!("blk.{layer}.attn_norm.weight"), &[n_embd]);
    for (name, k, n) in
        [("attn_q", n_embd, q), ("attn_k", n_embd, kv), ("attn_v", n_embd, kv), ("attn_output", q, n_embd)]
    {
        model.gguf(&format!("blk.{layer}.{name}.weight"), &[k, n]);
    }
    model.gguf(&format!("blk.{layer}.ffn_norm.weight"), &[n_embd]);
}

fn dense(model: &mut Model, layer: usize, n_embd: usize, n_ff: usize) {
    for (name, k, n) in [("ffn_gate", n_embd, n_ff), ("ffn_up", n_embd, n_ff), ("ffn_down", n_ff, n_embd)] {
        model.gguf(&format!("blk.{layer}.{name}.weight"), &[k, n]);
    }
}

fn llama_3_8b() -> Model {
    let mut model = Model::new("llama");
    model.numbers(&[
        ("block_count", 32),
        ("context_length", 8192),
        ("embedding_length", 4096),
        ("feed_forward_length", 14336),
        ("attention.head_count", 32),
        ("attention.head_count_kv", 8),
    ]);
    model.gguf("token_embd.weight", &[4096, 128_256]);
    for layer in 0..32 {
        attention(&mut model, layer, 4096, 4096, 1024);
        dense(&mut model, layer, 4096, 14336);
    }
    model.gguf("output_norm.weight", &[4096]);
    model.gguf("output.weight", &[4096, 128_256]);
    model.gguf("rope_freqs.weight", &[64]);
    model
}

#[test]
fn llama_3_8b_is_all_read_but_its_embeddings() {
    let (_dir, model) = llama_3_8b().open_gguf();
    assert_eq!(model.summary().n_params, 8_030_261_248);
    let footprint = model.footprint();
    let decode = footprint.decode.clone().unwrap();
    assert_eq!((decode.active_params, decode.is_tied), (8_030_261_248, false));
    // The factors of its rotation are no parameters, but are read.
    assert_eq!(decode.bytes, (8_030_261_248 - 128_256 * 4096 + 4096 + 64) * 2);
    assert_eq!(footprint.n_vocab, Some(128_256));
    let sizes = f16(&footprint, 8192);
    assert_eq!((sizes.per_token, sizes.kept, sizes.state), (131_072, 1 << 30, 0));
    assert_eq!(sizes.read, sizes.kept);
    let mixed = footprint.cache.unwrap().bytes(1, DType::Q8_0, DType::F32).unwrap();
    assert_eq!(mixed.kept, 32 * (1024 / 32 * 34 + 1024 * 4));
}

#[test]
fn qwen3_30b_a3b_reads_8_of_128_experts() {
    let mut model = Model::new("qwen3moe");
    model.numbers(&[
        ("block_count", 48),
        ("embedding_length", 2048),
        ("attention.head_count", 32),
        ("attention.head_count_kv", 4),
        ("attention.key_length", 128),
        ("attention.value_length", 128),
        ("expert_count", 128),
        ("expert_used_count", 8),
    ]);
    model.gguf("token_embd.weight", &[2048, 151_936]);
    for layer in 0..48 {
        attention(&mut model, layer, 2048, 4096, 512);
        for norm in ["attn_q_norm", "attn_k_norm"] {
            model.gguf(&format!("blk.{layer}.{norm}.weight"), &[128]);
        }
        model.gguf(&format!("blk.{layer}.ffn_gate_inp.weight"), &[2048, 128]);
        for (name, k, n) in
            [("ffn_gate_exps", 2048, 768), ("ffn_up_exps", 2048, 768), ("ffn_down_exps", 768, 2048)]
        {
            model.gguf(&format!("blk.{layer}.{name}.weight"), &[k, n, 128]);
        }
    }
    model.gguf("output_norm.weight", &[2048]);
    model.gguf("output.weight", &[2048, 151_936]);
    let (_dir, model) = model.open_gguf();
    assert_eq!(model.summary().n_params, 30_532_122_624);
    let footprint = model.footprint();
    let decode = footprint.decode.clone().unwrap();
    let unused = 48 * 120 * 3 * 2048 * 768;
    assert_eq!(decode.active_params, 30_532_122_624 - unused);
    assert_eq!(decode.bytes, (30_532_122_624 - unused - 151_936 * 2048 + 2048) * 2);
    assert_eq!(f16(&footprint, 32_768).kept, 48 * 2 * 512 * 2 * 32_768);
}

#[test]
fn gemma_3_1b_has_windows_and_tied_embeddings() {
    let mut model = Model::new("gemma3");
    model.numbers(&[
        ("block_count", 26),
        ("embedding_length", 1152),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 1),
        ("attention.key_length", 256),
        ("attention.value_length", 256),
        ("attention.sliding_window", 512),
    ]);
    model.gguf("token_embd.weight", &[1152, 262_144]);
    for layer in 0..26 {
        attention(&mut model, layer, 1152, 1024, 256);
        dense(&mut model, layer, 1152, 6912);
        for (norm, n) in [
            ("attn_q_norm", 256),
            ("attn_k_norm", 256),
            ("post_attention_norm", 1152),
            ("post_ffw_norm", 1152),
        ] {
            model.gguf(&format!("blk.{layer}.{norm}.weight"), &[n]);
        }
    }
    model.gguf("output_norm.weight", &[1152]);
    let (_dir, model) = model.open_gguf();
    assert_eq!(model.summary().n_params, 999_885_952);
    let footprint = model.footprint();
    let decode = footprint.decode.clone().unwrap();
    assert_eq!((decode.active_params, decode.is_tied), (999_885_952, true));
    assert_eq!(decode.bytes, (999_885_952 + 1152) * 2);
    let windows = footprint.cache.as_ref().unwrap().layers().iter().map(|layer| layer.window);
    let full: Vec<usize> = windows.enumerate().filter(|(_, w)| w.is_none()).map(|(i, _)| i).collect();
    assert_eq!(full, [5, 11, 17, 23]);
    assert_eq!(f16(&footprint, 100).kept, 26 * 1024 * 100);
    assert_eq!(f16(&footprint, 32_768).kept, 4 * 1024 * 32_768 + 22 * 1024 * 512);
}

#[test]
fn gpt_oss_20b_packs_its_experts() {
    let mut model = Model::new("gpt_oss");
    model.config = r#"{"model_type":"gpt_oss","hidden_size":2880,"num_hidden_layers":24,"vocab_size":201088,
        "num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"num_local_experts":32,
        "num_experts_per_tok":4,"sliding_window":128,"tie_word_embeddings":false,"max_position_embeddings":131072,
        "quantization_config":{"quant_method":"mxfp4"}}"#
        .to_owned();
    model.folder("model.embed_tokens.weight", "BF16", &[201_088, 2880]);
    for layer in 0..24 {
        let mut add = |name: &str, dtype: &str, shape: &[usize]| {
            model.folder(&format!("model.layers.{layer}.{name}"), dtype, shape);
        };
        for (name, n, k) in
            [("q_proj", 4096, 2880), ("k_proj", 512, 2880), ("v_proj", 512, 2880), ("o_proj", 2880, 4096)]
        {
            add(&format!("self_attn.{name}.weight"), "BF16", &[n, k]);
            add(&format!("self_attn.{name}.bias"), "BF16", &[n]);
        }
        add("self_attn.sinks", "BF16", &[64]);
        add("input_layernorm.weight", "BF16", &[2880]);
        add("post_attention_layernorm.weight", "BF16", &[2880]);
        add("mlp.router.weight", "BF16", &[32, 2880]);
        add("mlp.router.bias", "BF16", &[32]);
        experts_of_gpt_oss(add);
    }
    model.folder("model.norm.weight", "BF16", &[2880]);
    model.folder("lm_head.weight", "BF16", &[201_088, 2880]);
    let (_dir, model) = model.open_folder();
    assert_eq!(model.summary().n_params, 20_914_757_184);
    let footprint = model.footprint();
    let decode = footprint.decode.clone().unwrap();
    // The makers count 3.61 billion, without the embeddings.
    assert_eq!(decode.active_params, 3_608_307_264 + 201_088 * 2880);
    // Of an expert: a row of 2880 is 90 blocks of 16 bytes and a scale; biases are BF16.
    let expert = (5760 + 2880) * (90 * 17 + 2);
    let others = (20_914_757_184 - 24 * 32 * (5760 + 2880) * 2881 - 201_088 * 2880 + 2880) * 2;
    assert_eq!(decode.bytes, others + 24 * 4 * expert);
    assert_eq!(f16(&footprint, 8192).kept, 12 * 2048 * 8192 + 12 * 2048 * 128);
}

#[test]
fn qwen3_next_80b_a3b_has_states_and_a_head_that_drafts() {
    let mut model = Model::new("qwen3_next");
    model.config = r#"{"model_type":"qwen3_next","hidden_size":2048,"num_hidden_layers":48,
        "num_attention_heads":16,"num_key_value_heads":2,"head_dim":256,"num_experts":512,"num_experts_per_tok":10,
        "linear_conv_kernel_dim":4,"linear_num_key_heads":16,"linear_key_head_dim":128,
        "linear_num_value_heads":32,"linear_value_head_dim":128,"full_attention_interval":4}"#
        .to_owned();
    let block = |model: &mut Model, start: &str, is_full: bool| {
        let mut add = |name: &str, shape: &[usize]| model.folder(&format!("{start}.{name}"), "BF16", shape);
        let mixer: &[(&str, &[usize])] = if is_full {
            &[
                ("self_attn.q_proj.weight", &[8192, 2048]),
                ("self_attn.k_proj.weight", &[512, 2048]),
                ("self_attn.v_proj.weight", &[512, 2048]),
                ("self_attn.o_proj.weight", &[2048, 4096]),
                ("self_attn.q_norm.weight", &[256]),
                ("self_attn.k_norm.weight", &[256]),
            ]
        } else {
            &[
                ("linear_attn.in_proj_qkvz.weight", &[12_288, 2048]),
                ("linear_attn.in_proj_ba.weight", &[64, 2048]),
                ("linear_attn.conv1d.weight", &[8192, 1, 4]),
                ("linear_attn.A_log", &[32]),
                ("linear_attn.dt_bias", &[32]),
                ("linear_attn.norm.weight", &[128]),
                ("linear_attn.out_proj.weight", &[2048, 4096]),
            ]
        };
        mixer.iter().for_each(|(name, shape)| add(name, shape));
        add("input_layernorm.weight", &[2048]);
        add("post_attention_layernorm.weight", &[2048]);
        add("mlp.gate.weight", &[512, 2048]);
        add("mlp.shared_expert_gate.weight", &[1, 2048]);
        for (name, shape) in
            [("gate_proj", [512, 2048]), ("up_proj", [512, 2048]), ("down_proj", [2048, 512])]
        {
            add(&format!("mlp.shared_expert.{name}.weight"), &shape);
            (0..512).for_each(|e| add(&format!("mlp.experts.{e}.{name}.weight"), &shape));
        }
    };
    model.folder("model.embed_tokens.weight", "BF16", &[151_936, 2048]);
    (0..48).for_each(|layer| block(&mut model, &format!("model.layers.{layer}"), layer % 4 == 3));
    model.folder("model.norm.weight", "BF16", &[2048]);
    model.folder("lm_head.weight", "BF16", &[151_936, 2048]);
    block(&mut model, "mtp.layers.0", true);
    model.folder("mtp.fc.weight", "BF16", &[2048, 4096]);
    for norm in ["norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"] {
        model.folder(&format!("mtp.{norm}.weight"), "BF16", &[2048]);
    }
    let (_dir, model) = model.open_folder();
    assert_eq!(model.summary().n_params, 81_324_862_720);
    let footprint = model.footprint();
    let decode = footprint.decode.clone().unwrap();
    let used = 79_674_391_296 - 48 * 502 * 3 * 2048 * 512_u64;
    assert_eq!(decode.active_params, used);
    assert_eq!(decode.bytes, (used - 151_936 * 2048 + 2048) * 2);
    let sizes = f16(&footprint, 1000);
    assert_eq!((sizes.kept, sizes.state), (12 * 2048 * 1000, 36 * (3 * 8192 + 128 * 4096) * 4));
}

/// The engine's fixtures are models that were converted from folders to GGUF by others.
#[test]
fn folders_and_their_conversions_need_the_same() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/fixtures");
    let mut n_compared = 0;
    for entry in std::fs::read_dir(fixtures).unwrap() {
        let dir = entry.unwrap().path();
        let files = std::fs::read_dir(&dir).into_iter().flatten().map(|file| file.unwrap().path());
        let mut ggufs = files.filter(|file| file.extension().is_some_and(|extension| extension == "gguf"));
        let Some(gguf) = ggufs.next().filter(|_| dir.join("config.json").exists()) else { continue };
        let [folder, gguf] = [&dir, &gguf].map(|path| Checkpoint::open(path).unwrap());
        let (ours, theirs) = (folder.footprint(), gguf.footprint());
        let at = dir.display();
        assert_eq!((&ours.n_vocab, ours.shape.n_layers), (&theirs.n_vocab, theirs.shape.n_layers), "{at}");
        assert_eq!(
            (&ours.shape.experts, ours.shape.n_embd),
            (&theirs.shape.experts, theirs.shape.n_embd),
            "{at}"
        );
        assert_eq!(ours.cache, theirs.cache, "{at}");
        let (ours, theirs) = (ours.decode.unwrap(), theirs.decode.unwrap());
        assert_eq!((ours.active_params, ours.is_tied), (theirs.active_params, theirs.is_tied), "{at}");
        // Converters store vectors in f32, whatever the matrices are in.
        assert!(
            theirs.bytes >= ours.bytes && theirs.bytes < ours.bytes * 11 / 10,
            "{at}: {ours:?} {theirs:?}"
        );
        n_compared += 1;
    }
    assert!(n_compared >= 5, "only {n_compared} fixtures are there in both formats");
}
