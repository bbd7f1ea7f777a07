//! Throughput as llama-bench measures it: prompt processing and token generation on random tokens. Nothing is printed.

use crate::Error;
use crate::session::{CHUNK, SeqId, Session};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use sha2::{Digest, Sha256};
use std::time::Instant;

/// One test: a prompt of `n_prompt` tokens, then `n_gen` tokens one by one, all after `n_depth` tokens of context that
/// are not timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchTest {
    /// Prompt tokens.
    pub n_prompt: usize,
    /// Generated tokens.
    pub n_gen: usize,
    /// Tokens of context before the clock starts.
    pub n_depth: usize,
}

impl BenchTest {
    /// Tokens of the context that it needs; `None` where nobody could have so many.
    pub fn tokens(&self) -> Option<usize> {
        self.n_depth.checked_add(self.n_prompt)?.checked_add(self.n_gen)
    }
}

/// How to run a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchOptions {
    /// Timed repetitions.
    pub repetitions: usize,
    /// Runs the test once, untimed, before the first repetition.
    pub warmup: bool,
    /// Seed of the random tokens.
    pub seed: u64,
    /// Prompt tokens a step.
    pub chunk: usize,
}

impl Default for BenchOptions {
    fn default() -> Self {
        BenchOptions { repetitions: 5, warmup: true, seed: 1, chunk: CHUNK }
    }
}

/// Samples of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchResult {
    /// Wall time of each repetition, in order.
    pub samples_ns: Vec<u64>,
    /// Bytes that one generated token must read: weights, and keys and values at the middle of the generation.
    pub bytes_per_token: u64,
    /// SHA-256 of the final logits (f32, little-endian) of the last repetition, in hexadecimal: equal for equal bits.
    pub logits_hash: String,
}

/// Runs a test in sequences of its own. Every repetition feeds the same tokens.
///
/// # Errors
/// A test that does not fit the context, or as [`Session::step`].
pub fn bench(session: &mut Session, test: &BenchTest, options: &BenchOptions) -> Result<BenchResult, Error> {
    let BenchTest { n_prompt, n_gen, n_depth } = *test;
    if (n_prompt == 0 && n_gen == 0) || options.repetitions == 0 {
        return Err(Error::Argument("a bench test needs tokens to time and at least one repetition".into()));
    }
    let config = session.model().file().config();
    let needed = test.tokens().unwrap_or(usize::MAX);
    if needed > session.context() {
        return Err(Error::Context { needed, context: session.context(), trained: config.n_ctx_train });
    }
    let tokens = random_tokens(needed, config.n_vocab, options.seed);
    let mut samples_ns = Vec::with_capacity(options.repetitions);
    let mut logits_hash = String::new();
    let seq = session.new_sequence();
    for run in 0..options.repetitions + usize::from(options.warmup) {
        session.truncate(seq, 0)?;
        let (depth, rest) = tokens.split_at(n_depth);
        if !depth.is_empty() {
            session.prefill(seq, depth, options.chunk)?;
        }
        let (ns, hash) = repetition(session, seq, rest, n_prompt, options.chunk)?;
        logits_hash = hash;
        if run >= usize::from(options.warmup) {
            samples_ns.push(ns);
        }
    }
    session.free(seq)?;
    let bytes_per_token = session.bytes_per_token(n_depth + n_prompt + n_gen / 2)?;
    Ok(BenchResult { samples_ns, bytes_per_token, logits_hash })
}

/// Times one repetition; hashes its final logits after the clock has stopped.
fn repetition(
    session: &mut Session,
    seq: SeqId,
    tokens: &[u32],
    n_prompt: usize,
    chunk: usize,
) -> Result<(u64, String), Error> {
    let (prompt, generated) = tokens.split_at(n_prompt);
    let start = Instant::now();
    let mut logits: &[f32] = &[];
    if !prompt.is_empty() {
        logits = session.prefill(seq, prompt, chunk)?;
    }
    let Some((&last, others)) = generated.split_last() else {
        return Ok((elapsed_ns(start), hash_logits(logits)));
    };
    for &token in others {
        session.decode(seq, token)?;
    }
    logits = session.decode(seq, last)?;
    Ok((elapsed_ns(start), hash_logits(logits)))
}

fn elapsed_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// `n` token ids, uniform over the vocabulary, the same for the same seed.
pub fn random_tokens(n: usize, n_vocab: usize, seed: u64) -> Vec<u32> {
    let mut rng = Pcg64::seed_from_u64(seed);
    // The high half of a 64-bit product maps a draw to the range; its bias is below 2⁻³² of a vocabulary.
    (0..n).map(|_| ((u128::from(rng.next_u64()) * n_vocab as u128) >> 64) as u32).collect()
}

/// SHA-256 of f32 values, little-endian, in hexadecimal.
pub fn hash_logits(logits: &[f32]) -> String {
    let mut hash = Sha256::new();
    logits.iter().for_each(|v| hash.update(v.to_le_bytes()));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
