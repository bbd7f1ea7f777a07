//! Log probabilities of tokens, from the logits as the model gave them: before bias, penalties, filters, temperature.

use super::{Candidate, likelier_first};
use serde::Serialize;

/// How likely a token was, and the likeliest in its place. Natural logarithms.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokenLogprobs {
    /// Of the token itself.
    pub logprob: f64,
    /// The likeliest tokens, likeliest first.
    pub top: Vec<(u32, f64)>,
}

/// Natural logarithm of the probability that `logits` give `token` at temperature 1; summed in f64.
pub fn log_prob(logits: &[f32], token: u32) -> f64 {
    let logit = logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
    f64::from(logit) - log_sum_exp(logits)
}

/// [`log_prob`] of `token` and of the `n` likeliest tokens.
pub fn token_logprobs(logits: &[f32], token: u32, n: usize) -> TokenLogprobs {
    let total = log_sum_exp(logits);
    let mut top: Vec<Candidate> = (0..).zip(logits.iter().copied()).collect();
    let n = n.min(top.len());
    if n > 0 {
        top.select_nth_unstable_by(n - 1, likelier_first);
    }
    top.truncate(n);
    top.sort_unstable_by(likelier_first);
    let logit = logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
    TokenLogprobs {
        logprob: f64::from(logit) - total,
        top: top.into_iter().map(|(token, logit)| (token, f64::from(logit) - total)).collect(),
    }
}

/// `ln Σ exp(logits)`.
fn log_sum_exp(logits: &[f32]) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit - max).exp()).sum();
    f64::from(max) + sum.ln()
}
