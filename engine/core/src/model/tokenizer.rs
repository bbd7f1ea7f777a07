//! The tokenizer of a model, from GGUF metadata.

use super::source::Source;
use crate::Error;
use memra_formats::{Checkpoint, Gguf};
use memra_text::{BpeSpec, Tokenizer};

/// Builds a model's tokenizer.
///
/// # Errors
/// Its kind is not supported, or its tables are broken.
pub(super) fn build(source: &Source) -> Result<Tokenizer, String> {
    match source.checkpoint() {
        Checkpoint::Gguf(gguf) => {
            let spec = bpe_spec(gguf).map_err(|e| e.to_string())?;
            Tokenizer::from_spec(spec).map_err(|e| e.to_string())
        }
        _ => Err("this build reads tokenizers from GGUF files, not from tokenizer.json".into()),
    }
}

fn bpe_spec(gguf: &Gguf) -> Result<BpeSpec, Error> {
    let meta = gguf.metadata();
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let strings = |name: &str| {
        let array = meta.find::<Vec<&str>>(&key(name))?.unwrap_or_default();
        Ok::<_, Error>(array.into_iter().map(str::to_owned).collect())
    };
    let token = |name: &str| meta.find::<u32>(&key(name));
    Ok(BpeSpec {
        model: meta.get::<&str>(&key("model"))?.to_owned(),
        pre: meta.find::<&str>(&key("pre"))?.unwrap_or("default").to_owned(),
        tokens: strings("tokens")?,
        token_types: meta.find::<Vec<i32>>(&key("token_type"))?.unwrap_or_default(),
        merges: strings("merges")?,
        bos: token("bos_token_id")?,
        eos: token("eos_token_id")?,
        unk: token("unknown_token_id")?,
        pad: token("padding_token_id")?,
        add_bos: meta.find::<bool>(&key("add_bos_token"))?.unwrap_or(false),
        add_eos: meta.find::<bool>(&key("add_eos_token"))?.unwrap_or(false),
    })
}
