//! What models need to run: hybrids, windows, shared caches, and all that a file may leave unsaid.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use common::Model;
use memra_formats::{CacheBytes, Checkpoint, Footprint};
use memra_kernels::DType;

fn f16(footprint: &Footprint, context: u64) -> CacheBytes {
    footprint.cache.as_ref().unwrap().bytes(context, DType::F16, DType::F16).unwrap()
}

/// A tiny hybrid with shared experts, in GGUF's names.
fn hybrid() -> Model {
    let mut model = Model::new("qwen35moe");
    model.numbers(&[
        ("block_count", 3),
        ("nextn_predict_layers", 1),
        ("embedding_length", 64),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("attention.key_length", 32),
        ("attention.value_length", 32),
        ("expert_count", 8),
        ("expert_used_count", 2),
        ("ssm.conv_kernel", 4),
        ("ssm.state_size", 16),
        ("ssm.group_count", 2),
        ("ssm.time_step_rank", 4),
        ("ssm.inner_size", 64),
    ]);
    model.gguf("token_embd.weight", &[64, 384]);
    model.gguf("output_norm.weight", &[64]);
    for (name, dims) in [
        ("0.attn_qkv.weight", &[64, 128][..]),
        ("0.attn_gate.weight", &[64, 64]),
        ("0.ssm_conv1d.weight", &[4, 128]),
        ("0.ssm_out.weight", &[64, 64]),
        ("1.attn_q.weight", &[64, 256]),
        ("1.attn_k.weight", &[64, 64]),
        ("1.attn_v.weight", &[64, 64]),
        ("1.ffn_up_exps.weight", &[64, 32, 8]),
        ("1.ffn_up_shexp.weight", &[64, 32]),
        ("2.attn_k.weight", &[64, 64]),
        ("2.nextn.eh_proj.weight", &[128, 64]),
    ] {
        model.gguf(&format!("blk.{name}"), dims);
    }
    model
}

#[test]
fn hybrids_in_gguf() {
    let (_dir, model) = hybrid().open_gguf();
    let footprint = model.footprint();
    assert_eq!(footprint.shape.n_layers, Some(2));
    let sizes = f16(&footprint, 10);
    assert_eq!(sizes, CacheBytes { per_token: 256, kept: 2560, read: 2560, state: (3 * 128 + 64 * 16) * 4 });
    let dense = 64 * 128 + 64 * 64 + 4 * 128 + 64 * 64 + 64 * 256 + 2 * 64 * 64 + 64 * 32 + 64;
    let decode = footprint.decode.unwrap();
    assert_eq!(decode.bytes, (dense + 2 * 64 * 32 + 64 * 384 + 64) * 2);
    assert!(decode.is_tied);
}

#[test]
fn latent_attention_windows_by_layer_and_shared_caches() {
    let mut model = Model::new("deepseek2");
    model.numbers(&[("block_count", 1), ("attention.head_count", 16), ("embedding_length", 64)]);
    model.gguf("token_embd.weight", &[64, 8]);
    model.gguf("blk.0.attn_kv_a_mqa.weight", &[64, 576]);
    let (_dir, opened) = model.open_gguf();
    assert_eq!(f16(&opened.footprint(), 1).kept, 1152);

    let mut model = Model::new("gemma4");
    model.numbers(&[
        ("block_count", 3),
        ("embedding_length", 64),
        ("attention.head_count", 2),
        ("attention.sliding_window", 16),
        ("attention.shared_kv_layers", 1),
    ]);
    model.flags("attention.sliding_window_pattern", &[true, false, true]);
    model.gguf("token_embd.weight", &[64, 8]);
    // The second layer has no values of its own: its keys serve.
    for name in ["0.attn_k", "0.attn_v", "1.attn_k", "2.attn_k"] {
        model.gguf(&format!("blk.{name}.weight"), &[64, 32]);
    }
    let (_dir, opened) = model.open_gguf();
    let footprint = opened.footprint();
    assert_eq!(f16(&footprint, 100), CacheBytes { per_token: 256, kept: 14_848, read: 16_896, state: 0 });
    // The last layer's projection to keys is not read.
    assert_eq!(footprint.decode.unwrap().bytes, 2 * (3 * 64 * 32 + 64 * 8 + 64));
    model.replace("attention.shared_kv_layers", 3);
    let (_dir, opened) = model.open_gguf();
    let said = opened.footprint().cache.unwrap_err().to_string();
    assert_eq!(said, "there is no layer before 0 whose cache it could use");
}

