//! What can go wrong in the engine, and the way out.

use memra_formats::{CheckpointError, GgufError, JsonError};
use std::path::PathBuf;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model's files could not be read.
    #[error(transparent)]
    File(#[from] CheckpointError),
    /// A model's metadata or `config.json` are missing, out of range, or ask for what this build lacks.
    #[error("{file}: `{key}`: {problem}", file = file.display())]
    Metadata {
        /// The file that holds them.
        file: PathBuf,
        /// The key or field.
        key: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A tensor is missing, has the wrong shape, or a type that does not work where it stands.
    #[error("tensor {name}: {problem}")]
    Tensor {
        /// The tensor's name.
        name: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The file's tokenizer cannot be built.
    #[error("tokenizer: {0}; token ids still work")]
    Tokenizer(String),
    /// The model's chat template is missing or broken, or cannot render a chat.
    #[error(transparent)]
    Template(#[from] memra_text::template::TemplateError),
    /// A token id the model does not have.
    #[error("token {token} is outside the vocabulary of {vocab} tokens")]
    Token {
        /// The offending id.
        token: u32,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// A sequence would outgrow the session's context.
    #[error(
        "{needed} tokens do not fit the context of {context}; shorten the prompt, or ask for a longer context (the model was trained for {trained})"
    )]
    Context {
        /// Positions the sequence would have.
        needed: usize,
        /// Positions the session allows.
        context: usize,
        /// Positions the model was trained for.
        trained: usize,
    },
    /// Every KV page is in use.
    #[error(
        "all {pages} pages of the KV cache are in use (64 tokens each); free a sequence, or ask for more context or sequences"
    )]
    CacheFull {
        /// Pages in all.
        pages: usize,
    },
    /// Every slot for recurrent states is in use.
    #[error(
        "a step needs {wanted} more recurrent states of a sequence, but all {slots} are in use; free sequences or checkpoints, or ask for more of them"
    )]
    StatesFull {
        /// States that one sequence needed.
        wanted: usize,
        /// States in all.
        slots: usize,
    },
    /// A sequence with recurrent state cannot go back to where none was kept.
    #[error(
        "the recurrent state after {position} tokens was not kept (those after {kept:?} were); take a checkpoint there before going on, or verify drafts with `Session::verify`"
    )]
    NotKept {
        /// Tokens that should remain.
        position: usize,
        /// Lengths that one can go back to, beside 0.
        kept: Vec<usize>,
    },
    /// Logits that are not finite: a broken model file, or a fault in a kernel.
    #[error(
        "logits after position {position} are not finite (first at token id {token}); the model file is broken or a kernel is wrong: check with `memra check --model FILE`"
    )]
    NotFinite {
        /// Position of the row.
        position: usize,
        /// Lowest token id whose logit is NaN or infinite.
        token: u32,
    },
    /// A kernel refused its operands: a fault of the engine, not of the model or the caller.
    #[error("op {op}: {source}; this is a bug in memra")]
    Kernel {
        /// The op's name.
        op: String,
        /// What did not fit.
        source: memra_kernels::ShapeError,
    },
    /// An argument out of its range.
    #[error("{0}")]
    Argument(String),
}

impl From<GgufError> for Error {
    fn from(error: GgufError) -> Self {
        Error::File(error.into())
    }
}

impl From<JsonError> for Error {
    fn from(error: JsonError) -> Self {
        Error::File(error.into())
    }
}
