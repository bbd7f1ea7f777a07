//! Folders in the forms that hubs keep them in, and such as must be refused, with an error that names what is wrong. Each is
//! a fixture with changes.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use memra_engine::model::{LoadOptions, Model, ModelFile};
use memra_engine::{Error, Session, SessionOptions, logits};
use memra_kernels::testdata::Random;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/fixtures", name].iter().collect()
}

/// A copy of a fixture whose configuration and tensors (their entries in the header, by name) have been changed.
fn changed(name: &str, config: impl Fn(&mut Value), tensors: impl Fn(&mut Map<String, Value>)) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut json: Value =
        serde_json::from_slice(&std::fs::read(fixture(name).join("config.json")).unwrap()).unwrap();
    config(&mut json);
    std::fs::write(dir.path().join("config.json"), json.to_string()).unwrap();
    let weights = std::fs::read(fixture(name).join("model.safetensors")).unwrap();
    let (length, rest) = weights.split_first_chunk().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let mut header: Map<String, Value> = serde_json::from_slice(header).unwrap();
    tensors(&mut header);
    let header = Value::Object(header).to_string();
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(data);
    std::fs::write(dir.path().join("model.safetensors"), out).unwrap();
    dir
}

fn same(_: &mut Map<String, Value>) {}

fn rename(from: &'static str, to: &'static str) -> impl Fn(&mut Map<String, Value>) {
    move |tensors| {
        let entry = tensors.remove(from).unwrap();
        tensors.insert(to.to_owned(), entry);
    }
}

fn refusal(name: &str, config: impl Fn(&mut Value), tensors: impl Fn(&mut Map<String, Value>)) -> String {
    ModelFile::open(changed(name, config, tensors).path()).err().unwrap().to_string()
}

fn logits_of(path: &Path) -> Vec<f32> {
    let model = Model::load(path, &LoadOptions::default()).unwrap();
    let mut session = Session::new(model, SessionOptions::default()).unwrap();
    logits::logits(&mut session, &[5, 6, 7, 8, 9]).unwrap()
}

#[test]
fn what_config_json_asks_for_and_this_build_lacks_is_named() {
    for (field, value, parts) in [
        ("model_type", json!("mamba"), ["`mamba` is not supported", "supported: llama, mistral, qwen2"]),
        ("hidden_act", json!("gelu"), ["hidden_act", "supported: silu"]),
        ("num_hidden_layers", Value::Null, ["num_hidden_layers", "missing"]),
        ("num_key_value_heads", json!(3), ["num_key_value_heads", "divide the 4"]),
        ("head_dim", json!(7), ["head_dim", "even"]),
        ("rms_norm_eps", json!(-1), ["rms_norm_eps", "positive"]),
        ("vocab_size", json!(385), ["vocab_size", "384 rows"]),
        ("eos_token_id", json!([2, 900]), ["eos_token_id", "900"]),
        ("rope_parameters", json!({"rope_type": "dynamic"}), ["rope_type", "`dynamic` is not supported"]),
        ("rope_parameters", json!({"rope_type": "linear"}), ["rope_parameters.factor", "missing"]),
        (
            "rope_parameters",
            json!({"rope_type": "yarn", "factor": -2}),
            ["rope_parameters.factor", "positive"],
        ),
        ("rope_parameters", json!({"rope_typ": "yarn"}), ["rope_parameters", "unknown field `rope_typ`"]),
        ("rope_parameters", json!({"partial_rotary_factor": 0.2}), ["partial_rotary_factor", "even number"]),
        ("quantization_config", json!({"bits": 4}), ["quantization_config", "not known to this build"]),
        ("residual_multiplier", json!(0.5), ["residual_multiplier", "not known to this build"]),
        ("layer_types", json!(["full_attention"]), ["layer_types", "lists 1 layers"]),
        ("tie_word_embeddings", json!("yes"), ["tie_word_embeddings", "expected a boolean"]),
        ("attention_bias", json!(true), ["blk.0.attn_q.bias", "model.layers.0.self_attn.q_proj.bias"]),
        ("hidden_size", json!(32), ["token_embd.weight (model.embed_tokens.weight)", "32"]),
        ("num_hidden_layers", json!(3), ["blk.3.", "not used"]),
    ] {
        let text = refusal("llama", |config| config[field] = value.clone(), same);
        assert!(parts.iter().all(|part| text.contains(part)), "{field}: {parts:?} not in: {text}");
    }
    let text = refusal(
        "llama",
        |config| config["layer_types"] = json!(["full_attention", "x", "full_attention", "x"]),
        same,
    );
    assert!(text.contains("`x` is not supported"), "{text}");
    for field in ["query_pre_attn_scalar", "head_dim", "attn_logit_softcapping"] {
        let value = if field.starts_with("attn") { json!(50.0) } else { Value::Null };
        let text = refusal("gemma3", |config| config[field] = value.clone(), same);
        assert!(text.contains(field), "{text}");
    }
}

