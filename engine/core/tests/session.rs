//! Sessions, generation, checks and bench on a made-up model.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use memra_engine::bench::{BenchOptions, BenchTest, bench, random_tokens};
use memra_engine::model::{LoadOptions, Model};
use memra_engine::sampling::{Penalties, Sampling, argmax};
use memra_engine::selfcheck::selfcheck;
use memra_engine::{
    Error, Fault, Finish, GenerateOptions, Progress, Row, Session, SessionOptions, generate, logits, synth,
};
use memra_kernels::{DType, NumericClass, NumericPath};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

static TINY: LazyLock<Arc<Model>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiny.gguf");
    synth::tiny(&path, 1).unwrap();
    Model::load(&path, &LoadOptions::default()).unwrap()
});

fn session(options: SessionOptions) -> Session {
    Session::new(TINY.clone(), options).unwrap()
}

fn tokens(n: usize) -> Vec<u32> {
    random_tokens(n, TINY.file().config().n_vocab, 3)
}

#[test]
fn every_class_gives_the_same_bits_for_every_grouping() {
    for class in NumericClass::ALL {
        for kv in [DType::F16, DType::F32] {
            let options = SessionOptions { class, kv, threads: 2, ..SessionOptions::default() };
            let check = selfcheck(&TINY, &options).unwrap();
            assert!(check.identical, "{check:?}");
            assert!(check.groupings.len() >= 6 && check.tokens > 100, "{check:?}");
            let bound = if class == NumericClass::F32 { 2e-3 } else { 0.1 };
            assert!(check.mean_abs_dlogprob < bound, "{class} {kv}: {check:?}");
        }
    }
}

#[test]
fn packed_and_mapped_weights_give_the_same_bits() {
    let mapped = Model::load(TINY.file().path(), &LoadOptions { pack: false, threads: 1 });
    // The file is gone once its folder is: the mapping of the loaded model still holds it.
    assert!(mapped.is_err());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiny.gguf");
    synth::tiny(&path, 1).unwrap();
    let mapped = Model::load(&path, &LoadOptions { pack: false, threads: 1 }).unwrap();
    assert!(mapped.resident_bytes() < 20_000 && TINY.resident_bytes() > 1_000_000);
    let ids = tokens(20);
    let one = logits::logits(&mut Session::new(mapped, SessionOptions::default()).unwrap(), &ids).unwrap();
    assert_eq!(one, logits::logits(&mut session(SessionOptions::default()), &ids).unwrap());
}

#[test]
fn a_planted_wrong_kernel_shows_in_the_distance() {
    for family in ["matmul", "rms_norm", "attention", "rope", "swiglu"] {
        let fault = Fault { wrong: Some(family.into()), slow: 0.0 };
        let check = selfcheck(&TINY, &SessionOptions { fault, ..SessionOptions::default() }).unwrap();
        let honest = selfcheck(&TINY, &SessionOptions::default()).unwrap();
        assert!(
            check.mean_abs_dlogprob > 2.0 * honest.mean_abs_dlogprob || !check.identical,
            "{family}: {check:?} against {honest:?}"
        );
        assert_ne!(check.logits_hash, honest.logits_hash, "{family}");
    }
}

#[test]
fn forks_share_a_past_and_then_part() {
    let mut session =
        session(SessionOptions { sequences: 3, context: Some(256), ..SessionOptions::default() });
    let ids = tokens(100);
    let one = session.new_sequence();
    session.prefill(one, &ids[..70], 512).unwrap();
    let two = session.fork(one).unwrap();
    let a = session.decode(one, ids[70]).unwrap().to_vec();
    let b = session.decode(two, ids[80]).unwrap().to_vec();
    assert_ne!(a, b);
    // A draft that is taken back leaves no trace.
    session.prefill(two, &ids[81..90], 512).unwrap();
    session.truncate(two, 70).unwrap();
    assert_eq!(session.decode(two, ids[70]).unwrap(), a);
    let rows = [Row { seq: one, token: ids[71] }, Row { seq: two, token: ids[71] }];
    let both = session.step(NumericPath::Decode, &rows, &[0, 1]).unwrap();
    let (first, second) = both.split_at(both.len() / 2);
    assert_eq!(first, second);
    session.free(one).unwrap();
    assert!(session.decode(one, 0).unwrap_err().to_string().contains("freed"));
}

