//! The tokenizer itself.

use crate::{BpeSpec, Detokenizer, TokenizerError};

/// How to encode a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Put the model's bos and eos around the text, where the model wants them.
    pub add_special: bool,
    /// Read the names of control tokens (`<|im_end|>`) in the text as those tokens. Leave it off for anything a user wrote.
    pub parse_special: bool,
}

/// Whether control tokens appear in decoded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// As their names.
    Show,
    /// Not at all.
    Skip,
}

/// A tokenizer; cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Tokenizer {}

impl Tokenizer {
    /// Builds the tokenizer that `spec` describes.
    ///
    /// # Errors
    /// The first value that makes no sense, see [`TokenizerError`].
    pub fn from_spec(_spec: BpeSpec) -> Result<Tokenizer, TokenizerError> {
        todo!()
    }

    /// Token ids of `text`.
    pub fn encode(&self, _text: &str, _options: EncodeOptions) -> Vec<u32> {
        todo!()
    }

    /// Text of `ids`, bytes that are not UTF-8 replaced by U+FFFD.
    pub fn decode(&self, _ids: &[u32], _specials: Specials) -> String {
        todo!()
    }

    /// A streaming decoder.
    pub fn detokenizer(&self, _specials: Specials) -> Detokenizer {
        todo!()
    }

    /// Bytes of a token as they stand in text; empty for an id outside the vocabulary.
    pub fn token_bytes(&self, _id: u32) -> &[u8] {
        todo!()
    }

    /// The id of a token by its vocabulary entry (`<|im_end|>`; ordinary tokens in the byte alphabet).
    pub fn token_id(&self, _token: &str) -> Option<u32> {
        todo!()
    }

    /// Number of tokens.
    pub fn vocab_size(&self) -> usize {
        todo!()
    }

    /// Beginning of sequence.
    pub fn bos(&self) -> Option<u32> {
        todo!()
    }

    /// End of sequence.
    pub fn eos(&self) -> Option<u32> {
        todo!()
    }

    /// Whether a model that emits this token has ended its turn.
    pub fn is_end_of_generation(&self, _id: u32) -> bool {
        todo!()
    }
}
