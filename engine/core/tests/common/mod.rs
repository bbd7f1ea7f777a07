//! What tests of tiny random models share.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its own part")]

use memra_engine::SessionOptions;
use memra_engine::model::{LoadOptions, Model};
use memra_kernels::{DType, NumericClass};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder under `tests/fixtures`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/fixtures", name].iter().collect()
}

pub(crate) fn load(path: &Path, pack: bool) -> Arc<Model> {
    Model::load(path, &LoadOptions { pack, ..LoadOptions::default() }).unwrap()
}

/// The oracle's arithmetic.
pub(crate) fn exact() -> SessionOptions {
    SessionOptions { class: NumericClass::F32, kv: DType::F32, ..SessionOptions::default() }
}

/// What transformers computed: ids, those that follow greedily, and the logits after each of the first.
pub(crate) struct Reference {
    pub(crate) ids: Vec<u32>,
    pub(crate) greedy: Vec<u32>,
    pub(crate) logits: Vec<f32>,
}

pub(crate) fn reference(name: &str) -> Reference {
    let text = std::fs::read_to_string(fixture(name).join("ref.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ids = |key: &str| json[key].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect();
    Reference { ids: ids("ids"), greedy: ids("greedy"), logits: npy(&fixture(name).join("logits.f32.npy")) }
}

/// The data of a version 1 `.npy` file of little-endian f32 in C order.
pub(crate) fn npy(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert!(String::from_utf8_lossy(&bytes[10..10 + header]).contains("'<f4'"));
    bytes[10 + header..].as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

/// Largest difference, in standard deviations of what is wanted.
pub(crate) fn worst(got: &[f32], want: &[f32]) -> f32 {
    assert_eq!(got.len(), want.len());
    let mean = want.iter().sum::<f32>() / want.len() as f32;
    let std = (want.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / want.len() as f32).sqrt();
    got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) / std
}
