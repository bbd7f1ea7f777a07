//! The knobs of sampling and their ranges.

use crate::Error;

/// How to choose the next token. The default is greedy.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 takes the likeliest token that the other knobs leave.
    pub temperature: f32,
    /// Keeps the likeliest tokens; 0 keeps all.
    pub top_k: usize,
    /// Keeps tokens of typical information content until their probabilities exceed this sum; 1 keeps all.
    /// Meister et al., "Locally Typical Sampling", 2022.
    pub typical: f32,
    /// Keeps the fewest likeliest tokens whose probabilities reach this sum; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this fraction as likely as the likeliest; 0 keeps all.
    pub min_p: f32,
    /// What makes tokens less likely that the text already has.
    pub penalties: Penalties,
    /// Added to the logits of tokens before anything else; minus infinity bans one.
    pub logit_bias: Vec<(u32, f32)>,
    /// Seed of the random stream.
    pub seed: u64,
}

/// Penalties on tokens among the last of the text, prompt included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalties {
    /// Tokens looked back on; 0 switches penalties off.
    pub last_n: usize,
    /// Divides the logit of a token that occurs, or multiplies it where it is not positive; 1 is off.
    /// Keskar et al., "CTRL", 2019.
    pub repeat: f32,
    /// Subtracted from the logit once for each occurrence; 0 is off.
    pub frequency: f32,
    /// Subtracted from the logit of a token that occurs; 0 is off.
    pub presence: f32,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            temperature: 0.0,
            top_k: 0,
            typical: 1.0,
            top_p: 1.0,
            min_p: 0.0,
            penalties: Penalties::default(),
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

impl Default for Penalties {
    fn default() -> Self {
        Penalties { last_n: 64, repeat: 1.0, frequency: 0.0, presence: 0.0 }
    }
}

impl Penalties {
    /// Whether they change nothing.
    pub(super) fn is_off(&self) -> bool {
        self.last_n == 0 || (self.repeat == 1.0 && self.frequency == 0.0 && self.presence == 0.0)
    }

    /// The logit of a token that occurred `count` times, at least once.
    pub(super) fn apply(&self, logit: f32, count: u32) -> f32 {
        let repeated = if logit <= 0.0 { logit * self.repeat } else { logit / self.repeat };
        repeated - count as f32 * self.frequency - self.presence
    }
}

impl Sampling {
    /// Says which knob is out of its range.
    pub(super) fn check(&self) -> Result<(), Error> {
        let within = |ok: bool, what: &str, value: f32, range: &str| {
            if ok { Ok(()) } else { Err(Error::Argument(format!("{what} is {value}; it must be {range}"))) }
        };
        let Sampling { temperature, typical, top_p, min_p, penalties, .. } = *self;
        let Penalties { repeat, frequency, presence, .. } = penalties;
        let warm = temperature >= 0.0 && temperature.is_finite();
        within(warm, "temperature", temperature, "0 (greedy) or more")?;
        within(typical > 0.0 && typical <= 1.0, "typical", typical, "above 0 and at most 1 (off)")?;
        within(top_p > 0.0 && top_p <= 1.0, "top-p", top_p, "above 0 and at most 1 (off)")?;
        within((0.0..=1.0).contains(&min_p), "min-p", min_p, "between 0 (off) and 1")?;
        let repeats = repeat > 0.0 && repeat.is_finite();
        within(repeats, "repeat penalty", repeat, "above 0; 1 is off")?;
        within(frequency.is_finite(), "frequency penalty", frequency, "a number; 0 is off")?;
        within(presence.is_finite(), "presence penalty", presence, "a number; 0 is off")?;
        self.logit_bias.iter().try_for_each(|&(token, bias)| {
            let ok = bias < f32::INFINITY;
            within(ok, &format!("logit bias of token {token}"), bias, "a number, or -inf to ban the token")
        })
    }
}