#[test]
fn limits_are_errors_that_change_nothing() {
    let mut session = session(SessionOptions { context: Some(100), ..SessionOptions::default() });
    let seq = session.new_sequence();
    let error = session.prefill(seq, &tokens(101), 512).unwrap_err();
    assert!(matches!(error, Error::Context { needed: 101, context: 100, .. }), "{error}");
    let error = session.prefill(seq, &[99_999], 512).unwrap_err();
    assert!(matches!(error, Error::Token { token: 99_999, .. }), "{error}");
    assert!(session.prefill(seq, &[], 512).is_err());
    assert_eq!(session.len(seq).unwrap(), 0);
    session.prefill(seq, &tokens(100), 512).unwrap();
    assert!(matches!(session.decode(seq, 1).unwrap_err(), Error::Context { needed: 101, .. }));
    // One sequence's pages are all there are.
    let other = session.new_sequence();
    assert!(matches!(session.decode(other, 1).unwrap_err(), Error::CacheFull { pages: 2 }));
    session.free(seq).unwrap();
    session.decode(other, 1).unwrap();
    for options in [
        SessionOptions { context: Some(0), ..SessionOptions::default() },
        SessionOptions { context: Some(1_000_000), ..SessionOptions::default() },
        SessionOptions { sequences: 0, ..SessionOptions::default() },
        SessionOptions { kv: DType::Q8_0, ..SessionOptions::default() },
        SessionOptions {
            fault: Fault { wrong: Some("matmull".into()), slow: 0.0 },
            ..SessionOptions::default()
        },
        SessionOptions { fault: Fault { wrong: None, slow: f64::NAN }, ..SessionOptions::default() },
    ] {
        assert!(matches!(Session::new(TINY.clone(), options), Err(Error::Argument(_))));
    }
}

