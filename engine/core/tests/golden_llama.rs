//! A tiny random llama against transformers: see `fixtures/README.md`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use memra_engine::model::{LoadOptions, Model};
use memra_engine::sampling::argmax;
use memra_engine::{GenerateOptions, Session, SessionOptions, generate, logits};
use memra_kernels::{DType, NumericClass};
use std::ops::ControlFlow;
use std::path::PathBuf;

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/fixtures/llama-f32", name].iter().collect()
}

fn session(pack: bool) -> Session {
    let load = LoadOptions { pack, ..LoadOptions::default() };
    let model = Model::load(&fixture("llama-f32.gguf"), &load).unwrap();
    let options = SessionOptions { class: NumericClass::F32, kv: DType::F32, ..SessionOptions::default() };
    Session::new(model, options).unwrap()
}

fn reference() -> (Vec<u32>, Vec<u32>) {
    let text = std::fs::read_to_string(fixture("ref.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ids = |key: &str| json[key].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect();
    (ids("ids"), ids("greedy"))
}

/// The data of a version 1 `.npy` file of little-endian f32 in C order.
fn npy(name: &str) -> Vec<f32> {
    let bytes = std::fs::read(fixture(name)).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert!(String::from_utf8_lossy(&bytes[10..10 + header]).contains("'<f4'"));
    bytes[10 + header..].as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

#[test]
fn logits_match_transformers() {
    let (ids, _) = reference();
    let want = npy("logits.f32.npy");
    let mean = want.iter().sum::<f32>() / want.len() as f32;
    let std = (want.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / want.len() as f32).sqrt();
    for pack in [true, false] {
        let got = logits::logits(&mut session(pack), &ids).unwrap();
        assert_eq!(got.len(), want.len());
        let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        eprintln!("packed {pack}: largest difference {:.2e} of the standard deviation", worst / std);
        assert!(worst <= 1e-4 * std, "{worst} against a standard deviation of {std}");
    }
}

#[test]
fn greedy_ids_match_transformers() {
    let (ids, greedy) = reference();
    let mut session = session(true);
    let seq = session.new_sequence();
    let options =
        GenerateOptions { max_tokens: greedy.len(), ignore_eos: true, ..GenerateOptions::default() };
    let mut streamed = Vec::new();
    let result = generate(&mut session, seq, &ids, &options, &mut |token| {
        streamed.push(token);
        ControlFlow::Continue(())
    });
    assert_eq!(result.unwrap().tokens, greedy);
    assert_eq!(streamed, greedy);
}

#[test]
fn class_q8_with_an_f16_cache_stays_close() {
    let (ids, _) = reference();
    let model = Model::load(&fixture("llama-f32.gguf"), &LoadOptions::default()).unwrap();
    let mut session = Session::new(model, SessionOptions::default()).unwrap();
    let got = logits::logits(&mut session, &ids).unwrap();
    let want = npy("logits.f32.npy");
    let agree = got.chunks(384).zip(want.chunks(384)).filter(|(a, b)| argmax(a) == argmax(b)).count();
    assert!(agree >= 43, "argmax agrees at {agree} of 48 positions");
}
