//! Generation: a prompt in, tokens out, one at a time.

use crate::Error;
use crate::sampling::{Sampler, Sampling, TokenLogprobs, token_logprobs};
use crate::session::{CHUNK, SeqId, Session};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateOptions {
    /// Tokens to generate at most.
    pub max_tokens: usize,
    /// How to choose each token.
    pub sampling: Sampling,
    /// Goes on past end-of-generation tokens.
    pub ignore_eos: bool,
    /// Further tokens that end the generation.
    pub stop_tokens: Vec<u32>,
    /// Reports each token's log probability, and so many of the likeliest in its place.
    pub logprobs: Option<usize>,
    /// Prompt tokens a step.
    pub chunk: usize,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        GenerateOptions {
            max_tokens: 256,
            sampling: Sampling::default(),
            ignore_eos: false,
            stop_tokens: Vec::new(),
            logprobs: None,
            chunk: CHUNK,
        }
    }
}

/// A token as it is generated.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// The token.
    pub token: u32,
    /// Its log probability, where asked for.
    pub logprobs: Option<TokenLogprobs>,
}

/// What a caller hears of while it waits; it may break off each time.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// So many tokens of the prompt are done, and not yet all.
    Prompt(usize),
    /// A token.
    Token(Generated),
}

/// Why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// The model ended its turn.
    EndOfGeneration,
    /// A stop token came.
    StopToken,
    /// A stop string came; [`generate`] itself knows no text, its callers find these.
    StopString,
    /// `max_tokens` were generated.
    MaxTokens,
    /// The context is full.
    Context,
    /// The caller stopped it.
    Stopped,
}

/// What was generated, and how fast.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Generated tokens, without the one that ended the generation.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub finish: Finish,
    /// Counts and times.
    pub stats: Stats,
}

/// Counts and times of a generation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Tokens of the prompt, bos included.
    pub prompt_tokens: usize,
    /// Time to process the prompt.
    pub prefill: Duration,
    /// Time from the start to the first sampled token.
    pub first_token: Duration,
    /// Steps that followed the prompt, one token each.
    pub decode_steps: usize,
    /// Time of those steps, sampling and callback included.
    pub decode: Duration,
}

impl Stats {
    /// Prompt tokens a second.
    pub fn prefill_rate(&self) -> f64 {
        self.prompt_tokens as f64 / self.prefill.as_secs_f64()
    }

    /// Generated tokens a second, after the first; NaN when there was none.
    pub fn decode_rate(&self) -> f64 {
        self.decode_steps as f64 / self.decode.as_secs_f64()
    }
}

/// Appends `prompt` to `seq`, then samples tokens, hands each to `on_progress` and appends it, until the model, the caller
/// or a limit ends it. With an empty prompt and an empty sequence it starts from bos. A token that ends the generation
/// is not handed on, nor appended; the last token of `MaxTokens` and of `Stopped` is handed on but not appended.
///
/// # Errors
/// A prompt that does not fit the context (nothing is appended then), a sampling parameter out of range, an empty prompt
/// for a model without bos, or as [`Session::step`].
pub fn generate(
    session: &mut Session,
    seq: SeqId,
    prompt: &[u32],
    options: &GenerateOptions,
    on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Generation, Error> {
    let model = session.model().clone();
    let mut chooser =
        Chooser { sampler: Sampler::new(options.sampling.clone())?, logprobs: options.logprobs };
    let bos = [model.file().config().bos.unwrap_or(0)];
    let prompt = if prompt.is_empty() && session.len(seq)? == 0 {
        if model.file().config().bos.is_none() {
            return Err(Error::Argument(
                "the prompt is empty, and the model has no bos token to start from".into(),
            ));
        }
        &bos
    } else {
        prompt
    };
    prompt.iter().for_each(|&token| chooser.sampler.accept(token));
    let start = Instant::now();
    let before = session.len(seq)?;
    let more = &mut |done| on_progress(Progress::Prompt(done));
    let Some(logits) = session.prefill_while(seq, prompt, options.chunk, more)? else {
        let prompt_tokens = session.len(seq)? - before;
        let stats = Stats { prompt_tokens, prefill: start.elapsed(), ..Stats::default() };
        return Ok(Generation { tokens: Vec::new(), finish: Finish::Stopped, stats });
    };
    let mut next = chooser.choose(logits);
    let first_token = start.elapsed();
    let mut stats =
        Stats { prompt_tokens: prompt.len(), prefill: first_token, first_token, ..Stats::default() };
    let mut tokens = Vec::new();
    let decode_start = Instant::now();
    let finish = loop {
        let token = next.token;
        if tokens.len() == options.max_tokens {
            break Finish::MaxTokens;
        }
        if !options.ignore_eos && model.file().is_end_of_generation(token) {
            break Finish::EndOfGeneration;
        }
        if options.stop_tokens.contains(&token) {
            break Finish::StopToken;
        }
        tokens.push(token);
        if on_progress(Progress::Token(next)).is_break() {
            break Finish::Stopped;
        }
        if tokens.len() == options.max_tokens {
            break Finish::MaxTokens;
        }
        if session.len(seq)? == session.context() {
            break Finish::Context;
        }
        next = chooser.choose(session.decode(seq, token)?);
        stats.decode_steps += 1;
    };
    stats.decode = decode_start.elapsed();
    Ok(Generation { tokens, finish, stats })
}

/// From logits to a token with what is reported of it.
struct Chooser {
    sampler: Sampler,
    logprobs: Option<usize>,
}

impl Chooser {
    fn choose(&mut self, logits: &[f32]) -> Generated {
        let token = self.sampler.sample(logits);
        self.sampler.accept(token);
        Generated { token, logprobs: self.logprobs.map(|n| token_logprobs(logits, token, n)) }
    }
}
