//! Tiny random models against transformers, from GGUF files and from folders: see `fixtures/README.md`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Reference, exact, fixture, load, reference, worst};
use memra_engine::sampling::argmax;
use memra_engine::selfcheck::selfcheck;
use memra_engine::{GenerateOptions, Progress, Session, SessionOptions, generate, logits};
use memra_kernels::NumericClass;
use std::ops::ControlFlow;
use std::path::Path;

/// Fixtures, and the GGUF file of those that have both forms.
const ALL: [(&str, Option<&str>); 16] = [
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
    ("qwen3_next", Some("qwen3_next-bf16.gguf")),
    ("qwen3_5_mtp", Some("qwen3_5_mtp-bf16.gguf")),
    ("qwen3_5_moe_mtp", Some("qwen3_5_moe_mtp-bf16.gguf")),
    ("gemma2", Some("gemma2.gguf")),
    ("gemma3", Some("gemma3-f32.gguf")),
    ("gemma3-linear", None),
];

/// Largest difference of logits, in standard deviations of the reference's; and whether the greedy ids are the same.
fn check(path: &Path, reference: &Reference, pack: bool) {
    let Reference { ids, greedy, logits: want } = reference;
    let mut session = Session::new(load(path, pack), exact()).unwrap();
    let distance = worst(&logits::logits(&mut session, ids).unwrap(), want);
    eprintln!(
        "{}, packed {pack}: largest difference {distance:.2e} of the standard deviation",
        path.display()
    );
    assert!(distance <= 1e-4, "{}: {distance} standard deviations", path.display());

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
            check(&fixture(name), &reference, pack);
            if let Some(file) = file {
                check(&fixture(name).join(file), &reference, pack);
            }
        }
    }
}

#[test]
fn class_q8_with_an_f16_cache_stays_close() {
    for (name, _) in ALL {
        let reference = reference(name);
        let mut session = Session::new(load(&fixture(name), true), SessionOptions::default()).unwrap();
        let got = logits::logits(&mut session, &reference.ids).unwrap();
        let width = got.len() / reference.ids.len();
        let rows = got.chunks(width).zip(reference.logits.chunks(width));
        let agree = rows.filter(|(a, b)| argmax(a) == argmax(b)).count();
        eprintln!("{name}: argmax agrees at {agree} of 48 positions");
        // Random delta nets blow roundings up.
        let least = if name.contains("next") || name.contains("3_5") { 30 } else { 40 };
        assert!(agree >= least, "{name}: argmax agrees at {agree} of 48 positions");
    }
}

#[test]
fn groupings_and_threads_give_the_same_bits() {
    for (name, _) in ALL {
        let model = load(&fixture(name), true);
        for class in NumericClass::ALL {
            let check = selfcheck(&model, &SessionOptions { class, ..SessionOptions::default() }).unwrap();
            assert!(check.identical, "{name}: {check:?}");
        }
    }
}
