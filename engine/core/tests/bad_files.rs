//! Files that must be refused, with an error that names what is wrong. Each is a made-up model with one change.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use memra_engine::model::{LoadOptions, Model, ModelFile};
use memra_engine::{Error, Session, SessionOptions, logits, synth};
use memra_formats::{Gguf, GgufWriter, Value};
use memra_kernels::DType;
use std::path::{Path, PathBuf};

enum Change {
    /// A u32 key set, or added.
    U32(&'static str, u32),
    /// A text key set, or added.
    Text(&'static str, &'static str),
    /// A float key set, or added.
    F32(&'static str, f32),
    /// A key left out.
    NoKey(&'static str),
    /// A tensor left out.
    NoTensor(&'static str),
    /// An F32 tensor of two values added, or put in another's place.
    Tensor(&'static str),
    /// The first value of an F32 tensor made NaN.
    Nan(&'static str),
}

/// Writes the tiny model with one change; arrays (the tokenizer's tables) are left out.
fn variant(dir: &Path, change: &Change) -> PathBuf {
    let tiny = dir.join("tiny.gguf");
    if !tiny.exists() {
        synth::tiny(&tiny, 1).unwrap();
    }
    let gguf = Gguf::open(&tiny).unwrap();
    let mut writer = GgufWriter::new();
    let changed = match change {
        Change::U32(key, _) | Change::Text(key, _) | Change::F32(key, _) | Change::NoKey(key) => key,
        _ => "",
    };
    for (key, value) in gguf.metadata().iter().filter(|(key, _)| *key != changed) {
        match value {
            Value::U32(v) => _ = writer.metadata(key, &v).unwrap(),
            Value::F32(v) => _ = writer.metadata(key, &v).unwrap(),
            Value::Bool(v) => _ = writer.metadata(key, &v).unwrap(),
            Value::Str(v) => _ = writer.metadata(key, std::str::from_utf8(v).unwrap()).unwrap(),
            _ => {}
        }
    }
    match change {
        Change::U32(key, v) => _ = writer.metadata(key, v).unwrap(),
        Change::F32(key, v) => _ = writer.metadata(key, v).unwrap(),
        Change::Text(key, v) => _ = writer.metadata(key, *v).unwrap(),
        _ => {}
    }
    let kept = |name: &str| !matches!(change, Change::NoTensor(n) | Change::Tensor(n) if *n == name);
    for tensor in gguf.tensors().filter(|t| kept(t.name())) {
        writer.tensor(tensor.name(), &tensor.dims(), tensor.dtype().unwrap()).unwrap();
    }
    if let Change::Tensor(name) = change {
        writer.tensor(name, &[2], DType::F32).unwrap();
    }
    let path = dir.join("changed.gguf");
    let mut body = writer.begin(std::fs::File::create(&path).unwrap()).unwrap();
    for tensor in gguf.tensors().filter(|t| kept(t.name())) {
        let mut data = tensor.data().to_vec();
        if matches!(change, Change::Nan(name) if *name == tensor.name()) {
            data[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        }
        body.append(&data).unwrap();
    }
    if let Change::Tensor(_) = change {
        body.append(&[0; 8]).unwrap();
    }
    body.finish().unwrap();
    path
}

fn refusal(change: &Change) -> String {
    let dir = tempfile::tempdir().unwrap();
    ModelFile::open(&variant(dir.path(), change)).unwrap_err().to_string()
}

#[test]
fn what_is_missing_or_unsupported_is_named() {
    for (change, parts) in [
        (Change::Text("general.architecture", "mamba"), ["`mamba` is not supported", "supported: llama"]),
        (
            Change::Text("llama.rope.scaling.type", "longrope"),
            ["llama.rope.scaling.type", "`longrope` is not supported"],
        ),
        (Change::F32("llama.rope.scaling.factor", -8.0), ["llama.rope.scaling.factor", "must be positive"]),
        (
            Change::F32("llama.unheard_of", 2.0),
            ["llama.unheard_of", "is 2, which this build does not support"],
        ),
        (Change::U32("llama.expert_count", 8), ["llama.expert_count", "8"]),
        (Change::U32("llama.attention.head_count_kv", 3), ["llama.attention.head_count_kv", "divide the 8"]),
        (Change::U32("llama.attention.head_count", 0), ["llama.attention.head_count", "at least 1"]),
        (Change::U32("llama.attention.key_length", 7), ["llama.attention.key_length", "even"]),
        (
            Change::U32("llama.attention.value_length", 64),
            ["llama.attention.value_length", "as long as keys"],
        ),
        (Change::U32("llama.rope.dimension_count", 64), ["llama.rope.dimension_count", "head size, 32"]),
        (Change::F32("llama.attention.layer_norm_rms_epsilon", -1.0), ["rms_epsilon", "positive"]),
        (Change::NoKey("llama.block_count"), ["llama.block_count", "missing"]),
        (Change::U32("tokenizer.ggml.eos_token_id", 70_000), ["eos_token_id", "vocabulary"]),
        (Change::U32("llama.embedding_length", 512), ["token_embd.weight", "256"]),
        (Change::U32("llama.block_count", u32::MAX), ["llama.block_count", "tensors in all"]),
        (Change::U32("llama.block_count", 3), ["blk.3.", "not used"]),
        (Change::U32("llama.block_count", 5), ["blk.4.attn_norm.weight", "missing"]),
        (Change::NoTensor("blk.2.ffn_up.weight"), ["blk.2.ffn_up.weight", "missing"]),
        (Change::Tensor("rope_freqs.weight"), ["rope_freqs.weight", "1 rows of 16"]),
        (Change::Tensor("blk.0.attn_q_norm.weight"), ["blk.0.attn_q_norm.weight", "not used"]),
        (Change::Tensor("blk.1.attn_norm.weight"), ["blk.1.attn_norm.weight", "1 rows of 256"]),
    ] {
        let text = refusal(&change);
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} not in: {text}");
    }
}

#[test]
fn a_broken_tokenizer_does_not_keep_logits_from_being_computed() {
    let dir = tempfile::tempdir().unwrap();
    let path = variant(dir.path(), &Change::Text("tokenizer.ggml.pre", "unheard-of"));
    let model = Model::load(&path, &LoadOptions::default()).unwrap();
    assert!(matches!(model.file().tokenizer().unwrap_err(), Error::Tokenizer(_)));
    assert!(model.file().is_end_of_generation(model.file().config().eos.unwrap()));
    let mut session = Session::new(model, SessionOptions::default()).unwrap();
    logits::logits(&mut session, &[1, 2]).unwrap();
}

#[test]
fn a_tied_head_uses_the_embedding_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = variant(dir.path(), &Change::NoTensor("output.weight"));
    let model = Model::load(&path, &LoadOptions::default()).unwrap();
    let mut session = Session::new(model, SessionOptions::default()).unwrap();
    logits::logits(&mut session, &[1, 2]).unwrap();
}

#[test]
fn logits_that_are_not_finite_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = variant(dir.path(), &Change::Nan("output_norm.weight"));
    let model = Model::load(&path, &LoadOptions::default()).unwrap();
    let mut session = Session::new(model, SessionOptions::default()).unwrap();
    let seq = session.new_sequence();
    let error = session.prefill(seq, &[1, 2, 3], 512).unwrap_err();
    assert!(matches!(error, Error::NotFinite { position: 2, token: 0 }), "{error}");
    assert_eq!(session.len(seq).unwrap(), 0);
}
