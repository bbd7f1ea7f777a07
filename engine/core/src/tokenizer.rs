//! The tokenizer of a model on disk.

use crate::Error;
use memra_formats::{CheckpointError, Gguf, GgufError, JsonError, Metadata};
use memra_text::{Tokenizer, TokenizerError, TokenizerFiles, TokenizerSpec};
use std::io::ErrorKind;
use std::path::Path;

/// Keys of tokens, besides eos, with which a generation ends.
const ENDS: [&str; 2] = ["eot_token_id", "eom_token_id"];
/// Largest file of a tokenizer; real ones have up to 35 MB.
const MAX_BYTES: usize = 256 << 20;

/// The tokenizer of a GGUF file, of a folder with `tokenizer.json`, or of a `tokenizer.json` itself.
///
/// # Errors
/// Files that cannot be read, a tokenizer that is not supported, or tables that are broken.
pub fn open(path: &Path) -> Result<Tokenizer, Error> {
    if path.is_dir() {
        return from_folder(path, &path.join("tokenizer.json"));
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => from_folder(path.parent().unwrap_or(Path::new("")), path),
        _ => from_metadata(Gguf::open(path).map_err(CheckpointError::from)?.metadata()),
    }
}

/// The tokenizer that a GGUF file's metadata describe.
///
/// # Errors
/// Keys that are missing or of the wrong type, a tokenizer that is not supported, or tables that are broken.
pub fn from_metadata(metadata: &Metadata) -> Result<Tokenizer, Error> {
    let spec = spec(metadata).map_err(CheckpointError::from)?;
    Tokenizer::from_spec(spec).map_err(refused)
}

/// The tokenizer of `tokenizer`, with what the documents in `folder` say of its special tokens.
///
/// # Errors
/// As [`open`].
pub fn from_folder(folder: &Path, tokenizer: &Path) -> Result<Tokenizer, Error> {
    let missing = || JsonError::Open { path: tokenizer.to_owned(), source: ErrorKind::NotFound.into() };
    let file = read(tokenizer)?.ok_or_else(missing).map_err(CheckpointError::from)?;
    let config = read(&folder.join("tokenizer_config.json"))?;
    let generation = read(&folder.join("generation_config.json"))?;
    let files = TokenizerFiles {
        tokenizer: &file,
        tokenizer_config: config.as_deref(),
        generation_config: generation.as_deref(),
    };
    Tokenizer::from_json(&files).map_err(refused)
}

fn refused(error: TokenizerError) -> Error {
    Error::Tokenizer(error.to_string())
}

/// The bytes of a file, where there is one.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let open = |source| JsonError::Open { path: path.to_owned(), source };
    let read = || {
        // Asked before opening: opening a pipe would wait for a writer.
        let metadata = std::fs::metadata(path).map_err(open)?;
        if !metadata.is_file() {
            return Err(JsonError::NotAFile { path: path.to_owned() });
        }
        let bytes = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        if bytes > MAX_BYTES {
            return Err(JsonError::TooLarge { path: path.to_owned(), bytes, limit: MAX_BYTES });
        }
        std::fs::read(path).map_err(open)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(JsonError::Open { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CheckpointError::from(error).into()),
    }
}

/// The values of `tokenizer.ggml.*`.
fn spec(metadata: &Metadata) -> Result<TokenizerSpec, GgufError> {
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let text = |name: &str| metadata.find::<&str>(name).map(|value| value.unwrap_or_default().to_owned());
    let strings = |name: &str| {
        let array = metadata.find::<Vec<&str>>(&key(name))?.unwrap_or_default();
        Ok::<_, GgufError>(array.into_iter().map(str::to_owned).collect())
    };
    let token = |name: &str| metadata.find::<u32>(&key(name));
    let flag = |name: &str| metadata.find::<bool>(&key(name));
    let mut spec = TokenizerSpec {
        model: metadata.get::<&str>(&key("model"))?.to_owned(),
        pre: text(&key("pre"))?,
        tokens: strings("tokens")?,
        scores: metadata.find(&key("scores"))?.unwrap_or_default(),
        token_types: metadata.find(&key("token_type"))?.unwrap_or_default(),
        merges: strings("merges")?,
        bos: token("bos_token_id")?,
        eos: token("eos_token_id")?,
        unk: token("unknown_token_id")?,
        pad: token("padding_token_id")?,
        ends: Vec::new(),
        add_bos: flag("add_bos_token")?,
        add_eos: flag("add_eos_token")?,
        add_space_prefix: flag("add_space_prefix")?,
        name: text("general.name")?,
    };
    for name in ENDS {
        spec.ends.extend(token(name)?);
    }
    if spec.model == "llama" {
        // What SentencePiece files leave unsaid.
        let unsaid = |id: u32| Some(id).filter(|&id| (id as usize) < spec.tokens.len());
        (spec.unk, spec.bos, spec.eos) =
            (spec.unk.or(unsaid(0)), spec.bos.or(unsaid(1)), spec.eos.or(unsaid(2)));
    }
    Ok(spec)
}
