//! Real models against llama.cpp on the same weights in F32: see `fixtures/README.md`.
//!
//! The models are not in the repository; `tools/fetch-models` puts them in `models/`. Without one its tests say so and
//! pass.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use memra_engine::model::{LoadOptions, Model};
use memra_engine::sampling::{argmax, log_prob};
use memra_engine::{Session, SessionOptions, logits, selfcheck};
use memra_kernels::{DType, NumericClass};
use serde::Deserialize;
use std::path::Path;
use std::sync::{Arc, OnceLock};

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    ids: Vec<u32>,
    prompt_lp: Vec<f64>,
    greedy: Vec<u32>,
    gap: Vec<f64>,
}

/// A real model: its file in `models/`, and what llama.cpp computed.
struct Real {
    file: &'static str,
    golden: &'static str,
    model: OnceLock<Option<Arc<Model>>>,
}

static SMOLLM2: Real = Real {
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    golden: include_str!("fixtures/smollm2-f32.json"),
    model: OnceLock::new(),
};

static GEMMA: Real = Real {
    file: "gemma-3-270m-q4_k_m.gguf",
    golden: include_str!("fixtures/gemma-f32.json"),
    model: OnceLock::new(),
};

impl Real {
    fn model(&self) -> Option<Arc<Model>> {
        let load = || {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(self.file);
            if !path.exists() {
                eprintln!("NOT RUN: {} is absent; fetch it with `tools/fetch-models`", path.display());
                return None;
            }
            Some(Model::load(&path, &LoadOptions::default()).unwrap())
        };
        self.model.get_or_init(load).clone()
    }
}

/// Mean |Δ logprob| over all prompt tokens, and the number of greedy steps whose argmax was compared; fails on the first
/// step where the F32 gap exceeds `gap` and the argmax differs.
fn grade(real: &Real, options: SessionOptions, gap: f64, bound: f64) {
    let Some(model) = real.model() else { return };
    let golden: Golden = serde_json::from_str(real.golden).unwrap();
    let mut session = Session::new(model, options).unwrap();
    let (mut total, mut count, mut compared) = (0.0, 0, 0);
    for case in golden.cases {
        let prompt = case.ids.len();
        let tokens: Vec<u32> = case.ids.iter().chain(&case.greedy).copied().collect();
        let (mut case_total, mut wrong) = (0.0, None);
        logits::each_logits(&mut session, &tokens[..tokens.len() - 1], &mut |at, row| {
            if at + 1 < prompt {
                case_total += (log_prob(row, tokens[at + 1]) - case.prompt_lp[at]).abs();
            } else if case.gap[at + 1 - prompt] > gap {
                compared += 1;
                if argmax(row) != tokens[at + 1] {
                    wrong = wrong.or(Some(at + 1 - prompt));
                }
            }
        })
        .unwrap();
        assert_eq!(wrong, None, "case {}: argmax differs at this greedy step", case.name);
        let scored = case.prompt_lp.len();
        eprintln!("{}: mean |Δ logprob| {:.5} over {scored}", case.name, case_total / scored.max(1) as f64);
        total += case_total;
        count += scored;
    }
    let mean = total / f64::from(u32::try_from(count).unwrap());
    eprintln!("mean |Δ logprob| {mean:.5} over {count} tokens; argmax equal at {compared} greedy steps");
    assert!(mean < bound, "mean |Δ logprob| {mean} is not below {bound}");
    assert!(compared > 100);
}

fn exact() -> SessionOptions {
    SessionOptions { class: NumericClass::F32, kv: DType::F32, ..SessionOptions::default() }
}

#[test]
fn class_f32_matches_llama_cpp_on_f32_weights() {
    grade(&SMOLLM2, exact(), 0.05, 0.001);
}

#[test]
fn class_f32_matches_llama_cpp_on_gemma() {
    grade(&GEMMA, exact(), 0.05, 0.001);
}

#[test]
fn class_q8_is_within_its_bound() {
    grade(&SMOLLM2, SessionOptions::default(), 0.5, 0.08);
}

#[test]
fn class_q8_is_within_its_bound_on_gemma() {
    grade(&GEMMA, SessionOptions::default(), 0.5, 0.08);
}

#[test]
fn groupings_and_threads_give_the_same_bits() {
    for real in [&SMOLLM2, &GEMMA] {
        let Some(model) = real.model() else { continue };
        let check = selfcheck::selfcheck(&model, &SessionOptions::default()).unwrap();
        eprintln!("{}: {check:?}", real.file);
        assert!(check.identical, "{}: {check:?}", real.file);
        // The distance is that of a text; without a tokenizer the tokens are random ones.
        let text = model.file().tokenizer().is_ok();
        assert!(!text || check.mean_abs_dlogprob < 0.1, "{}: {check:?}", real.file);
    }
}
