//! Tiny random models against transformers, from GGUF files and from folders: see `fixtures/README.md`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use memra_engine::model::{LoadOptions, Model};
use memra_engine::sampling::argmax;
use memra_engine::selfcheck::selfcheck;
use memra_engine::{GenerateOptions, Progress, Session, SessionOptions, generate, logits};
use memra_kernels::{DType, NumericClass};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Fixtures, and the GGUF file of those that have both forms.
const ALL: [(&str, Option<&str>); 13] = [
    ("llama", Some("llama-f32.gguf")),
    ("llama-biases", Some("llama-biases.gguf")),
    ("llama-linear", Some("llama-linear.gguf")),
    ("mistral-window", None),
    ("qwen2", None),
    ("qwen2-window", None),
    ("qwen2-yarn", Some("qwen2-yarn.gguf")),
    ("qwen3", Some("qwen3-f32.gguf")),
    ("qwen3-yarn", None),
    ("qwen3_moe", Some("qwen3_moe-bf16.gguf")),
    ("gemma2", Some("gemma2.gguf")),
    ("gemma3", Some("gemma3-f32.gguf")),
    ("gemma3-linear", None),
];

fn folder(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/fixtures", name].iter().collect()
}

fn load(path: &Path, pack: bool) -> Arc<Model> {
    Model::load(path, &LoadOptions { pack, ..LoadOptions::default() }).unwrap()
}

fn exact() -> SessionOptions {
    SessionOptions { class: NumericClass::F32, kv: DType::F32, ..SessionOptions::default() }
}

/// What transformers computed: ids, the 16 that follow greedily, and the logits after each of the first.
struct Reference {
    ids: Vec<u32>,
    greedy: Vec<u32>,
    logits: Vec<f32>,
    std: f32,
}

fn reference(name: &str) -> Reference {
    let text = std::fs::read_to_string(folder(name).join("ref.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ids = |key: &str| json[key].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect();
    let logits = npy(&folder(name).join("logits.f32.npy"));
    let mean = logits.iter().sum::<f32>() / logits.len() as f32;
    let std = (logits.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / logits.len() as f32).sqrt();
    Reference { ids: ids("ids"), greedy: ids("greedy"), logits, std }
}

/// The data of a version 1 `.npy` file of little-endian f32 in C order.
fn npy(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert!(String::from_utf8_lossy(&bytes[10..10 + header]).contains("'<f4'"));
    bytes[10 + header..].as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

/// Largest difference of logits, in standard deviations of the reference's; and whether the greedy ids are the same.
fn check(path: &Path, reference: &Reference, pack: bool) {
    let Reference { ids, greedy, logits: want, std } = reference;
    let mut session = Session::new(load(path, pack), exact()).unwrap();
    let got = logits::logits(&mut session, ids).unwrap();
    assert_eq!(got.len(), want.len());
    let worst = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    eprintln!(
        "{}, packed {pack}: largest difference {:.2e} of the standard deviation",
        path.display(),
        worst / std
    );
    assert!(worst <= 1e-4 * std, "{}: {worst} against a standard deviation of {std}", path.display());

    let seq = session.new_sequence();
    let options =
        GenerateOptions { max_tokens: greedy.len(), ignore_eos: true, ..GenerateOptions::default() };
    let mut streamed = Vec::new();
    let result = generate(&mut session, seq, ids, &options, &mut |progress| {
        if let Progress::Token(generated) = progress {
            streamed.push(generated.token);
        }
        ControlFlow::Continue(())
    });
    assert_eq!(result.unwrap().tokens, *greedy, "{}", path.display());
    assert_eq!(streamed, *greedy);
}

#[test]
fn logits_and_greedy_ids_match_from_files_and_from_folders() {
    for (name, file) in ALL {
        let reference = reference(name);
        for pack in [true, false] {
            check(&folder(name), &reference, pack);
            if let Some(file) = file {
                check(&folder(name).join(file), &reference, pack);
            }
        }
    }
}

#[test]
fn class_q8_with_an_f16_cache_stays_close() {
    for (name, _) in ALL {
        let reference = reference(name);
        let mut session = Session::new(load(&folder(name), true), SessionOptions::default()).unwrap();
        let got = logits::logits(&mut session, &reference.ids).unwrap();
        let width = got.len() / reference.ids.len();
        let rows = got.chunks(width).zip(reference.logits.chunks(width));
        let agree = rows.filter(|(a, b)| argmax(a) == argmax(b)).count();
        eprintln!("{name}: argmax agrees at {agree} of 48 positions");
        assert!(agree >= 40, "{name}: argmax agrees at {agree} of 48 positions");
    }
}

#[test]
fn groupings_and_threads_give_the_same_bits() {
    for (name, _) in ALL {
        let model = load(&folder(name), true);
        for class in NumericClass::ALL {
            let check = selfcheck(&model, &SessionOptions { class, ..SessionOptions::default() }).unwrap();
            assert!(check.identical, "{name}: {check:?}");
        }
    }
}
