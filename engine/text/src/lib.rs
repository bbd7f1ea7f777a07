//! Text to token ids and back: tokenizers and streaming detokenisation.
//!
//! A [`Tokenizer`] is built from plain values ([`BpeSpec`]), wherever they come from, and checked as a whole before use.

mod alphabet;
mod bpe;
mod classes;
mod detokenize;
mod pretokenize;
mod spec;
mod special;
mod tokenizer;
mod vocab;

pub use detokenize::Detokenizer;
pub use spec::{BpeSpec, TokenizerError};
pub use tokenizer::{EncodeOptions, Specials, Tokenizer};
