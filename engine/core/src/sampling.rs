//! From logits to the next token.
//!
//! The order is llama.cpp's: top-k, top-p, min-p, temperature, draw. Equal logits rank by token id, lowest first.
//! Probabilities for top-p are those at temperature 1 over the candidates that top-k left.
//!
//! The random stream is part of the contract: PCG-XSL-RR 128/64 (`rand_pcg::Pcg64`), seeded by `seed_from_u64(seed)`,
//! one draw a sampled token and none when greedy. A draw is the top 53 bits of the next 64 as a fraction `u` of 2⁵³;
//! the token is the first, in descending order of probability, whose cumulative weight exceeds `u` times the sum.

use crate::Error;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::cmp::Ordering;

/// How to choose the next token. The default is greedy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 is greedy, whatever the rest says.
    pub temperature: f32,
    /// Keeps the likeliest tokens; 0 keeps all.
    pub top_k: usize,
    /// Keeps the fewest likeliest tokens whose probabilities reach this sum; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this fraction as likely as the likeliest; 0 keeps all.
    pub min_p: f32,
    /// Seed of the random stream.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 }
    }
}

/// A token and its logit.
type Candidate = (u32, f32);

/// A [`Sampling`] with its random stream.
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    rng: Pcg64,
    candidates: Vec<Candidate>,
}

impl Sampler {
    /// A sampler at the start of its stream.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn new(sampling: Sampling) -> Result<Self, Error> {
        let Sampling { temperature, top_p, min_p, .. } = sampling;
        let check = |ok: bool, what: &str, value: f32, range: &str| {
            if ok { Ok(()) } else { Err(Error::Argument(format!("{what} is {value}; it must be {range}"))) }
        };
        check(
            temperature >= 0.0 && temperature.is_finite(),
            "temperature",
            temperature,
            "0 (greedy) or more",
        )?;
        check(top_p > 0.0 && top_p <= 1.0, "top-p", top_p, "above 0 and at most 1 (off)")?;
        check((0.0..=1.0).contains(&min_p), "min-p", min_p, "between 0 (off) and 1")?;
        Ok(Sampler { sampling, rng: Pcg64::seed_from_u64(sampling.seed), candidates: Vec::new() })
    }

    /// The next token for finite `logits` of a vocabulary of at least one token.
    pub fn sample(&mut self, logits: &[f32]) -> u32 {
        let Sampling { temperature, top_k, top_p, min_p, .. } = self.sampling;
        if temperature == 0.0 {
            return argmax(logits);
        }
        let candidates = &mut self.candidates;
        candidates.clear();
        candidates.extend(logits.iter().enumerate().map(|(i, &logit)| (i as u32, logit)));
        if (1..candidates.len()).contains(&top_k) {
            candidates.select_nth_unstable_by(top_k - 1, likelier_first);
            candidates.truncate(top_k);
        }
        candidates.sort_unstable_by(likelier_first);
        let max = candidates.first().map_or(0.0, |c| c.1);
        if top_p < 1.0 {
            keep_top_p(candidates, max, top_p);
        }
        if min_p > 0.0 {
            let floor = max + min_p.ln();
            let kept = candidates.partition_point(|c| c.1 >= floor);
            candidates.truncate(kept.max(1));
        }
        let weight = |logit: f32| f64::from((logit - max) / temperature).exp();
        let total: f64 = candidates.iter().map(|c| weight(c.1)).sum();
        let target = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
        let mut sum = 0.0;
        for &(token, logit) in candidates.iter() {
            sum += weight(logit);
            if sum > target {
                return token;
            }
        }
        candidates.last().map_or(0, |c| c.0)
    }
}

