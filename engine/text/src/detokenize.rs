//! Token ids to text, one at a time.

use crate::{Specials, vocab::Vocab};
use std::sync::Arc;

/// Turns a stream of token ids into text that is valid UTF-8 at every step: a character is emitted with the token that
/// completes it, and what can no longer become one is emitted as U+FFFD.
#[derive(Clone, Debug)]
pub struct Detokenizer {
    vocab: Arc<Vocab>,
    specials: Specials,
    /// The beginning of a character, at most three bytes between calls.
    pending: Vec<u8>,
    text: String,
}

impl Detokenizer {
    pub(crate) fn new(vocab: Arc<Vocab>, specials: Specials) -> Self {
        Detokenizer { vocab, specials, pending: Vec::new(), text: String::new() }
    }

    /// Adds a token and returns the text that it completes, which may be empty.
    pub fn push(&mut self, id: u32) -> &str {
        self.text.clear();
        if self.specials == Specials::Show || !self.vocab.is_special(id) {
            self.pending.extend_from_slice(self.vocab.bytes(id));
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
