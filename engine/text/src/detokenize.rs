//! Token ids to text, one at a time.

/// Turns a stream of token ids into text that is valid UTF-8 at every step: whole characters are emitted at once, half
/// ones are held until they are whole.
#[derive(Clone, Debug)]
pub struct Detokenizer {}

impl Detokenizer {
    /// Adds a token and returns the text that it completes.
    pub fn push(&mut self, _id: u32) -> &str {
        todo!()
    }

    /// Returns what is still held back, as U+FFFD, and starts over.
    pub fn finish(&mut self) -> &str {
        todo!()
    }
}
