//! What a tokenizer is built from, and what can be wrong with it.

/// A byte-level BPE tokenizer as plain values, named as in GGUF's `tokenizer.ggml.*` keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BpeSpec {
    /// Tokenizer family (`model`); `gpt2` is byte-level BPE.
    pub model: String,
    /// Pre-tokenizer (`pre`): how text is cut into words before merging.
    pub pre: String,
    /// The vocabulary (`tokens`); normal tokens are written in GPT-2's byte alphabet.
    /// No two are equal.
    pub tokens: Vec<String>,
    /// Kind of each token (`token_type`): 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    /// Empty: all normal.
    pub token_types: Vec<i32>,
    /// Merges (`merges`), best first: two tokens with one space between.
    pub merges: Vec<String>,
    /// Beginning of sequence (`bos_token_id`).
    pub bos: Option<u32>,
    /// End of sequence (`eos_token_id`).
    pub eos: Option<u32>,
    /// Unknown token (`unknown_token_id`); checked, but byte-level BPE never yields it.
    pub unk: Option<u32>,
    /// Padding (`padding_token_id`).
    pub pad: Option<u32>,
    /// Whether bos is put in front of a text (`add_bos_token`; false where absent).
    pub add_bos: bool,
    /// Whether eos is put behind a text (`add_eos_token`; false where absent).
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
    /// A vocabulary that is empty or beyond 32-bit ids.
    #[error("a vocabulary of {tokens} tokens cannot be used; the model file is incomplete or corrupt")]
    VocabularySize {
        /// Number of tokens.
        tokens: usize,
    },
    /// Two tokens that are written alike.
    #[error("tokens {first} and {second} are both `{token}`; the model file is corrupt")]
    DuplicateToken {
        /// The token.
        token: String,
        /// The lower id.
        first: u32,
        /// The higher id.
        second: u32,
    },
    /// Token types are given, but not one a token.
    #[error("{types} token types for {tokens} tokens; each token needs one, the model file is corrupt")]
    TokenTypes {
        /// Number of types.
        types: usize,
        /// Size of the vocabulary.
        tokens: usize,
    },
    /// A token type that does not exist.
    #[error("token {id} (`{token}`) has type {found}; types are 0 to 6")]
    TokenType {
        /// The token's id.
        id: u32,
        /// The token.
        token: String,
        /// Its type.
        found: i32,
    },
    /// A merge that is not two tokens with a space between.
    #[error("merge {index} (`{merge}`) is not two tokens separated by one space")]
    MergeForm {
        /// Position in the list of merges.
        index: usize,
        /// The merge.
        merge: String,
    },
    /// A merge of, or to, a token that does not exist.
    #[error("merge {index} (`{merge}`) needs the token `{token}`, which the vocabulary does not have")]
    MergeToken {
        /// Position in the list of merges.
        index: usize,
        /// The merge.
        merge: String,
        /// The missing token.
        token: String,
    },
    /// A special token outside the vocabulary.
    #[error("the {which} token is {id}, but the vocabulary ends at {last}", last = tokens - 1)]
    SpecialId {
        /// `bos`, `eos`, `unk` or `pad`.
        which: &'static str,
        /// Its id.
        id: u32,
        /// Size of the vocabulary.
        tokens: u32,
    },
    /// A special token is to be added that is not defined.
    #[error("add_{which} is set, but no {which} token is given")]
    NoSpecial {
        /// `bos` or `eos`.
        which: &'static str,
    },
}
