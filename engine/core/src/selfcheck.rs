//! Checks that need no reference from outside: the same bits however a step is made up, and the distance of a session's
//! arithmetic to class `f32`.

use crate::bench::{hash_logits, random_tokens};
use crate::model::Model;
use crate::sampling::log_prob;
use crate::session::{Fault, Row, Session, SessionOptions};
use crate::{Error, logits};
use memra_kernels::{DType, NumericClass, NumericPath};
use memra_text::EncodeOptions;
use serde::Serialize;
use std::sync::Arc;

/// Text whose logits are compared, where the model has a usable tokenizer; the check's figures hold for this text.
const TEXT: &str = "A harness that measures speed must first make sure that what it measures is right. The engine \
reads a prompt in one piece, in several, or token by token; it shares a step with strangers, or has it to itself. \
None of this may change a single bit of what comes out, and 12 * 34 = 408 whatever the weather.";

/// What a self-check found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelfCheck {
    /// Whether every grouping gave the same bits.
    pub identical: bool,
    /// The first grouping and position that differed.
    pub first_difference: Option<String>,
    /// Groupings that were compared with the prompt in one chunk.
    pub groupings: Vec<String>,
    /// Tokens of the text.
    pub tokens: usize,
    /// Mean |Δ logprob| of the text's tokens against class `f32` with an F32 KV cache.
    pub mean_abs_dlogprob: f64,
    /// SHA-256 of the logits at every position.
    pub logits_hash: String,
}

/// Checks a model with a session's options (planted faults included) on a fixed text.
///
/// # Errors
/// As [`Session::step`].
pub fn selfcheck(model: &Arc<Model>, options: &SessionOptions) -> Result<SelfCheck, Error> {
    let options = SessionOptions { sequences: 2, ..options.clone() };
    let mut session = Session::new(model.clone(), options.clone())?;
    let tokens = text_tokens(model, session.context());
    let base = logits::logits(&mut session, &tokens)?;
    let mut check = SelfCheck {
        identical: true,
        first_difference: None,
        groupings: Vec::new(),
        tokens: tokens.len(),
        mean_abs_dlogprob: distance(model, &options, &tokens, &base)?,
        logits_hash: hash_logits(&base),
    };
    for chunk in [7, 64] {
        let all = by_chunks(&mut session, &tokens, chunk)?;
        check.compare(&format!("chunks of {chunk}"), &base, &all);
    }
    for width in [1, 5] {
        let all = by_decode(&mut session, &tokens, width)?;
        check.compare(&format!("decode steps of {width}"), &base, &all);
    }
    check.compare("beside another sequence", &base, &batched(&mut session, &tokens)?);
    for threads in [1, 2].into_iter().filter(|&t| t != options.threads) {
        let mut other = Session::new(model.clone(), SessionOptions { threads, ..options.clone() })?;
        check.compare(&format!("{threads} threads"), &base, &logits::logits(&mut other, &tokens)?);
    }
    Ok(check)
}

impl SelfCheck {
    fn compare(&mut self, grouping: &str, base: &[f32], other: &[f32]) {
        self.groupings.push(grouping.to_owned());
        let differs = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits();
        if self.first_difference.is_none()
            && let Some(at) = base.iter().zip(other).position(differs)
        {
            let width = base.len() / self.tokens;
            self.identical = false;
            self.first_difference =
                Some(format!("{grouping}: position {}, token {}", at / width, at % width));
        }
    }
}

/// The text's tokens, or random ones for a model without a usable tokenizer; at most `context`.
fn text_tokens(model: &Model, context: usize) -> Vec<u32> {
    let mut tokens = match model.file().tokenizer() {
        Ok(tokenizer) => tokenizer.encode(TEXT, EncodeOptions { add_special: true, parse_special: false }),
        Err(_) => random_tokens(80, model.file().config().n_vocab, 1),
    };
    tokens.truncate(context);
    tokens
}

fn distance(
    model: &Arc<Model>,
    options: &SessionOptions,
    tokens: &[u32],
    base: &[f32],
) -> Result<f64, Error> {
    let oracle = SessionOptions {
        class: NumericClass::F32,
        kv: DType::F32,
        fault: Fault::default(),
        ..options.clone()
    };
    let exact = logits::score(&mut Session::new(model.clone(), oracle)?, tokens)?;
    let width = model.file().config().n_vocab;
    let ours = base.chunks_exact(width).zip(&tokens[1..]).map(|(row, &next)| log_prob(row, next));
    Ok(ours.zip(&exact).map(|(a, b)| (a - b).abs()).sum::<f64>() / exact.len().max(1) as f64)
}

fn by_chunks(session: &mut Session, tokens: &[u32], chunk: usize) -> Result<Vec<f32>, Error> {
    let mut all = Vec::new();
    let seq = session.new_sequence();
    session.prefill_all(seq, tokens, chunk, &mut |_, row| all.extend_from_slice(row))?;
    session.free(seq)?;
    Ok(all)
}

/// On the decode path, `width` tokens a step as a verification of drafts would.
fn by_decode(session: &mut Session, tokens: &[u32], width: usize) -> Result<Vec<f32>, Error> {
    let mut all = Vec::new();
    let seq = session.new_sequence();
    for part in tokens.chunks(width) {
        let rows: Vec<Row> = part.iter().map(|&token| Row { seq, token }).collect();
        let wanted: Vec<u32> = (0..rows.len() as u32).collect();
        all.extend_from_slice(session.step(NumericPath::Decode, &rows, &wanted)?);
    }
    session.free(seq)?;
    Ok(all)
}

/// Interleaved in steps of uneven size with the same tokens in reverse order, as a second sequence.
fn batched(session: &mut Session, tokens: &[u32]) -> Result<Vec<f32>, Error> {
    let mut all = Vec::new();
    let (one, two) = (session.new_sequence(), session.new_sequence());
    let mut strangers = tokens.iter().rev();
    for part in tokens.chunks(9) {
        let mut rows = Vec::new();
        let mut wanted = Vec::new();
        for (i, &token) in part.iter().enumerate() {
            if i % 3 != 1 {
                rows.extend(strangers.next().map(|&token| Row { seq: two, token }));
            }
            wanted.push(rows.len() as u32);
            rows.push(Row { seq: one, token });
        }
        all.extend_from_slice(session.step(NumericPath::Prompt, &rows, &wanted)?);
    }
    session.free(one)?;
    session.free(two)?;
    Ok(all)
}
