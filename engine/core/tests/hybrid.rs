//! A small real hybrid (Qwen3.5-MoE-style, 39 million parameters, with an MTP head) against transformers.
//!
//! It is not in the repository. Its tests look in `models/hybrid-moe-mtp-39m/` for the folder that its `unpack.py` writes
//! (`config.json`, `model.safetensors`), and beside these for its `hybrid-39m-q4_k_m.gguf`, `golden.json`,
//! `logits.f32.npy` and `mtp_logits.f32.npy`. Without them they say so and pass.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{exact, load, npy, worst};
use memra_engine::sampling::argmax;
use memra_engine::selfcheck::selfcheck;
use memra_engine::{Session, SessionOptions, logits};
use memra_kernels::NumericClass;
use std::path::PathBuf;

const VOCABULARY: usize = 8192;
const GGUF: &str = "hybrid-39m-q4_k_m.gguf";

/// What transformers 5.24 computed in f32, after some of the tokens.
struct Golden {
    ids: Vec<u32>,
    positions: Vec<usize>,
    main: Vec<f32>,
    mtp: Vec<f32>,
}

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../models/hybrid-moe-mtp-39m"].iter().collect()
}

fn golden() -> Option<Golden> {
    let files =
        ["config.json", "model.safetensors", GGUF, "golden.json", "logits.f32.npy", "mtp_logits.f32.npy"];
    if let Some(absent) = files.iter().map(|file| folder().join(file)).find(|path| !path.exists()) {
        eprintln!(
            "NOT RUN: {} is absent; unpack the model there with its own `unpack.py`, and copy its GGUF file and golden outputs",
            absent.display()
        );
        return None;
    }
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder().join("golden.json")).unwrap()).unwrap();
    let list =
        |key: &str| json[key].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(list("positions"), list("mtp_positions"));
    Some(Golden {
        ids: list("ids").into_iter().map(|id| id as u32).collect(),
        positions: list("positions").into_iter().map(|at| at as usize).collect(),
        main: npy(&folder().join("logits.f32.npy")),
        mtp: npy(&folder().join("mtp_logits.f32.npy")),
    })
}

/// Main logits and those of the MTP head, at the golden positions.
fn computed(file: &str, golden: &Golden, options: SessionOptions) -> [Vec<f32>; 2] {
    let options = SessionOptions { mtp: true, context: Some(256), ..options };
    let mut session = Session::new(load(&folder().join(file), true), options).unwrap();
    let rows = |all: &[f32]| {
        let row = |at: &usize| all[at * VOCABULARY..][..VOCABULARY].to_vec();
        golden.positions.iter().flat_map(row).collect::<Vec<f32>>()
    };
    let main = rows(&logits::logits(&mut session, &golden.ids).unwrap());
    [main, rows(&logits::mtp_logits(&mut session, &golden.ids).unwrap())]
}

fn agreement(got: &[f32], want: &[f32]) -> f64 {
    let rows = got.chunks(VOCABULARY).zip(want.chunks(VOCABULARY));
    let same = rows.filter(|(a, b)| argmax(a) == argmax(b)).count();
    same as f64 / (want.len() / VOCABULARY) as f64
}

#[test]
fn main_and_mtp_logits_match_transformers() {
    let Some(golden) = golden() else { return };
    let [main, mtp] = computed("", &golden, exact());
    let (main, mtp) = (worst(&main, &golden.main), worst(&mtp, &golden.mtp));
    eprintln!(
        "BF16 safetensors, class f32: main logits within {main:.2e}, MTP within {mtp:.2e} standard deviations"
    );
    assert!(main <= 1e-3 && mtp <= 1e-3, "{main} {mtp}");
}

#[test]
fn quantised_weights_agree_on_the_likeliest_token() {
    let Some(golden) = golden() else { return };
    for class in NumericClass::ALL {
        let [main, mtp] = computed(GGUF, &golden, SessionOptions { class, ..exact() });
        let largest = main.iter().zip(&golden.main).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let (same, mtp) = (agreement(&main, &golden.main), agreement(&mtp, &golden.mtp));
        eprintln!(
            "Q4_K_M, class {class}: argmax agrees at {same:.3}, of MTP at {mtp:.3}; max |Δ logit| {largest:.2}"
        );
        assert!(same >= 0.9, "{class}: {same}");
        assert!(mtp >= 0.85, "{class}: {mtp}");
    }
}

#[test]
fn groupings_and_threads_give_the_same_bits() {
    if golden().is_none() {
        return;
    }
    for file in ["", GGUF] {
        let model = load(&folder().join(file), true);
        for class in NumericClass::ALL {
            let options = SessionOptions { class, context: Some(256), ..SessionOptions::default() };
            let check = selfcheck(&model, &options).unwrap();
            assert!(check.identical, "{file}: {check:?}");
        }
    }
}