#[test]
fn generation_ends_for_the_right_reason() {
    let mut session = session(SessionOptions { context: Some(64), ..SessionOptions::default() });
    let mut run = |prompt: &[u32], options: &GenerateOptions, stop_at: usize| {
        let seq = session.new_sequence();
        let mut seen = 0;
        let result = generate(&mut session, seq, prompt, options, &mut |_| {
            seen += 1;
            if seen == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        session.free(seq).unwrap();
        assert_eq!(seen, result.tokens.len());
        result
    };
    let ids = tokens(10);
    let options = GenerateOptions { max_tokens: 5, ignore_eos: true, ..GenerateOptions::default() };
    let five = run(&ids, &options, 0);
    assert_eq!((five.tokens.len(), five.finish), (5, Finish::MaxTokens));
    assert_eq!((five.stats.prompt_tokens, five.stats.decode_steps), (10, 4));
    assert_eq!(run(&ids, &options, 2).finish, Finish::Stopped);
    let long = GenerateOptions { max_tokens: 1000, ..options.clone() };
    let full = run(&ids, &long, 0);
    // Ten prompt tokens, 54 more in the cache, and one more sampled after them.
    assert_eq!((full.tokens.len(), full.finish), (55, Finish::Context));
    assert_eq!(full.tokens[..5], five.tokens);
    assert_eq!(run(&ids, &GenerateOptions { max_tokens: 0, ..options.clone() }, 0).finish, Finish::MaxTokens);
    // No prompt: from bos.
    let bos = TINY.file().config().bos.unwrap();
    assert_eq!(run(&[], &options, 0).tokens, run(&[bos], &options, 0).tokens);
    // The model's turn ends at eos: a temperature so high that every token is as likely soon draws it.
    let sampling = Sampling { temperature: 1e9, seed: 2, ..Sampling::default() };
    let mut session = self::session(SessionOptions { sequences: 1, ..SessionOptions::default() });
    let seq = session.new_sequence();
    let options = GenerateOptions { max_tokens: 1000, sampling, ..GenerateOptions::default() };
    let ended = generate(&mut session, seq, &ids, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(ended.finish, Finish::EndOfGeneration, "{} tokens", ended.tokens.len());
    assert!(!ended.tokens.contains(&TINY.file().config().eos.unwrap()));
}

#[test]
fn a_long_prompt_can_be_broken_off_between_chunks() {
    let mut session = session(SessionOptions::default());
    let seq = session.new_sequence();
    let options = GenerateOptions { chunk: 4, ..GenerateOptions::default() };
    let mut heard = Vec::new();
    let done = generate(&mut session, seq, &tokens(10), &options, &mut |progress| {
        heard.push(progress);
        if heard.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!(heard, [Progress::Prompt(4), Progress::Prompt(8)]);
    assert_eq!((done.finish, done.tokens.len(), done.stats.prompt_tokens), (Finish::Stopped, 0, 8));
    assert_eq!(session.len(seq).unwrap(), 8);
}

#[test]
fn stop_tokens_end_it_and_log_probabilities_are_reported() {
    let ids = tokens(10);
    let run = |options: &GenerateOptions| {
        let mut session = session(SessionOptions::default());
        let seq = session.new_sequence();
        let mut seen = Vec::new();
        let done = generate(&mut session, seq, &ids, options, &mut |progress| {
            if let Progress::Token(generated) = progress {
                seen.push(generated);
            }
            ControlFlow::Continue(())
        });
        (done.unwrap(), seen)
    };
    let options =
        GenerateOptions { max_tokens: 6, ignore_eos: true, logprobs: Some(3), ..GenerateOptions::default() };
    let (all, seen) = run(&options);
    for generated in &seen {
        let found = generated.logprobs.as_ref().unwrap();
        // Greedy: the token is the likeliest.
        assert_eq!((found.top.len(), found.top[0]), (3, (generated.token, found.logprob)));
        assert!(found.top[0].1 >= found.top[1].1 && found.top[1].1 >= found.top[2].1 && found.logprob < 0.0);
    }
    let stop = all.tokens[3];
    let first = all.tokens.iter().position(|&token| token == stop).unwrap();
    let (ended, seen) = run(&GenerateOptions { stop_tokens: vec![stop], logprobs: None, ..options });
    assert_eq!((ended.finish, &ended.tokens[..]), (Finish::StopToken, &all.tokens[..first]));
    assert!(seen.iter().all(|generated| generated.logprobs.is_none()));
}

#[test]
fn one_seed_one_text() {
    let penalties = Penalties { repeat: 1.1, frequency: 0.1, ..Penalties::default() };
    let sampling = Sampling {
        temperature: 0.8,
        top_k: 40,
        top_p: 0.95,
        min_p: 0.05,
        penalties,
        seed: 5,
        ..Sampling::default()
    };
    let options = GenerateOptions { max_tokens: 20, sampling, ..GenerateOptions::default() };
    let run = || {
        let mut session = session(SessionOptions::default());
        let seq = session.new_sequence();
        generate(&mut session, seq, &tokens(5), &options, &mut |_| ControlFlow::Continue(())).unwrap().tokens
    };
    assert_eq!(run(), run());
}

#[test]
fn bench_times_each_repetition_and_hashes_the_same_logits() {
    let mut session = session(SessionOptions::default());
    let test = BenchTest { n_prompt: 12, n_gen: 3, n_depth: 5 };
    let options = BenchOptions { repetitions: 3, ..BenchOptions::default() };
    let one = bench(&mut session, &test, &options).unwrap();
    let two = bench(&mut session, &test, &BenchOptions { warmup: false, chunk: 4, ..options }).unwrap();
    assert_eq!((one.samples_ns.len(), one.logits_hash.len()), (3, 64));
    assert_eq!(one.logits_hash, two.logits_hash);
    let weights = TINY.file().checkpoint().file_bytes();
    assert!(one.bytes_per_token > weights / 2 && one.bytes_per_token < 2 * weights, "{one:?}");
    let too_long = BenchTest { n_prompt: 5000, ..test };
    assert!(matches!(bench(&mut session, &too_long, &options), Err(Error::Context { .. })));
}

#[test]
fn slowness_can_be_planted() {
    let fault = Fault { slow: 4.0, wrong: None };
    let mut session = session(SessionOptions { fault, ..SessionOptions::default() });
    let seq = session.new_sequence();
    session.profile(true);
    let start = std::time::Instant::now();
    session.prefill(seq, &tokens(64), 512).unwrap();
    let wall = start.elapsed();
    // Holds on any machine: the busy time is four times the step's, which is no less than that of its ops.
    let ops: std::time::Duration = session.op_times().iter().map(|op| op.total).sum();
    assert!(ops > std::time::Duration::ZERO && wall >= 5 * ops, "{wall:?} for {ops:?} of work");
}

#[test]
fn the_profile_covers_every_op_and_costs_nothing_when_off() {
    let mut session = session(SessionOptions::default());
    let seq = session.new_sequence();
    session.prefill(seq, &tokens(3), 512).unwrap();
    assert!(session.op_times().is_empty());
    session.profile(true);
    session.decode(seq, 1).unwrap();
    let times = session.op_times();
    let ran = times.iter().filter(|t| t.calls == 1).count();
    assert_eq!(ran, TINY.file().program(times.last().unwrap().bucket).unwrap().ops.len());
}

#[test]
fn the_tokenizer_of_a_made_up_model_works() {
    let tokenizer = TINY.file().tokenizer().unwrap();
    let options = memra_text::EncodeOptions { add_special: false, parse_special: false };
    let ids = tokenizer.encode("x the hat\u{1f600}", options);
    assert!(ids.len() < 14, "{ids:?}");
    assert_eq!(tokenizer.decode(&ids, memra_text::Specials::Skip), "x the hat\u{1f600}");
    assert!(TINY.file().is_end_of_generation(TINY.file().config().eos.unwrap()));
}

#[test]
fn logits_are_not_flat() {
    let ids = tokens(30);
    let all = logits::logits(&mut session(SessionOptions::default()), &ids).unwrap();
    let best: std::collections::BTreeSet<u32> = all.chunks(all.len() / 30).map(argmax).collect();
    assert!(best.len() > 10, "{best:?}");
}
