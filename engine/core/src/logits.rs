//! The grader's door: logits and log probabilities of given tokens.

use crate::Error;
use crate::sampling::log_prob;
use crate::session::Session;

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
