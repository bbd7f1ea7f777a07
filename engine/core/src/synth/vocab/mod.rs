//! Made-up vocabularies of real sizes: real special tokens at their real ids, real families of tokenizer, and for the
//! rest words of made-up syllables, each reachable by merging.

mod bpe;
mod grow;
mod spm;
mod words;

pub(super) use bpe::{llama3, qwen3};
pub(super) use spm::gemma3;

use crate::Error;
use memra_formats::GgufWriter;

/// Kinds of token (`tokenizer.ggml.token_type`).
pub(super) const NORMAL: i32 = 1;
pub(super) const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED: i32 = 5;
const BYTE: i32 = 6;

/// A tokenizer as GGUF's `tokenizer.*` keys describe it.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    pub(super) model: &'static str,
    pub(super) pre: &'static str,
    pub(super) tokens: Vec<String>,
    /// SentencePiece only.
    pub(super) scores: Vec<f32>,
    pub(super) types: Vec<i32>,
    /// Byte-level BPE only.
    pub(super) merges: Vec<String>,
    pub(super) bos: u32,
    pub(super) eos: u32,
    pub(super) unk: Option<u32>,
    pub(super) pad: Option<u32>,
    pub(super) add_bos: bool,
    pub(super) add_space_prefix: Option<bool>,
    pub(super) chat_template: &'static str,
}

impl Vocabulary {
    /// Adds the keys to a file's metadata.
    pub(super) fn write(&self, header: &mut GgufWriter) -> Result<(), Error> {
        header.metadata("tokenizer.ggml.model", self.model)?;
        header.metadata("tokenizer.ggml.pre", self.pre)?;
        header.metadata("tokenizer.ggml.tokens", &self.tokens)?;
        if !self.scores.is_empty() {
            header.metadata("tokenizer.ggml.scores", &self.scores)?;
        }
        header.metadata("tokenizer.ggml.token_type", &self.types)?;
        if !self.merges.is_empty() {
            header.metadata("tokenizer.ggml.merges", &self.merges)?;
        }
        header.metadata("tokenizer.ggml.bos_token_id", &self.bos)?;
        header.metadata("tokenizer.ggml.eos_token_id", &self.eos)?;
        for (key, id) in [("unknown", self.unk), ("padding", self.pad)] {
            if let Some(id) = id {
                header.metadata(&format!("tokenizer.ggml.{key}_token_id"), &id)?;
            }
        }
        header.metadata("tokenizer.ggml.add_bos_token", &self.add_bos)?;
        if let Some(add) = self.add_space_prefix {
            header.metadata("tokenizer.ggml.add_space_prefix", &add)?;
        }
        if !self.chat_template.is_empty() {
            header.metadata("tokenizer.chat_template", self.chat_template)?;
        }
        Ok(())
    }

    /// Adds tokens of one kind.
    fn push(&mut self, tokens: impl IntoIterator<Item = String>, kind: i32) {
        self.tokens.extend(tokens);
        self.types.resize(self.tokens.len(), kind);
    }
}

/// Whether a byte stands for itself in GPT-2's alphabet.
fn is_printable(byte: u8) -> bool {
    matches!(byte, 33..=126 | 161..=172 | 174..=255)
}

/// GPT-2's letter for each byte: printable Latin-1 stands for itself, the rest for the characters from U+0100 on.
pub(super) fn byte_letters() -> impl Iterator<Item = char> {
    let mut moved = '\u{100}'..;
    (0..=255u8).filter_map(move |b| if is_printable(b) { Some(char::from(b)) } else { moved.next() })
}

#[cfg(test)]
mod tests;
