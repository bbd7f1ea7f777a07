//! From logits to the next token.
//!
//! Order and meaning are llama.cpp's where it has the same knob: logit bias, penalties, top-k, typical, top-p, min-p,
//! temperature, draw. Equal logits rank by token id, lowest first. Probabilities for typical and top-p are those at
//! temperature 1 over the candidates that the filters before them left.
//!
//! The random stream is part of the contract: PCG-XSL-RR 128/64 (`rand_pcg::Pcg64`), seeded by `seed_from_u64(seed)`,
//! one draw a sampled token and none when greedy. A draw is the top 53 bits of the next 64 as a fraction `u` of 2⁵³;
//! the token is the first, in descending order of probability, whose cumulative weight exceeds `u` times the sum.

mod filter;
mod logprobs;
mod options;
mod penalty;

pub use logprobs::{TokenLogprobs, log_prob, token_logprobs};
pub use options::{Penalties, Sampling};

use crate::Error;
use penalty::History;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::cmp::Ordering;

/// A token and its logit.
type Candidate = (u32, f32);

/// A [`Sampling`] with its random stream and the tokens it has seen.
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    rng: Pcg64,
    history: History,
    candidates: Vec<Candidate>,
}

impl Sampler {
    /// A sampler at the start of its stream.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn new(sampling: Sampling) -> Result<Self, Error> {
        sampling.check()?;
        let history = History::new(if sampling.penalties.is_off() { 0 } else { sampling.penalties.last_n });
        Ok(Sampler { rng: Pcg64::seed_from_u64(sampling.seed), history, candidates: Vec::new(), sampling })
    }

    /// Remembers a token of the text, of the prompt or sampled, for the penalties.
    pub fn accept(&mut self, token: u32) {
        self.history.push(token);
    }

    /// The next token for finite `logits` of a vocabulary of at least one token. It is not yet accepted.
    pub fn sample(&mut self, logits: &[f32]) -> u32 {
        let Sampling { temperature, typical, .. } = self.sampling;
        let plain = self.sampling.logit_bias.is_empty() && self.history.is_empty();
        let greedy = temperature == 0.0 && typical == 1.0;
        if greedy && plain {
            return argmax(logits);
        }
        self.candidates.clear();
        self.candidates.extend((0..).zip(logits.iter().copied()));
        self.change_logits();
        if greedy {
            return self.candidates.iter().copied().min_by(likelier_first).map_or(0, |c| c.0);
        }
        self.filter();
        self.draw()
    }

    /// Bias and penalties. Candidates are still in order of id.
    fn change_logits(&mut self) {
        for &(token, bias) in &self.sampling.logit_bias {
            if let Some((_, logit)) = self.candidates.get_mut(token as usize) {
                *logit += bias;
            }
        }
        for (token, count) in self.history.counts() {
            if let Some((_, logit)) = self.candidates.get_mut(token as usize) {
                *logit = self.sampling.penalties.apply(*logit, count);
            }
        }
    }

    /// Leaves what may be drawn, likeliest first.
    fn filter(&mut self) {
        let Sampling { top_k, typical, top_p, min_p, .. } = self.sampling;
        let candidates = &mut self.candidates;
        filter::top_k(candidates, top_k);
        if typical < 1.0 {
            filter::typical(candidates, typical);
        }
        if top_p < 1.0 {
            filter::top_p(candidates, top_p);
        }
        if min_p > 0.0 {
            filter::min_p(candidates, min_p);
        }
    }

    fn draw(&mut self) -> u32 {
        let (temperature, candidates) = (self.sampling.temperature, &self.candidates);
        let best = candidates.first().copied().unwrap_or((0, 0.0));
        if temperature == 0.0 {
            return best.0;
        }
        let weight = |logit: f32| weight((logit - best.1) / temperature);
        let total: f64 = candidates.iter().map(|c| weight(c.1)).sum();
        let target = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
        let mut sum = 0.0;
        for &(token, logit) in candidates {
            sum += weight(logit);
            if sum > target {
                return token;
            }
        }
        candidates.last().map_or(0, |c| c.0)
    }
}

/// Probability of a candidate relative to the likeliest, whose logit is `distance` higher. Where every token is banned
/// (biased to minus infinity) they are all alike.
fn weight(distance: f32) -> f64 {
    if distance.is_nan() { 1.0 } else { f64::from(distance).exp() }
}

fn likelier_first(a: &Candidate, b: &Candidate) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

/// The token with the largest logit; the lowest id among equals.
pub fn argmax(logits: &[f32]) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (i, &logit) in logits.iter().enumerate() {
        if logit > best.1 {
            best = (i as u32, logit);
        }
    }
    best.0
}

#[cfg(test)]
mod tests;
