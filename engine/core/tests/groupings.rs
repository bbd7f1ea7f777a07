//! The same bits however a sequence's rows come together: in steps of any size on either path, beside other sequences, with
//! drafts that are taken back, on any number of threads.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use memra_engine::bench::random_tokens;
use memra_engine::model::{LoadOptions, Model};
use memra_engine::{Row, SeqId, Session, SessionOptions, logits, synth};
use memra_kernels::testdata::Random;
use memra_kernels::{NumericClass, NumericPath};
use std::path::PathBuf;
use std::sync::Arc;

/// Random groupings of each model, class and number of threads.
const GROUPINGS: u64 = 20;

/// Tokens of a sequence: more than a page of the cache, and than the windows of the fixtures.
const TOKENS: usize = 75;

/// One of each architecture, and of each feature that attention has.
const FIXTURES: [&str; 11] = [
    "llama",
    "llama-biases",
    "mistral-window",
    "qwen2-yarn",
    "qwen3",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_5_mtp",
    "qwen3_5_moe_mtp",
    "gemma2",
    "gemma3",
];

fn below(random: &mut Random, n: usize) -> usize {
    (random.bits() % n as u64) as usize
}

/// Feeds `tokens` to a sequence in random groupings, and compares every row of logits with that of `base`.
fn check(session: &mut Session, random: &mut Random, tokens: &[u32], base: &[f32]) -> Result<(), String> {
    let width = base.len() / tokens.len();
    let (one, other) = (session.new_sequence(), session.new_sequence());
    let mut at = 0;
    while at < tokens.len() {
        let path = [NumericPath::Decode, NumericPath::Prompt][below(random, 2)];
        let most = [1, 5, 30][below(random, 3)];
        let count = (1 + below(random, most)).min(tokens.len() - at);
        let (rows, wanted) = mix(random, one, other, &tokens[at..at + count]);
        let drafts = below(random, 4) == 0;
        let got =
            if drafts { session.verify(path, &rows, &wanted) } else { session.step(path, &rows, &wanted) };
        let got = got.map_err(|e| e.to_string())?;
        for (i, row) in got.chunks(width).enumerate() {
            let want = &base[(at + i) * width..][..width];
            if let Some(token) = row.iter().zip(want).position(|(a, b)| a.to_bits() != b.to_bits()) {
                return Err(format!("position {}, token {token}, {} rows, {path:?}", at + i, rows.len()));
            }
        }
        at += count;
        if drafts {
            // As after a verification that rejected some.
            at -= below(random, count + 1);
            session.truncate(one, at).map_err(|e| e.to_string())?;
        }
        // The next step may add three for each of thirty rows, and the shortest context is 128.
        if session.len(other).map_err(|e| e.to_string())? > 30 {
            // Recurrent layers can only begin again.
            session.truncate(other, 3).or_else(|_| session.truncate(other, 0)).map_err(|e| e.to_string())?;
        }
    }
    session.free(one).and_then(|()| session.free(other)).map_err(|e| e.to_string())
}

/// The tokens as rows of one sequence, with some of another's in between; and which rows are the first one's.
fn mix(random: &mut Random, one: SeqId, other: SeqId, tokens: &[u32]) -> (Vec<Row>, Vec<u32>) {
    let strangers = [0, 1, 3][below(random, 3)];
    let (mut rows, mut wanted) = (Vec::new(), Vec::new());
    for &token in tokens {
        for _ in 0..below(random, strangers + 1) {
            rows.push(Row { seq: other, token: 1 + below(random, 200) as u32 });
        }
        wanted.push(rows.len() as u32);
        rows.push(Row { seq: one, token });
    }
    (rows, wanted)
}

fn check_model(name: &str, model: &Arc<Model>) {
    let context = model.file().config().n_ctx_train.min(512);
    let tokens = random_tokens(TOKENS, model.file().config().n_vocab, 9);
    for class in NumericClass::ALL {
        let mut base: Option<Vec<f32>> = None;
        for threads in [1, 2, 8] {
            let options = SessionOptions {
                class,
                threads,
                context: Some(context),
                sequences: 2,
                // One for each row of the longest step.
                checkpoints: 120,
                ..SessionOptions::default()
            };
            let mut session = Session::new(model.clone(), options).unwrap();
            let base = base.get_or_insert_with(|| logits::logits(&mut session, &tokens).unwrap());
            for seed in 0..GROUPINGS {
                let result = check(&mut session, &mut Random::new(seed), &tokens, base);
                assert_eq!(result, Ok(()), "{name}, {class}, {threads} threads, grouping {seed}");
            }
        }
    }
}

#[test]
fn every_architecture_gives_the_same_bits_for_every_grouping() {
    for name in FIXTURES {
        let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/fixtures", name].iter().collect();
        check_model(name, &Model::load(&folder, &LoadOptions::default()).unwrap());
    }
}

#[test]
fn quantised_weights_do_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiny.gguf");
    synth::tiny(&path, 1).unwrap();
    check_model("tiny", &Model::load(&path, &LoadOptions::default()).unwrap());
}
