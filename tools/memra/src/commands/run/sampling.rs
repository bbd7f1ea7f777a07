//! Flags that say how tokens are chosen and where generation ends.

use crate::exit::Failure;
use memra_engine::sampling::{Penalties, Sampling};
use std::str::FromStr;

/// Sampling and stopping, by llama.cpp's names. Knobs apply in the order of this list.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub(super) struct SamplingArgs {
    /// Add BIAS to a token's logit; -inf bans it; may be repeated
    #[arg(long, value_name = "ID=BIAS", allow_hyphen_values = true)]
    logit_bias: Vec<Bias>,

    /// Tokens that penalties look back on, prompt included; 0 is off, -1 all
    #[arg(long, value_name = "N", default_value_t = 64, allow_hyphen_values = true)]
    repeat_last_n: i64,

    /// Divide the logit of tokens that occur; 1 is off
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    repeat_penalty: f32,

    /// Subtract from the logit for each occurrence; 0 is off
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_hyphen_values = true)]
    frequency_penalty: f32,

    /// Subtract from the logit of tokens that occur; 0 is off
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_hyphen_values = true)]
    presence_penalty: f32,

    /// Keep the K likeliest tokens; 0 keeps all
    #[arg(long, value_name = "K", default_value_t = 0)]
    top_k: usize,

    /// Keep tokens of typical information content up to P; 1 keeps all
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    typical: f32,

    /// Keep the likeliest tokens whose probabilities reach P
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    top_p: f32,

    /// Keep tokens at least P times as likely as the likeliest
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    min_p: f32,

    /// Temperature; 0 is greedy
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_hyphen_values = true)]
    temp: f32,

    /// Seed of the sampling
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// End before this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(super) stop: Vec<String>,

    /// End at these token ids
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub(super) stop_token: Vec<u32>,

    /// Go on past the end of the model's turn
    #[arg(long)]
    pub(super) ignore_eos: bool,

    /// With --json: each token's log probability, and the N likeliest in its place
    #[arg(long, value_name = "N", requires = "json")]
    pub(super) logprobs: Option<usize>,
}

/// A token and what is added to its logit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bias(u32, f32);

impl FromStr for Bias {
    type Err = String;

    fn from_str(text: &str) -> Result<Bias, String> {
        text.split_once('=')
            .and_then(|(token, bias)| Some(Bias(token.parse().ok()?, bias.parse().ok()?)))
            .ok_or_else(|| format!("`{text}` is not ID=BIAS, such as 42=-5 or 42=-inf"))
    }
}

impl SamplingArgs {
    /// Refuses token ids that the vocabulary does not have, and stop strings that would end every text.
    pub(super) fn check(&self, n_vocab: usize) -> anyhow::Result<()> {
        let biased = self.logit_bias.iter().map(|bias| ("--logit-bias", bias.0));
        let ends = self.stop_token.iter().map(|&token| ("--stop-token", token));
        if let Some((flag, token)) = biased.chain(ends).find(|(_, token)| *token as usize >= n_vocab) {
            return Err(Failure::usage(format!("{flag} {token}: the vocabulary has {n_vocab} tokens")));
        }
        if self.stop.iter().any(String::is_empty) {
            return Err(Failure::usage("--stop: an empty text would end every generation at once"));
        }
        Ok(())
    }

    pub(super) fn sampling(&self) -> anyhow::Result<Sampling> {
        let last_n = match self.repeat_last_n {
            -1 => usize::MAX,
            n => usize::try_from(n)
                .map_err(|_| Failure::usage("--repeat-last-n: 0 (off), -1 (all) or more"))?,
        };
        Ok(Sampling {
            temperature: self.temp,
            top_k: self.top_k,
            typical: self.typical,
            top_p: self.top_p,
            min_p: self.min_p,
            penalties: Penalties {
                last_n,
                repeat: self.repeat_penalty,
                frequency: self.frequency_penalty,
                presence: self.presence_penalty,
            },
            logit_bias: self.logit_bias.iter().map(|&Bias(token, bias)| (token, bias)).collect(),
            seed: self.seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biases_parse_or_say_how() {
        assert_eq!("42=-inf".parse(), Ok(Bias(42, f32::NEG_INFINITY)));
        assert_eq!("0=1.5".parse(), Ok(Bias(0, 1.5)));
        for bad in ["", "42", "x=1", "42=", "-1=2", "42=y"] {
            assert!(bad.parse::<Bias>().unwrap_err().contains("ID=BIAS"), "{bad}");
        }
    }
}
