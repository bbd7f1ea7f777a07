//! The tokenizer of an opened model.

use super::source::Source;
use crate::{Error, tokenizer};
use memra_formats::Checkpoint;
use memra_text::Tokenizer;

/// Builds a model's tokenizer.
///
/// # Errors
/// Its kind is not supported, or its tables are broken.
pub(super) fn build(source: &Source) -> Result<Tokenizer, String> {
    let built = match source.checkpoint() {
        Checkpoint::Gguf(gguf) => tokenizer::from_metadata(gguf.metadata()),
        _ => tokenizer::from_folder(source.path(), &source.path().join("tokenizer.json")),
    };
    built.map_err(|error| match error {
        Error::Tokenizer(problem) => problem,
        other => other.to_string(),
    })
}
