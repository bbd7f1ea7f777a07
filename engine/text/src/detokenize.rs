//! Token ids to text, one at a time.

use crate::vocab::{Lead, Vocab};
use std::sync::Arc;

/// Whether control tokens appear in decoded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// As their names.
    Show,
    /// Not at all.
    Skip,
}

/// Turns a stream of token ids into text that is valid UTF-8 at every step: a character is emitted with the token that
/// completes it, and what can no longer become one is emitted as U+FFFD.
///
/// The text goes on where another ended, so that a space in front of the first word stays: that is right for what a model
/// generates. [`Detokenizer::at_start`] is for tokens that are a text by themselves.
#[derive(Clone, Debug)]
pub struct Detokenizer {
    vocab: Arc<Vocab>,
    specials: Specials,
    /// What is still to be taken from the start of the text.
    lead: Lead,
    /// The beginning of a character, at most three bytes between calls.
    pending: Vec<u8>,
    text: String,
}

impl Detokenizer {
    pub(crate) fn new(vocab: Arc<Vocab>, specials: Specials) -> Self {
        Detokenizer { vocab, specials, lead: Lead::Nothing, pending: Vec::new(), text: String::new() }
    }

    /// Takes the first token for the first of its text: where the tokenizer puts a space in front of a text that has none,
    /// it is left out again.
    pub fn at_start(mut self) -> Self {
        self.lead = self.vocab.lead;
        self
    }

    /// Adds a token and returns the text that it completes, which may be empty.
    pub fn push(&mut self, id: u32) -> &str {
        self.text.clear();
        if self.specials == Specials::Show || !self.vocab.is_special(id) {
            let bytes = self.vocab.bytes(id);
            match self.lead {
                Lead::Nothing => self.pending.extend_from_slice(bytes),
                Lead::SpacesOfFirst => {
                    self.pending.extend(bytes.iter().filter(|&&byte| byte != b' '));
                    self.lead = Lead::Nothing;
                }
                Lead::Spaces(most) => {
                    let spaces = bytes.iter().take(most).take_while(|&&byte| byte == b' ').count();
                    self.pending.extend_from_slice(&bytes[spaces..]);
                    let done = spaces < bytes.len() || spaces == most;
                    self.lead = if done { Lead::Nothing } else { Lead::Spaces(most - spaces) };
                }
            }
            self.emit();
        }
        &self.text
    }

    /// Returns the end of the text: U+FFFD when a character is incomplete, else nothing. A new text may follow.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        if !self.pending.is_empty() {
            self.text.push(char::REPLACEMENT_CHARACTER);
            self.pending.clear();
        }
        &self.text
    }

    /// Moves whole characters from `pending` to `text`.
    fn emit(&mut self) {
        let mut done = 0;
        loop {
            let rest = &self.pending[done..];
            let (valid, broken) = match std::str::from_utf8(rest) {
                Ok(text) => (text.len(), None),
                Err(error) => (error.valid_up_to(), error.error_len()),
            };
            self.text.push_str(std::str::from_utf8(&rest[..valid]).unwrap_or_default());
            done += valid;
            let Some(broken) = broken else { break };
            self.text.push(char::REPLACEMENT_CHARACTER);
            done += broken;
        }
        self.pending.drain(..done);
    }
}
