//! Sequences with recurrent state: going back, checkpoints, forks, verification of drafts; and the MTP head.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{exact, fixture, load, npy, reference, worst};
use memra_engine::sampling::argmax;
use memra_engine::{Error, Row, SeqId, Session, SessionOptions, logits};
use memra_kernels::{NumericClass, NumericPath};

/// Random hybrids with an MTP head: dense, and with experts.
const MODELS: [&str; 2] = ["qwen3_5_mtp", "qwen3_5_moe_mtp"];

fn session(name: &str, options: SessionOptions) -> Session {
    Session::new(load(&fixture(name), true), options).unwrap()
}

fn rows(seq: SeqId, tokens: &[u32]) -> Vec<Row> {
    tokens.iter().map(|&token| Row { seq, token }).collect()
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|v| v.to_bits()).collect()
}

/// Logits after each token, one decode step a token: what everything else must come to.
fn plain(session: &mut Session, tokens: &[u32]) -> Vec<Vec<u32>> {
    let seq = session.new_sequence();
    let all = tokens.iter().map(|&token| bits(session.decode(seq, token).unwrap())).collect();
    session.free(seq).unwrap();
    all
}

#[test]
fn drafts_that_turn_out_wrong_are_dropped_after_any_row() {
    for name in MODELS {
        for class in NumericClass::ALL {
            let mut session = session(name, SessionOptions { class, ..SessionOptions::default() });
            let tokens = reference(name).ids;
            let want = plain(&mut session, &tokens);
            for accepted in 0..=5 {
                let seq = session.new_sequence();
                session.prefill(seq, &tokens[..10], 4).unwrap();
                // Right as far as they will be accepted, wrong beyond.
                let mut drafts = tokens[10..15].to_vec();
                drafts[accepted..].iter_mut().for_each(|token| *token = (*token + 1) % 300);
                let width = want[0].len();
                let got =
                    bits(session.verify(NumericPath::Decode, &rows(seq, &drafts), &[0, 1, 2, 3, 4]).unwrap());
                for (i, row) in got.chunks(width).take(accepted).enumerate() {
                    assert_eq!(row, want[10 + i], "{name} {class} row {i}");
                }
                assert_eq!(session.len(seq).unwrap(), 15);
                session.truncate(seq, 10 + accepted).unwrap();
                for (i, &token) in tokens[10 + accepted..20].iter().enumerate() {
                    let row = bits(session.decode(seq, token).unwrap());
                    assert_eq!(row, want[10 + accepted + i], "{name} {class} after {accepted} drafts");
                }
                session.free(seq).unwrap();
            }
        }
    }
}

#[test]
fn going_back_elsewhere_is_an_error_that_says_what_was_kept() {
    let mut session = session(MODELS[0], SessionOptions::default());
    let tokens = reference(MODELS[0]).ids;
    let want = plain(&mut session, &tokens);
    let seq = session.new_sequence();
    session.prefill(seq, &tokens[..20], 20).unwrap();
    match session.truncate(seq, 12) {
        Err(Error::NotKept { position: 12, kept }) => assert!(kept.is_empty()),
        other => panic!("{other:?}"),
    }
    // The sequence is as it was.
    assert_eq!(session.len(seq).unwrap(), 20);
    assert_eq!(bits(session.decode(seq, tokens[20]).unwrap()), want[20]);
    session.truncate(seq, 21).unwrap();
    session.verify(NumericPath::Decode, &rows(seq, &tokens[21..24]), &[]).unwrap();
    assert!(matches!(session.truncate(seq, 20), Err(Error::NotKept { kept, .. }) if kept == [21, 22, 23]));
    session.truncate(seq, 0).unwrap();
    assert_eq!(bits(session.decode(seq, tokens[0]).unwrap()), want[0]);
}

