//! What can be wrong with a tokenizer.

/// Values that make no tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// Another tokenizer family.
    #[error("tokenizer model `{found}` is not supported; supported: {supported}")]
    Model {
        /// The name asked for.
        found: String,
        /// Names that are known.
        supported: &'static str,
    },
    /// Another pre-tokenizer, or none.
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
    /// Token types or scores are given, but not one a token.
    #[error("{found} {what} for {tokens} tokens; each token needs one, the model file is corrupt")]
    Length {
        /// `token types` or `scores`.
        what: &'static str,
        /// Number of them.
        found: usize,
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
    /// A token for a byte that names none.
    #[error("token {id} (`{token}`) is of type 6, a byte, but is not written as one (`<0x0A>`)")]
    ByteToken {
        /// The token's id.
        id: u32,
        /// The token.
        token: String,
    },
    /// A special token too long to search for.
    #[error("special token {id} (`{token}…`) is {bytes} bytes long; {limit} at most")]
    LongToken {
        /// The token's id.
        id: u32,
        /// Its beginning.
        token: String,
        /// Its length.
        bytes: usize,
        /// Most bytes.
        limit: usize,
    },
    /// A score that cannot be compared.
    #[error("token {id} (`{token}`) has no number for a score (NaN); the model file is corrupt")]
    Score {
        /// The token's id.
        id: u32,
        /// The token.
        token: String,
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
        /// `bos`, `eos`, `unk`, `pad` or `end-of-generation`.
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
    /// Two tokens with one id.
    #[error("`{first}` and `{second}` both have the id {id}; tokenizer.json is corrupt")]
    DuplicateId {
        /// The id.
        id: u32,
        /// One token.
        first: String,
        /// The other.
        second: String,
    },
    /// A file that is not the JSON that it should be, or has a part of a type that is not supported.
    #[error("{file}: {problem}")]
    Json {
        /// The file.
        file: &'static str,
        /// What is wrong with it, and where; what would be right.
        problem: String,
    },
    /// A tokenizer of a kind that is not supported.
    #[error("{what} is not supported")]
    Unsupported {
        /// What it has.
        what: String,
    },
    /// A regular expression that is not understood.
    #[error("pattern `{pattern}`: {problem}")]
    Pattern {
        /// The expression.
        pattern: String,
        /// What is wrong with it, and where.
        problem: String,
    },
}
