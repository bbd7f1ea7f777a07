//! What a tokenizer is built from, and what can be wrong with it.

/// A byte-level BPE tokenizer as plain values, named as in GGUF's `tokenizer.ggml.*` keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BpeSpec {
    /// Tokenizer family (`tokenizer.ggml.model`); `gpt2` is byte-level BPE.
    pub model: String,
    /// Pre-tokenizer (`pre`): how text is cut into words before merging.
    pub pre: String,
    /// The vocabulary (`tokens`); ordinary tokens are written in GPT-2's byte alphabet.
    pub tokens: Vec<String>,
    /// Kind of each token (`token_type`): 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte. Empty: all normal.
    pub token_types: Vec<i32>,
    /// Merges (`merges`), best first: two tokens with one space between.
    pub merges: Vec<String>,
    /// Beginning of sequence (`bos_token_id`).
    pub bos: Option<u32>,
    /// End of sequence (`eos_token_id`).
    pub eos: Option<u32>,
    /// Unknown token (`unknown_token_id`).
    pub unk: Option<u32>,
    /// Padding (`padding_token_id`).
    pub pad: Option<u32>,
    /// Whether `bos` is put in front of a text (`add_bos_token`).
    pub add_bos: bool,
    /// Whether `eos` is put behind a text (`add_eos_token`).
    pub add_eos: bool,
}

/// Values that make no tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// Another tokenizer family.
    #[error("tokenizer model `{found}` is not supported; supported: gpt2 (byte-level BPE)")]
    Model {
        /// The name asked for.
        found: String,
    },
    /// Another pre-tokenizer.
    #[error(
        "pre-tokenizer `{found}` is not known, and guessing would give wrong tokens; supported: {supported}"
    )]
    Pre {
        /// The name asked for.
        found: String,
        /// Names that are known.
        supported: String,
    },
    /// `token_types` is there but does not match the vocabulary.
    #[error("{types} token types for {tokens} tokens; both must be equally many")]
    TokenTypes {
        /// Number of types.
        types: usize,
        /// Size of the vocabulary.
        tokens: usize,
    },
}
