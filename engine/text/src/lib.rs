//! Text to token ids and back: tokenizers, streaming detokenisation, and chat templates ([`template`]).
//!
//! A [`Tokenizer`] is built from plain values ([`BpeSpec`]), wherever they come from, and checked as a whole before use.
//!
//! ```
//! use memra_text::{BpeSpec, EncodeOptions, Specials, Tokenizer, TokenizerError};
//!
//! let tokenizer = Tokenizer::from_spec(BpeSpec {
//!     model: "gpt2".into(),
//!     pre: "smollm".into(),
//!     tokens: ["h", "i", "hi", "Ġ", "<|im_end|>"].map(String::from).into(),
//!     token_types: vec![1, 1, 1, 1, 3],
//!     merges: vec!["h i".into()],
//!     eos: Some(4),
//!     ..BpeSpec::default()
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
mod classes;
mod detokenize;
mod pretokenize;
mod spec;
mod special;
mod stop;
pub mod template;
mod tokenizer;
mod vocab;

pub use detokenize::Detokenizer;
pub use spec::{BpeSpec, TokenizerError};
pub use stop::StopStrings;
pub use tokenizer::{EncodeOptions, Specials, Tokenizer};
