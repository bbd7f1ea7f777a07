//! Perplexity of a text, and how far a model's predictions are from another's, by llama.cpp's method.
//!
//! The text's tokens are cut into chunks of a context's length, the first of each replaced by bos where the model wants
//! one; the second half of each chunk is scored, each token given those before it in its chunk. A rest is dropped.

use crate::Error;
use crate::logits::each_logits;
use crate::sampling::log_prob;
use crate::session::Session;
use serde::Serialize;

/// A perplexity with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Perplexity {
    /// `exp` of the mean negative log probability.
    pub perplexity: f64,
    /// Standard error of the perplexity, from the spread of log probabilities.
    pub error: f64,
    /// Chunks scored.
    pub chunks: usize,
    /// Tokens scored.
    pub scored: usize,
}

/// Sum, sum of squares and number of negative log probabilities.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    sum: f64,
    squares: f64,
    count: usize,
}

/// How to score a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerplexityOptions {
    /// Tokens a chunk; at least 4.
    pub context: usize,
    /// Chunks at most.
    pub chunks: usize,
    /// Token put in place of the first of each chunk.
    pub bos: Option<u32>,
}

/// Scores `tokens`; `row` sees the logits that predict each scored token, with that token, and says whether to go on;
/// `progress` sees the number of chunks done. A caller that stops gets the figures so far.
///
/// # Errors
/// A context under 4 or over the session's, fewer tokens than one chunk, or as [`Session::prefill`].
pub fn perplexity(
    session: &mut Session,
    tokens: &[u32],
    options: &PerplexityOptions,
    row: &mut dyn FnMut(&[f32], u32) -> bool,
    progress: &mut dyn FnMut(usize),
) -> Result<Perplexity, Error> {
    let PerplexityOptions { context, chunks, bos } = *options;
    if context < 4 || context > session.context() {
        let most = session.context();
        return Err(Error::Argument(format!("chunks of {context} tokens; they must be of 4 to {most}")));
    }
    let n_chunks = (tokens.len() / context).min(chunks);
    if n_chunks == 0 {
        return Err(Error::Argument(format!(
            "the text has {} tokens, and a chunk takes {context}; give a longer text or a shorter context",
            tokens.len()
        )));
    }
    let mut sums = Sums::default();
    for (done, chunk) in tokens.chunks_exact(context).take(n_chunks).enumerate() {
        let mut chunk = chunk.to_vec();
        if let Some(bos) = bos {
            chunk[0] = bos;
        }
        let mut go_on = true;
        each_logits(session, &chunk, &mut |at, logits| {
            // The last position predicts a token of the next chunk.
            if at >= context / 2 && at + 1 < context && go_on {
                sums.add(-log_prob(logits, chunk[at + 1]));
                go_on = row(logits, chunk[at + 1]);
            }
        })?;
        progress(done + 1);
        if !go_on {
            return Ok(sums.perplexity(done + 1));
        }
    }
    Ok(sums.perplexity(n_chunks))
}

impl Sums {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.squares += value * value;
        self.count += 1;
    }

    fn perplexity(&self, chunks: usize) -> Perplexity {
        let n = self.count as f64;
        let mean = self.sum / n;
        let variance = (self.squares / n - mean * mean).max(0.0);
        let perplexity = mean.exp();
        let error = perplexity * (variance / (n - 1.0).max(1.0)).sqrt();
        Perplexity { perplexity, error, chunks, scored: self.count }
    }
}

/// How far predictions are from a base's, over the same positions. Divergences are in nats.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Divergence {
    /// Mean of `Σ p_base · ln(p_base / p)`.
    pub mean_kld: f64,
    /// Largest.
    pub max_kld: f64,
    /// Of 100 positions, 99 are below it.
    pub p99_kld: f64,
    /// Mean absolute difference of the scored tokens' log probabilities.
    pub mean_abs_dlogprob: f64,
    /// Share of positions where both find the same token likeliest.
    pub same_top: f64,
    /// Positions compared.
    pub positions: usize,
}

/// Collects a [`Divergence`], position by position.
#[derive(Clone, Debug, Default)]
pub struct DivergenceSums {
    klds: Vec<f64>,
    abs_dlogprob: f64,
    same_top: usize,
}

impl DivergenceSums {
    /// Adds a position: logits of the base and of the model in question, and the token that follows.
    pub fn add(&mut self, base: &[f32], logits: &[f32], next: u32) {
        let (base_norm, norm) = (log_prob(base, 0), log_prob(logits, 0));
        let offset = |logits: &[f32], norm: f64| norm - f64::from(logits.first().copied().unwrap_or(0.0));
        let (base_offset, offset) = (offset(base, base_norm), offset(logits, norm));
        let term = |(b, l): (&f32, &f32)| {
            let base = f64::from(*b) + base_offset;
            base.exp() * (base - f64::from(*l) - offset)
        };
        // Rounding may leave a tiny negative sum where both agree.
        self.klds.push(base.iter().zip(logits).map(term).sum::<f64>().max(0.0));
        self.abs_dlogprob += (log_prob(base, next) - log_prob(logits, next)).abs();
        self.same_top += usize::from(crate::sampling::argmax(base) == crate::sampling::argmax(logits));
    }

    /// What all positions come to.
    pub fn finish(mut self) -> Divergence {
        let positions = self.klds.len();
        if positions == 0 {
            return Divergence::default();
        }
        self.klds.sort_unstable_by(f64::total_cmp);
        let n = positions as f64;
        Divergence {
            mean_kld: self.klds.iter().sum::<f64>() / n,
            max_kld: self.klds[positions - 1],
            p99_kld: self.klds[(positions * 99).div_ceil(100) - 1],
            mean_abs_dlogprob: self.abs_dlogprob / n,
            same_top: self.same_top as f64 / n,
            positions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perplexity_of_equal_chances_is_their_number() {
        let mut sums = Sums::default();
        (0..10).for_each(|_| sums.add(8f64.ln()));
        let found = sums.perplexity(1);
        assert!((found.perplexity - 8.0).abs() < 1e-12 && found.error.abs() < 1e-6, "{found:?}");
        sums.add(9f64.ln());
        assert!(sums.perplexity(1).error > 0.0);
    }

    #[test]
    fn divergence_is_zero_from_oneself_and_shift_invariant() {
        let (a, b) = ([1.0f32, 2.0, 0.5], [3.0f32, 4.0, 2.5]);
        let mut sums = DivergenceSums::default();
        sums.add(&a, &a, 1);
        sums.add(&a, &b, 1);
        let found = sums.finish();
        assert!(found.mean_kld < 1e-12 && found.mean_abs_dlogprob < 1e-6, "{found:?}");
        assert_eq!((found.same_top, found.positions), (1.0, 2));
    }

    #[test]
    fn divergence_follows_its_formula() {
        // p = (1/2, 1/2), q = (1/4, 3/4): ln 2 / 2 + ln(2/3) / 2.
        let (p, q) = ([0.0f32, 0.0], [0.25f32.ln(), 0.75f32.ln()]);
        let mut sums = DivergenceSums::default();
        sums.add(&p, &q, 0);
        let found = sums.finish();
        let expected = 0.5 * 2f64.ln() + 0.5 * (2.0f64 / 3.0).ln();
        assert!((found.mean_kld - expected).abs() < 1e-6, "{found:?}");
        assert!((found.mean_abs_dlogprob - 2f64.ln()).abs() < 1e-6, "{found:?}");
        assert_eq!(found.same_top, 0.0);
        assert_eq!(DivergenceSums::default().finish(), Divergence::default());
    }
}