/// The reasons why decode's weights and the cache are unknown; empty for those that are known.
fn reasons(model: Model) -> [String; 2] {
    let (_dir, model) = if model.config.is_empty() { model.open_gguf() } else { model.open_folder() };
    let Footprint { decode, cache, .. } = model.footprint();
    [decode.err(), cache.err()].map(|reason| reason.map_or_else(String::new, |reason| reason.to_string()))
}

#[test]
fn what_is_not_said_is_unknown() {
    let both = |model: Model, reason: &str| {
        for said in reasons(model) {
            assert!(said.contains(reason), "`{reason}` is not in: {said}");
        }
    };
    let with = |key: &str, value: u32| {
        let mut model = hybrid();
        model.replace(key, value);
        model
    };
    both(with("block_count", 8), "the model has 7 layers, but there are no tensors of block 3");
    both(with("block_count", u32::MAX), "4294967294 layers, but there are no tensors of block 3");
    both(with("block_count", 2), "the model has 1 layers, but there are tensors of more blocks");
    both(with("block_count", 0), "no tensors of block 0");
    let decode = |model: Model, reason: &str| {
        let [said, cache] = reasons(model);
        assert!(said.contains(reason) && cache.is_empty(), "`{reason}` is not in: {said}; {cache}");
    };
    decode(with("expert_count", 16), "a token uses 2 of 16 experts, which is not what block 1 has");
    decode(with("expert_used_count", 9), "a token uses 9 of 8 experts");
    decode(with("expert_count", 0), "does not say how many of them a token uses");
    let mut strange = hybrid();
    strange.gguf("hyper.weight", &[64, 64]);
    decode(strange, "it is not known what tensor `hyper.weight` is for");
    let cache = |model: Model, reason: &str| {
        let [decode, said] = reasons(model);
        assert!(said.contains(reason) && decode.is_empty(), "`{reason}` is not in: {said}; {decode}");
    };
    cache(with("ssm.inner_size", 32), "the recurrent state of block 0 is of a kind not known here");
    cache(with("attention.sliding_window", 8), "attend to the last 8 tokens alone");
    let mut indexed = hybrid();
    indexed.gguf("blk.1.indexer.attn_k.weight", &[64, 64]);
    cache(indexed, "block 1 keeps keys of its own");
    let mut bare = Model::new("rwkv7");
    bare.numbers(&[("block_count", 1)]);
    bare.gguf("token_embd.weight", &[64, 8]);
    bare.gguf("blk.0.ffn_up.weight", &[64, 64]);
    cache(bare, "block 0 has neither attention nor a recurrent state");
}

