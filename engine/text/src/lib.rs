//! Text to token ids and back: tokenizers, streaming detokenisation, and chat templates ([`template`]).
//!
//! A [`Tokenizer`] is built from plain values ([`TokenizerSpec`]), wherever they come from, and checked as a whole before use.
//!
//! ```
//! use memra_text::{TokenizerSpec, EncodeOptions, Specials, Tokenizer, TokenizerError};
//!
//! let tokenizer = Tokenizer::from_spec(TokenizerSpec {
//!     model: "gpt2".into(),
//!     pre: "smollm".into(),
//!     tokens: ["h", "i", "hi", "Ġ", "<|im_end|>"].map(String::from).into(),
//!     token_types: vec![1, 1, 1, 1, 3],
//!     merges: vec!["h i".into()],
//!     eos: Some(4),
//!     ..TokenizerSpec::default()
//! })?;
//! let ids = tokenizer.encode("hi hi<|im_end|>", EncodeOptions { add_special: true, parse_special: true });
//! assert_eq!(ids, [2, 3, 2, 4]);
//! assert_eq!(tokenizer.decode(&ids, Specials::Skip), "hi hi");
//!
//! let mut detokenizer = tokenizer.detokenizer(Specials::Skip);
//! assert_eq!(detokenizer.push(ids[0]), "hi");
//! # Ok::<(), TokenizerError>(())
//! ```

mod alphabet;
mod bpe;
mod detokenize;
mod error;
mod gguf;
mod json;
mod merge;
mod normalize;
mod pattern;
mod presets;
mod scores;
mod spec;
mod special;
mod split;
mod stop;
pub mod template;
mod tokenizer;
mod unicode;
mod vocab;
mod words;

pub use detokenize::{Detokenizer, Specials};
pub use error::TokenizerError;
pub use spec::{TokenizerFiles, TokenizerSpec};
pub use stop::StopStrings;
pub use tokenizer::{EncodeOptions, Tokenizer};
