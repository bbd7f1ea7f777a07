//! Text to token ids and back: tokenizers and streaming detokenisation.
//!
//! A [`Tokenizer`] is built from plain values ([`BpeSpec`]), wherever they come from, and checked as a whole before use.

mod detokenize;
mod spec;
mod tokenizer;

pub use detokenize::Detokenizer;
pub use spec::{BpeSpec, TokenizerError};
pub use tokenizer::{EncodeOptions, Specials, Tokenizer};
