//! The grader's door: logits and log probabilities of given tokens.

use crate::Error;
use crate::sampling::log_prob;
use crate::session::{Row, SeqId, Session};
use memra_kernels::NumericPath;

/// Tokens a step when every position's logits are wanted: they take a vocabulary each.
const CHUNK: usize = 64;

/// Logits after each of `tokens`, in a fresh sequence: f32, `[tokens][vocabulary]`.
///
/// # Errors
/// As [`Session::prefill`].
pub fn logits(session: &mut Session, tokens: &[u32]) -> Result<Vec<f32>, Error> {
    let mut all = Vec::with_capacity(tokens.len() * session.model().file().config().n_vocab);
    each_logits(session, tokens, &mut |_, row| all.extend_from_slice(row))?;
    Ok(all)
}

/// What the head that predicts the token after the next (MTP) says, in a fresh sequence, once it is told each token that
/// follows: f32, `[tokens - 1][vocabulary]`; row `t` knows tokens `0 ..= t + 1` and predicts token `t + 2`.
///
/// # Errors
/// As [`Session::prefill`] and [`Session::step_mtp`].
pub fn mtp_logits(session: &mut Session, tokens: &[u32]) -> Result<Vec<f32>, Error> {
    let seq = session.new_sequence();
    let result = mtp_chunks(session, seq, tokens);
    session.free(seq)?;
    result
}

fn mtp_chunks(session: &mut Session, seq: SeqId, tokens: &[u32]) -> Result<Vec<f32>, Error> {
    let rows_of = |tokens: &[u32]| tokens.iter().map(|&token| Row { seq, token }).collect::<Vec<_>>();
    let mut all = Vec::new();
    for (part, chunk) in tokens.chunks(CHUNK).enumerate() {
        session.step(NumericPath::Prompt, &rows_of(chunk), &[])?;
        let following = &tokens[part * CHUNK + 1..tokens.len().min((part + 1) * CHUNK + 1)];
        if following.is_empty() {
            break;
        }
        let width = session.hidden().len() / chunk.len();
        let hidden = session.hidden()[..following.len() * width].to_vec();
        let wanted: Vec<u32> = (0..following.len() as u32).collect();
        let logits = session.step_mtp(NumericPath::Prompt, &rows_of(following), &hidden, &wanted)?;
        all.extend_from_slice(logits);
    }
    Ok(all)
}

/// Hands the logits after each of `tokens`, in a fresh sequence, to `sink` with the token's index.
///
/// # Errors
/// As [`Session::prefill`].
pub fn each_logits(
    session: &mut Session,
    tokens: &[u32],
    sink: &mut dyn FnMut(usize, &[f32]),
) -> Result<(), Error> {
    let seq = session.new_sequence();
    let result = session.prefill_all(seq, tokens, CHUNK, sink);
    session.free(seq)?;
    result
}

/// Natural log probability of each token given those before it; the first has none, so there is one fewer.
///
/// # Errors
/// As [`Session::prefill`].
pub fn score(session: &mut Session, tokens: &[u32]) -> Result<Vec<f64>, Error> {
    let mut scores = Vec::with_capacity(tokens.len().saturating_sub(1));
    each_logits(session, tokens, &mut |at, row| {
        scores.extend(tokens.get(at + 1).map(|&next| log_prob(row, next)));
    })?;
    Ok(scores)
}