#[test]
fn tensors_that_are_missing_or_unknown_are_named_as_the_folder_has_them() {
    let down = "model.layers.1.mlp.down_proj.weight";
    let text = refusal("llama", |_| {}, rename(down, "model.layers.1.mlp.c_proj.weight"));
    assert!(
        text.contains("blk.1.ffn_down.weight (model.layers.1.mlp.down_proj.weight): is missing"),
        "{text}"
    );
    let text = refusal("llama", |_| {}, rename("lm_head.weight", "model.head.weight"));
    assert!(text.contains("output.weight (lm_head.weight)") && text.contains("tie"), "{text}");
    let untied = |config: &mut Value| config["tie_word_embeddings"] = Value::Null;
    let text = refusal("llama", untied, rename("lm_head.weight", "model.head.weight"));
    assert!(text.contains("model.head.weight") && text.contains("not used"), "{text}");
    let text = refusal("llama", |_| {}, |tensors| tensors[down]["shape"] = json!([128, 64]));
    assert!(text.contains("blk.1.ffn_down.weight") && text.contains("128 rows of 64"), "{text}");
    let text = refusal("llama", |_| {}, |tensors| tensors[down]["shape"] = json!([8, 8, 16, 8]));
    assert!(text.contains(down) && text.contains("one, two or three"), "{text}");
    let text = refusal("llama", |_| {}, |tensors| tensors[down]["dtype"] = json!("I32"));
    assert!(text.contains(down) && text.contains("I32"), "{text}");
}

#[test]
fn weights_without_their_configuration_are_refused() {
    let error = ModelFile::open(&fixture("llama").join("model.safetensors")).unwrap_err();
    assert!(matches!(error, Error::Argument(_)) && error.to_string().contains("config.json"), "{error}");
}

#[test]
fn a_tied_model_uses_its_embedding_table_though_it_holds_another_head() {
    let tied = changed("llama", |config| config["tie_word_embeddings"] = json!(true), same);
    let bare = changed("qwen3", |_| {}, same);
    assert_eq!(logits_of(bare.path()), logits_of(&fixture("qwen3")));
    let file = ModelFile::open(tied.path()).unwrap();
    assert_eq!(file.config().tied, Some(true));
    assert_ne!(logits_of(tied.path()), logits_of(&fixture("llama")));
}

#[test]
fn older_forms_of_configurations_mean_the_same() {
    // Before version 5 of transformers: two keys for rotation, and no list of layer types.
    let older = changed(
        "gemma3-linear",
        |config| {
            let object = config.as_object_mut().unwrap();
            for field in ["rope_parameters", "layer_types", "_sliding_window_pattern"] {
                object.remove(field).unwrap();
            }
            object.insert("rope_theta".into(), json!(1e6));
            object.insert("rope_local_base_freq".into(), json!(1e4));
            object.insert(
                "rope_scaling".into(),
                json!({"type": "linear", "rope_type": "linear", "factor": 8.0}),
            );
            object.insert("sliding_window_pattern".into(), json!(2));
        },
        same,
    );
    assert_eq!(logits_of(older.path()), logits_of(&fixture("gemma3-linear")));
    let older = changed(
        "qwen2-window",
        |config| {
            let object = config.as_object_mut().unwrap();
            object.remove("layer_types").unwrap();
            object.remove("rope_parameters").unwrap();
            object.insert("rope_theta".into(), json!(10_000));
            object.insert("rope_scaling".into(), Value::Null);
        },
        same,
    );
    assert_eq!(logits_of(older.path()), logits_of(&fixture("qwen2-window")));
}

#[test]
fn several_tokens_can_end_a_generation() {
    let dir = changed("llama", |config| config["eos_token_id"] = json!([2, 7]), same);
    std::fs::write(dir.path().join("generation_config.json"), r#"{"eos_token_id": [2, 9]}"#).unwrap();
    let file = ModelFile::open(dir.path()).unwrap();
    assert_eq!(file.config().eos, Some(2));
    let ends: Vec<u32> = (0..12).filter(|&token| file.is_end_of_generation(token)).collect();
    assert_eq!(ends, [2, 7, 9]);
}

#[test]
fn no_change_of_a_few_bytes_does_more_than_fail() {
    let mut random = Random::new(1);
    for name in ["llama-linear", "gemma3-linear", "qwen2-window", "qwen3-yarn"] {
        let dir = changed(name, |_| {}, same);
        let config = dir.path().join("config.json");
        let text = std::fs::read(&config).unwrap();
        let mut opened = 0;
        for _ in 0..300 {
            let mut text = text.clone();
            for _ in 0..1 + random.bits() % 3 {
                let at = (random.bits() % text.len() as u64) as usize;
                // Digits grow and shrink numbers; anything else breaks names and structure.
                let digit = text[at].is_ascii_digit() && !random.bits().is_multiple_of(4);
                text[at] = if digit { b'0' + (random.bits() % 10) as u8 } else { random.bits() as u8 & 0x7f };
            }
            std::fs::write(&config, &text).unwrap();
            opened += usize::from(ModelFile::open(dir.path()).is_ok());
        }
        assert!(opened < 300 && opened > 0, "{name}: {opened} of 300 were opened");
    }
}