/// Truncates sorted candidates after the one with which their probabilities reach `top_p`.
fn keep_top_p(candidates: &mut Vec<Candidate>, max: f32, top_p: f32) {
    let weight = |logit: f32| f64::from(logit - max).exp();
    let total: f64 = candidates.iter().map(|c| weight(c.1)).sum();
    let mut sum = 0.0;
    let kept = candidates.iter().position(|c| {
        sum += weight(c.1);
        sum >= f64::from(top_p) * total
    });
    candidates.truncate(kept.map_or(candidates.len(), |at| at + 1));
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

/// Natural logarithm of the probability that `logits` give `token` at temperature 1; summed in f64.
pub fn log_prob(logits: &[f32], token: u32) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&l| f64::from(l - max).exp()).sum();
    f64::from(logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY) - max) - sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 5] = [1.0, 3.0, 2.0, 3.0, -1.0];

    fn draw(sampling: Sampling, n: usize) -> Vec<u32> {
        let mut sampler = Sampler::new(sampling).unwrap();
        (0..n).map(|_| sampler.sample(&LOGITS)).collect()
    }

    #[test]
    fn greedy_takes_the_lowest_id_among_equals() {
        assert_eq!(draw(Sampling::default(), 2), [1, 1]);
    }

    #[test]
    fn one_seed_one_stream() {
        let sampling = Sampling { temperature: 1.0, seed: 7, ..Sampling::default() };
        assert_eq!(draw(sampling, 12), draw(sampling, 12));
        assert_ne!(draw(sampling, 12), draw(Sampling { seed: 8, ..sampling }, 12));
        // The stream is part of the contract: these tokens may only change with a note to users.
        assert_eq!(draw(sampling, 12), STREAM_OF_SEED_7);
    }
    const STREAM_OF_SEED_7: [u32; 12] = [1, 1, 2, 2, 3, 3, 1, 1, 3, 3, 1, 3];

    #[test]
    fn draws_follow_the_softmax() {
        let n = 40_000;
        let tokens = draw(Sampling { temperature: 2.0, ..Sampling::default() }, n);
        let total: f64 = LOGITS.iter().map(|&l| f64::from(l / 2.0).exp()).sum();
        for (id, &logit) in LOGITS.iter().enumerate() {
            let share = tokens.iter().filter(|&&t| t as usize == id).count() as f64 / n as f64;
            let p = f64::from(logit / 2.0).exp() / total;
            // Five standard deviations of a share.
            assert!((share - p).abs() < 5.0 * (p * (1.0 - p) / n as f64).sqrt(), "{id}: {share} against {p}");
        }
    }

    #[test]
    fn each_filter_keeps_what_it_should() {
        let kept = |sampling| {
            let mut seen = draw(sampling, 4_000);
            seen.sort_unstable();
            seen.dedup();
            seen
        };
        let hot = Sampling { temperature: 100.0, ..Sampling::default() };
        assert_eq!(kept(hot), [0, 1, 2, 3, 4]);
        assert_eq!(kept(Sampling { top_k: 1, ..hot }), [1]);
        assert_eq!(kept(Sampling { top_k: 3, ..hot }), [1, 2, 3]);
        // At temperature 1 tokens 1 and 3 have 0.40 each, token 2 0.15: filters see probabilities before temperature.
        assert_eq!(kept(Sampling { top_p: 0.39, ..hot }), [1]);
        assert_eq!(kept(Sampling { top_p: 0.85, ..hot }), [1, 2, 3]);
        // Ratios to the likeliest: 1, 0.37 (2), 0.14 (0), 0.02 (4).
        assert_eq!(kept(Sampling { min_p: 0.3, ..hot }), [1, 2, 3]);
        assert_eq!(kept(Sampling { min_p: 1.0, ..hot }), [1, 3]);
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        for (sampling, name) in [
            (Sampling { temperature: -1.0, ..Sampling::default() }, "temperature"),
            (Sampling { temperature: f32::NAN, ..Sampling::default() }, "temperature"),
            (Sampling { top_p: 0.0, ..Sampling::default() }, "top-p"),
            (Sampling { min_p: 1.5, ..Sampling::default() }, "min-p"),
        ] {
            assert!(Sampler::new(sampling).unwrap_err().to_string().contains(name));
        }
    }

    #[test]
    fn log_prob_is_the_log_of_the_softmax() {
        let total: f64 = LOGITS.iter().map(|&l| f64::from(l).exp()).sum();
        assert!((log_prob(&LOGITS, 2) - (2.0 - total.ln())).abs() < 1e-12);
        assert_eq!(log_prob(&LOGITS, 99), f64::NEG_INFINITY);
    }
}
