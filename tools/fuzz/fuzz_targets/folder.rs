//! A model folder: documents, an index and two files of weights.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_formats::{Checkpoint, Json};
use memra_fuzz::{unpack, use_figures, use_tensor};
use std::{fs, hint::black_box, sync::LazyLock};
use tempfile::TempDir;

/// The files, in the order in which an input holds them.
const NAMES: [&str; 7] = [
    "config.json",
    "model.safetensors.index.json",
    "a.safetensors",
    "b.safetensors",
    "tokenizer_config.json",
    "generation_config.json",
    "tokenizer.json",
];

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

fuzz_target!(|input: &[u8]| {
    let files = unpack(input, NAMES.len());
    for (i, name) in NAMES.iter().enumerate() {
        fs::write(FOLDER.path().join(name), files.get(i).unwrap_or(&&[][..])).expect("a file is written");
    }
    if let Ok(json) = Json::parse("config.json", files.first().copied().unwrap_or_default()) {
        black_box(json.find::<f64>("a.b").map_err(|error| error.to_string())).ok();
        black_box(json.find::<Vec<u32>>("eos_token_id").map_err(|error| error.to_string())).ok();
    }
    if let Ok(checkpoint) = Checkpoint::open(FOLDER.path()).map_err(|error| error.to_string()) {
        checkpoint.tensors().for_each(use_tensor);
        use_figures(&checkpoint);
    }
});