#[test]
fn what_is_not_said_in_config_json() {
    let folder = |config: &str| {
        let mut model = Model::new("");
        model.config = config.to_owned();
        model.folder("model.embed_tokens.weight", "F32", &[8, 64]);
        model.folder("model.layers.0.self_attn.k_proj.weight", "F32", &[32, 64]);
        model.folder("model.layers.0.self_attn.v_proj.weight", "F32", &[32, 64]);
        model
    };
    let known = r#""model_type":"x","num_hidden_layers":1"#;
    assert_eq!(reasons(folder(&format!("{{{known}}}"))), ["", ""]);
    let cases = [
        ("{}", "does not say how many layers"),
        (r#"{"num_hidden_layers":"1"}"#, "`num_hidden_layers`: invalid type: string"),
        (r#"{"text_config":7}"#, "`text_config.hidden_size`: invalid type: integer `7`"),
        (r#"{"num_hidden_layers":1,"is_encoder_decoder":true}"#, "an encoder beside its decoder"),
    ];
    for (config, reason) in cases {
        for said in reasons(folder(config)) {
            assert!(said.contains(reason), "{config}: `{reason}` is not in: {said}");
        }
    }
    let [decode, cache] = reasons(folder(&format!("{{{known},\"tie_word_embeddings\":false}}")));
    assert!(decode.contains("there is no output matrix") && cache.is_empty(), "{decode}; {cache}");
    for (field, reason) in [
        (r#""sliding_window":8"#, "the last 8 tokens alone, and config.json does not say which"),
        (r#""attention_chunk_size":9"#, "the last 9 tokens alone"),
        (r#""layer_types":["sliding_attention"]"#, "does not say how large"),
        (r#""layer_types":["dreaming"]"#, "layers of type \"dreaming\""),
        (r#""layer_types":[]"#, "the kinds of layers end before layer 0"),
        (r#""layer_types":["linear_attention"]"#, "the recurrent state of block 0"),
    ] {
        let [decode, cache] = reasons(folder(&format!("{{{known},{field}}}")));
        assert!(cache.contains(reason) && decode.is_empty(), "{field}: {cache}; {decode}");
    }
    for (fields, kept) in [
        (r#""sliding_window":8,"sliding_window_pattern":1"#, 256 * 100),
        (r#""sliding_window":8,"sliding_window_pattern":2"#, 256 * 8),
        (r#""sliding_window":8,"layer_types":["sliding_attention"]"#, 256 * 8),
        (r#""attention_chunk_size":9,"layer_types":["chunked_attention"]"#, 256 * 9),
    ] {
        let (_dir, model) = folder(&format!("{{{known},{fields}}}")).open_folder();
        let cache = model.footprint().cache.unwrap();
        assert_eq!(cache.bytes(100, DType::F32, DType::F32).unwrap().kept, kept, "{fields}");
    }
}

#[test]
fn windows_by_model() {
    let windows = |fields: &str| -> Vec<u64> {
        let mut model = Model::new("");
        model.config = format!("{{\"num_hidden_layers\":6,\"sliding_window\":8,{fields}}}");
        model.folder("model.embed_tokens.weight", "F32", &[8, 64]);
        (0..6).for_each(|i| model.folder(&format!("model.layers.{i}.attn.k_proj.weight"), "F32", &[32, 64]));
        let (_dir, model) = model.open_folder();
        let cache = model.footprint().cache.unwrap();
        (0..).zip(cache.layers()).filter(|(_, layer)| layer.window == Some(8)).map(|(i, _)| i).collect()
    };
    let all = [0, 1, 2, 3, 4, 5];
    assert_eq!(windows(r#""model_type":"mistral""#), all);
    assert_eq!(windows(r#""model_type":"gemma2""#), [0, 2, 4]);
    assert_eq!(windows(r#""model_type":"gpt_oss""#), [0, 2, 4]);
    assert_eq!(windows(r#""model_type":"gemma3""#), all[..5]);
    assert_eq!(windows(r#""model_type":"gemma3_text","_sliding_window_pattern":3"#), [0, 1, 3, 4]);
    assert_eq!(windows(r#""model_type":"cohere2""#), [0, 1, 2, 4, 5]);
    assert!(windows(r#""model_type":"qwen2","use_sliding_window":false"#).is_empty());
    assert_eq!(windows(r#""model_type":"qwen3","use_sliding_window":true,"max_window_layers":4"#), [4, 5]);
}

#[test]
fn weights_alone_say_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.safetensors");
    std::fs::write(&path, common::safetensors("{}", 0)).unwrap();
    let said = Checkpoint::open(path).unwrap().footprint().decode.unwrap_err().to_string();
    assert_eq!(said, "there is no config.json beside the weights");
}