#[test]
fn checkpoints_and_forks_go_their_own_ways() {
    for name in MODELS {
        let mut session = session(name, SessionOptions { sequences: 3, ..SessionOptions::default() });
        let tokens = reference(name).ids;
        let want = plain(&mut session, &tokens);
        let seq = session.new_sequence();
        session.prefill(seq, &tokens[..7], 7).unwrap();
        let checkpoint = session.checkpoint(seq).unwrap();
        let fork = session.fork(seq).unwrap();
        for (i, &token) in tokens[..5].iter().enumerate() {
            session.decode(seq, token).unwrap();
            assert_eq!(bits(session.decode(fork, tokens[7 + i]).unwrap()), want[7 + i]);
        }
        for _ in 0..2 {
            session.restore(seq, &checkpoint).unwrap();
            assert_eq!(session.len(seq).unwrap(), 7);
            for i in 7..10 {
                assert_eq!(bits(session.decode(seq, tokens[i]).unwrap()), want[i]);
            }
        }
        session.discard(checkpoint).unwrap();
        // Everything was given back: as many sequences as ever fit.
        session.free(fork).unwrap();
        session.free(seq).unwrap();
        let all: Vec<SeqId> = (0..3).map(|_| session.new_sequence()).collect();
        let step: Vec<Row> = all.iter().map(|&seq| Row { seq, token: tokens[0] }).collect();
        let logits = bits(session.step(NumericPath::Decode, &step, &[0, 1, 2]).unwrap());
        assert!(logits.chunks(logits.len() / 3).all(|row| row == want[0]));
    }
}

#[test]
fn without_room_for_states_nothing_is_lost() {
    let mut session = session(MODELS[0], SessionOptions { checkpoints: 0, ..SessionOptions::default() });
    let tokens = reference(MODELS[0]).ids;
    let want = plain(&mut session, &tokens);
    let seq = session.new_sequence();
    session.decode(seq, tokens[0]).unwrap();
    let error = session.verify(NumericPath::Decode, &rows(seq, &tokens[1..4]), &[]).unwrap_err();
    assert!(matches!(error, Error::StatesFull { wanted: 3, slots: 2 }), "{error}");
    assert_eq!(bits(session.decode(seq, tokens[1]).unwrap()), want[1]);
}

#[test]
fn the_mtp_head_matches_the_reference_and_leaves_the_main_logits_alone() {
    for name in MODELS {
        let ids = reference(name).ids;
        let want = npy(&fixture(name).join("mtp_logits.f32.npy"));
        for path in [fixture(name), fixture(name).join(format!("{name}-bf16.gguf"))] {
            let model = load(&path, true);
            let mut session = Session::new(model.clone(), SessionOptions { mtp: true, ..exact() }).unwrap();
            let got = logits::mtp_logits(&mut session, &ids).unwrap();
            let distance = worst(&got, &want);
            eprintln!("{}: MTP logits within {distance:.2e} of the standard deviation", path.display());
            assert!(distance <= 1e-4, "{name}: {distance}");
            let main = bits(&logits::logits(&mut session, &ids).unwrap());
            let mut without = Session::new(model, exact()).unwrap();
            assert_eq!(main, bits(&logits::logits(&mut without, &ids).unwrap()));
            let seq = without.new_sequence();
            let error = without.step_mtp(NumericPath::Decode, &rows(seq, &ids[..1]), &[], &[0]).unwrap_err();
            assert!(matches!(error, Error::Argument(_)), "{error}");
        }
    }
}

#[test]
fn the_mtp_head_gives_the_same_bits_step_by_step_and_drafts_beyond_the_end() {
    let name = MODELS[1];
    let options = SessionOptions { mtp: true, sequences: 2, ..SessionOptions::default() };
    let mut session = session(name, options);
    let ids = reference(name).ids;
    let want = bits(&logits::mtp_logits(&mut session, &ids).unwrap());
    let width = want.len() / (ids.len() - 1);
    let seq = session.new_sequence();
    for (t, &token) in ids[..20].iter().enumerate() {
        session.decode(seq, token).unwrap();
        let mut hidden = session.hidden().to_vec();
        let row = session.step_mtp(NumericPath::Decode, &rows(seq, &[ids[t + 1]]), &hidden, &[0]).unwrap();
        assert_eq!(bits(row), want[t * width..][..width], "position {t}");
        // The head goes on by itself, and what it drafted is gone when the sequence goes on.
        let mut draft = argmax(row);
        for _ in 0..3 {
            hidden = session.hidden().to_vec();
            let row = session.step_mtp(NumericPath::Decode, &rows(seq, &[draft]), &hidden, &[0]).unwrap();
            draft = argmax(row);
        }
        assert_eq!(session.mtp_len(seq).unwrap(), t + 4);
    }
    let fork = session.fork(seq).unwrap();
    session.decode(seq, ids[20]).unwrap();
    assert_eq!(session.mtp_len(seq).unwrap(), 20);
    assert_eq!(session.mtp_len(fork).unwrap(), 23);
}
